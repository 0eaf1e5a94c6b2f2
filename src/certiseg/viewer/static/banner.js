// The banner above the maps: whether map A is a promise, a comparison or exploration, and what else must be said.

import { byId } from "./elements.js";
import { state } from "./state.js";

const ROLES = { promise: "The promise of this run", comparison: "A comparison, not the promise",
  exploration: "Exploration: not a certificate" };
const BUTTONS = ["recipe", "reset", "claim"];

export class Banner {
  constructor(run) {
    this.run = run;
  }

  // shown: which of the buttons.
  say(role, title, text, ...shown) {
    for (const name of Object.keys(ROLES)) byId("banner").classList.toggle(name, name === role);
    byId("banner-title").textContent = title;
    byId("banner-text").textContent = text;
    for (const name of BUTTONS) byId(`${name}-button`).hidden = !shown.includes(name);
  }

  show(answer) {
    const exploring = answer.role === "exploration";
    const apart = !exploring && state.colours === "radius" && !answer.radius_is_joint;
    const title = apart ? "Radii: a statement of their own, not the certificate" : ROLES[answer.role];
    const few = answer.critical === null ? [`${answer.n} draws are too few to certify anything here`] : [];
    const words = exploring ? answer.differs : [apart ? answer.radius_statement : this.beside(answer)];
    this.say(apart ? "exploration" : answer.role, title, [...few, ...words].join(", "),
      ...(exploring ? ["recipe", "reset"] : ["claim"]));
  }

  // What stands beside the title: the guarantee, or why it is not the promise.
  beside(answer) {
    const { promise, promised: { method, setting }, stops } = this.run;
    if (answer.role === "promise") return promise;
    if (answer.earlier) return `this image was uploaded before, and keeping the best is exploration; on its own: ${promise}`;
    const n = `n ${stops ? "up to" : "="} ${setting.n}`;
    return `from the same draws as the promise, ${method} at sigma = ${setting.sigma}, ${n}, tau = ${setting.tau}`;
  }

  drawing(drop) {
    this.say(null, "Drawing", `${drop.name}: valid whenever it is stopped (anytime test)`);
  }

  complain(text) {
    this.say("exploration", "Not possible", text, "reset");
  }

  // Maps whose labels agree little with the model that people know; maps: name -> answer.
  warn(maps) {
    const low = Object.entries(maps).filter(([, answer]) => answer?.agrees_little);
    byId("warning").hidden = low.length === 0;
    byId("warning").textContent = low.map(([name, answer]) => `${name}: ${answer.agreement_words}`).join(" ");
  }
}
