// Calibrated sets as map B: a promise about the truth, with the classes of a pixel on a click.

import { ask, Lane } from "./api.js";
import { byId, make, percent, swatch } from "./elements.js";
import { state } from "./state.js";

export const NAME = "calibrated";
const ROLES = { promise: "Promise about the truth", comparison: "Comparison, not the promise of the calibration",
  exploration: "Exploration, not a promise: the seed was given" };

export class Calibrated {
  constructor(stage, painter, { words }) {
    Object.assign(this, { stage, painter, words });
    this.lane = new Lane("/api/truth/pixel", "t", { onAnswer: (answer) => this.tell(answer), onError: () => this.tell(null) });
    byId("truth-claim").addEventListener("click", () => this.words("What is promised about the truth", this.claim));
  }

  // The card is there while map B is.
  card() {
    byId("truth").hidden = state.other !== NAME;
  }

  async show() {
    const image = state.image;
    const answer = await ask("/api/truth", { image }).catch(({ message }) => this.none(message));
    if (!answer || image !== state.image || state.other !== NAME) return;
    const colours = Uint32Array.from(answer.legend, ({ colour: [r, g, b] }) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    this.stage.note("b", "");
    this.stage.panes.b.map.hidden = false;
    this.painter.fill(this.stage.panes.b.map, answer, (out, { band }) => {
      for (let i = 0; i < out.length; i++) out[i] = colours[band[i]];
    });
    this.claim = answer.claim;
    this.stage.title("b", "B: Sets that hold the truth", `${answer.mean_size.toFixed(2)} classes on average`);
    byId("truth-role").className = `chip ${answer.role}`;
    byId("truth-role").textContent = ROLES[answer.role];
    const held = answer.held === null ? "" : ` In this image they hold it at ${percent(answer.held)}.`;
    const exact = (value) => Number(value.toFixed(6));
    byId("truth-words").textContent = `With probability at least ${exact(1 - answer.risk)}, over calibration images, image and ` +
      `noise, the sets hold the true class of at least ${exact(100 * answer.pixels)} % of an image's labelled pixels.${held} ` +
      `One class: ${percent(answer.singletons)}.`;
    byId("truth-legend").replaceChildren(...answer.legend.map(({ colour, words, share }) =>
      make("span", { class: "entry" }, [swatch(colour), make("span", { text: `${words} ${percent(share)}` })])));
    byId("truth-claim").hidden = false;
  }

  none(message) {
    this.stage.note("b", "no calibrated sets for this image");
    this.stage.panes.b.map.hidden = true;
    this.stage.title("b", "B: Sets that hold the truth");
    byId("truth-role").className = "chip";
    byId("truth-role").textContent = "None for this image";
    byId("truth-words").textContent = message;
    byId("truth-claim").hidden = true;
    byId("truth-legend").replaceChildren();
  }

  at(pixel) {
    if (state.other !== NAME || !pixel) return this.tell(null);
    this.lane.ask({ image: state.image, row: pixel.row, column: pixel.column });
  }

  tell(answer) {
    const inside = answer?.truth && answer.members.includes(answer.truth);
    const truth = answer?.truth ? `; true: ${answer.truth}, ${inside ? "in the set" : "missed"}` : "";
    byId("truth-members").textContent = answer ? `Here: ${answer.members.join(" or ") || "no class"}${truth}` : "";
  }
}
