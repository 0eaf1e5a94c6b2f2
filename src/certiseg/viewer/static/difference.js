// How map B differs from map A: in a pane of its own, which takes the place of the ground truth.

import { Lane } from "./api.js";
import { byId, make, press } from "./elements.js";
import { differenceEntries, entry } from "./legend.js";
import { change, choice, state } from "./state.js";

export class Difference {
  constructor(run, stage, painter, other) {
    Object.assign(this, { run, stage, painter, other, answer: null });
    this.lane = new Lane("/api/difference", "d", { onAnswer: (answer, query) => this.show(answer, query),
      onError: (text) => this.clear(text) });
    for (const button of document.querySelectorAll("[data-beside]")) {
      button.addEventListener("click", () => change({ beside: button.dataset.beside }));
    }
  }

  get on() {
    if (state.layout === "single") return state.pane === "difference";
    return state.layout === "grid" && state.beside === "difference";
  }

  // Bring the page in step with the state.
  follow() {
    press(document.querySelectorAll("[data-beside]"), "beside", state.beside);
    byId("beside").hidden = state.layout !== "grid";
    this.stage.root.classList.toggle("with-difference", this.on);
    if (!this.on) byId("difference-legend").replaceChildren();
  }

  // Asked when both maps are painted. missing: why there is no map B.
  ask(missing = "") {
    if (!this.on) return;
    if (missing) return this.clear(missing);
    const b = Object.fromEntries(Object.entries(this.other.query()).map(([name, value]) => [`b_${name}`, value]));
    this.lane.ask({ ...choice(), ...b, b_run: this.other.chosen.path ? "second" : "first" });
  }

  clear(text) {
    this.answer = null;
    this.stage.title("difference", "Difference of A and B");
    this.stage.note("difference", text);
    this.stage.panes.difference.map.hidden = true;
    byId("difference-legend").replaceChildren();
  }

  show(answer, query) {
    if (query.image !== state.image || !this.on) return;
    this.answer = answer;
    this.stage.note("difference", "");
    this.stage.panes.difference.map.hidden = false;
    this.painter.difference(this.stage.panes.difference.map, answer);
    this.stage.title("difference", "B against A", { role: answer.role });
    byId("difference-legend").replaceChildren(make("span", { class: "quiet", text: "B against A:" }),
      ...differenceEntries(this.run, answer).map(entry));
  }
}
