// How the images of the run spread; a bar, or several that are dragged over, keeps just these images in list and table.

import { byId, make, percent } from "./elements.js";
import { change, state } from "./state.js";

const BINS = 12;
const ROUNDED = 1e-6; // as the address keeps the ends
const WAYS = { wrong: "certified and wrong", abstained: "abstained", cig: "CIG" };

export class Histograms {
  // value: (image, by) -> the number of an image, null where it has none.
  constructor(list, value) {
    Object.assign(this, { list, value, start: null });
    byId("brush-all").addEventListener("click", () => change({ brush: null }));
    addEventListener("pointerup", () => (this.start = null));
  }

  draw() {
    byId("histograms").replaceChildren(...Object.entries(WAYS).map(([by, words]) => this.one(by, words)));
    byId("brush-all").hidden = state.brush === null;
    byId("brush-words").textContent = state.brush === null ? "Click a bar, or drag over several." :
      `Only images with ${WAYS[state.brush.by]} from ${shown(state.brush.by, state.brush.from)} to ${shown(state.brush.by, state.brush.to)}.`;
  }

  // Whether the brush keeps an image.
  keeps(image) {
    if (state.brush === null) return true;
    const value = this.value(image, state.brush.by);
    return value !== null && value >= state.brush.from - ROUNDED && value <= state.brush.to + ROUNDED;
  }

  one(by, words) {
    const values = this.list.images.map((image) => this.value(image, by)).filter((value) => value !== null);
    const top = Math.max(...values, 1e-3);
    const width = top / BINS;
    const counts = Array(BINS).fill(0);
    for (const value of values) counts[Math.min(BINS - 1, Math.floor(value / width))] += 1;
    const most = Math.max(...counts, 1);
    const bars = counts.map((count, bin) => this.bar({ by, words, bin, width, count, most }));
    return make("div", { class: "histogram", role: "group", "aria-label": words }, [
      make("h3", { text: words }), make("div", { class: "bars" }, bars),
      make("div", { class: "scale-ends" }, [make("span", { text: shown(by, 0) }), make("span", { text: shown(by, top) })])]);
  }

  bar({ by, words, bin, width, count, most }) {
    const brush = state.brush;
    const middle = (bin + 0.5) * width;
    const inside = brush?.by === by && middle >= brush.from && middle <= brush.to;
    const range = `${shown(by, bin * width)} to ${shown(by, (bin + 1) * width)}`;
    const choose = (first, last, step = true) =>
      change({ brush: { by, from: Math.min(first, last) * width, to: (Math.max(first, last) + 1) * width } }, { step });
    const button = make("button", { type: "button", "aria-pressed": String(inside), "data-bin": bin, tabindex: count ? null : -1,
      "aria-label": `${words} ${range}: ${count} image${count === 1 ? "" : "s"}`, title: `${range}: ${count}`,
      onpointerdown: (event) => { event.target.releasePointerCapture?.(event.pointerId); this.start = { by, bin }; },
      onpointerenter: () => this.start?.by === by && this.start.bin !== bin && choose(this.start.bin, bin, false),
      onclick: (event) => {
        if (event.shiftKey && brush?.by === by) choose(Math.round(brush.from / width), bin);
        else if (inside && Math.abs(brush.to - brush.from - width) < 1e-9) change({ brush: null });
        else choose(bin, bin);
      } }, [make("span", { class: "bar-fill" })]);
    button.firstChild.style.height = `${(count / most) * 100}%`;
    return button;
  }
}

const shown = (by, value) => (by === "cig" ? value.toFixed(2) : percent(value));
