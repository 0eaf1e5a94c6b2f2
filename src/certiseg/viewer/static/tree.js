// The hierarchy with colours and pixel shares; a click shows the pixels certified to be, or not to be, a vertex.

import { byId, make, percent, rgb, swatch } from "./elements.js";
import { change, state } from "./state.js";

const ROOT = -2;

export class Tree {
  constructor(run) {
    this.run = run;
    this.rows = new Map();
    this.children = new Map();
    run.vertices.forEach((vertex, index) => {
      this.children.set(vertex.parent, [...(this.children.get(vertex.parent) ?? []), index]);
    });
    byId("tree").append(this.list(ROOT));
    for (const button of document.querySelectorAll("[data-side]")) {
      button.addEventListener("click", () => change({ side: button.dataset.side }));
    }
  }

  list(parent) {
    const ids = this.children.get(parent) ?? [];
    return make("ul", { class: "tree" }, ids.map((id) => {
      const items = [this.row(id)];
      if (this.children.has(id)) items.push(this.list(id));
      return make("li", {}, items);
    }));
  }

  row(id) {
    const vertex = this.run.vertices[id];
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    const share = make("span", { class: "share" });
    const button = make("button", { type: "button", class: "vertex", "aria-pressed": "false", "data-vertex": id,
      onclick: () => change({ highlight: state.highlight === id ? null : id }) },
      [swatch(vertex.colour, vertex), make("span", { class: "vertex-name", text: vertex.name }), share, bar]);
    bar.style.backgroundColor = rgb(vertex.colour);
    this.rows.set(id, { button, bar, share });
    return button;
  }

  // Shares of the pixels certified as a vertex or as something under it.
  show(answer) {
    const total = answer.shares.slice();
    for (let id = total.length - 1; id >= 0; id--) {
      const inside = (this.children.get(id) ?? []).map((child) => this.under(child, answer.shares));
      total[id] = inside.reduce((sum, share) => sum + share, answer.shares[id]);
    }
    for (const [id, { button, bar, share }] of this.rows) {
      share.textContent = total[id] > 0 ? percent(total[id]) : "";
      bar.style.transform = `scaleX(${total[id]})`;
      button.classList.toggle("absent", total[id] === 0);
      button.setAttribute("aria-pressed", String(state.highlight === id));
    }
    this.answer(answer);
  }

  under(id, shares) {
    return (this.children.get(id) ?? []).reduce((sum, child) => sum + this.under(child, shares), shares[id]);
  }

  answer({ maps }) {
    const line = byId("tree-answer");
    if (state.highlight === null || !maps.mask) {
      line.textContent = "Click a vertex to see where it is certified.";
      return;
    }
    const name = this.run.vertices[state.highlight].name;
    const share = maps.mask.reduce((sum, value) => sum + value, 0) / maps.mask.length;
    const words = state.side === "within" ? `the smoothed model answers ${name}, whatever the perturbation up to R` : `the smoothed model does not answer ${name}, whatever the perturbation up to R`;
    line.textContent = `${percent(share)} of the pixels: ${words}`;
  }
}
