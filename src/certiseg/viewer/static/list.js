// The image list: thumbnails, CIG, wrong and abstained of the run's own certificates, filter and sort.

import { ask } from "./api.js";
import { byId, make, percent } from "./elements.js";
import { remember, state, toImage } from "./state.js";

const PLACES = { cig: 0, abstain: 1, wrong: 2 };

export class ImageList {
  // keeps: whether the histograms keep an image; wrongOf: the share of an image that is wrong in one class; onDraw: told.
  constructor(run, { keeps, wrongOf, onDraw }) {
    Object.assign(this, { run, keeps, wrongOf, onDraw, images: [], key: "" });
    byId("filter").addEventListener("input", ({ target }) => this.keep({ filter: target.value }));
    byId("sort").addEventListener("change", ({ target }) => this.keep({ sort: target.value }));
  }

  keep(changes) {
    remember(changes);
    this.draw();
  }

  async load() {
    this.images = await ask("/api/images");
    this.draw();
  }

  // key: the run's setting and method whose scores are listed.
  use(key) {
    const drawn = JSON.stringify([key, state.of, state.brush, state.sort, state.filter]);
    if (drawn === this.drawn) return;
    Object.assign(this, { key, drawn });
    this.draw();
  }

  scores(image) {
    if (image.dropped) return [null, image.summary.abstain, null];
    const [cig, abstain, wrong] = image.scores[this.key] ?? [null, null, null];
    return [cig, abstain, state.of === null ? wrong : this.wrongOf(image.name, state.of)];
  }

  shown() {
    const wanted = state.filter.trim().toLowerCase();
    const [by, way] = state.sort.split("-");
    const kept = this.images.filter((image) => image.name.toLowerCase().includes(wanted) && this.keeps(image));
    const value = (image) => (by === "name" ? image.name : this.scores(image)[PLACES[by]]);
    if (by === "run") return kept;
    const order = (a, b) => (value(a) === value(b) ? 0 : value(a) === null || (value(b) !== null && value(a) < value(b)) ? -1 : 1);
    kept.sort(order);
    return way === "down" ? kept.reverse() : kept;
  }

  draw() {
    const shown = this.shown();
    byId("filter").value = state.filter;
    byId("sort").value = state.sort;
    byId("image-list").replaceChildren(...shown.map((image) => this.entry(image)));
    byId("image-count").textContent = `${shown.length} of ${this.images.length} images${this.run.second ? " in common" : ""}`;
    this.onDraw();
  }

  entry(image) {
    const [cig, abstain, wrong] = this.scores(image);
    const of = state.of === null ? "" : ` of ${this.run.vertices[state.of].name}`;
    const facts = [cig === null ? "no ground truth" : `CIG ${cig.toFixed(3)}`, wrong === null ? "" : `wrong ${percent(wrong)}${of}`,
      abstain === null ? "" : `abstained ${percent(abstain)}`].filter(Boolean);
    const picture = make("img", { src: `/api/thumbnail?${new URLSearchParams({ image: image.name })}`, alt: "",
      loading: "lazy", width: 72, height: 54 });
    const button = make("button", { type: "button", class: "image", "data-image": image.name,
      "aria-current": image.name === state.image ? "true" : null, onclick: () => toImage(image.name) }, [
      picture, make("span", { class: "image-words" }, [make("span", { class: "image-name", text: image.name }),
        ...facts.map((text) => make("span", { class: "quiet", text }))])]);
    return make("li", {}, [button]);
  }

  mark() {
    for (const button of byId("image-list").querySelectorAll("button")) {
      const here = button.dataset.image === state.image;
      if (here) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      if (here) keepInSight(byId("image-list"), button);
    }
  }

  step(by) {
    const names = this.shown().map(({ name }) => name);
    if (!names.length) return;
    const place = (names.indexOf(state.image) + by + names.length) % names.length;
    toImage(names[place]);
  }
}

// Scrolls the list alone: the page stays where its reader is.
function keepInSight(list, { offsetLeft: x, offsetTop: y, offsetWidth: wide, offsetHeight: tall }) {
  const nearest = (now, start, end, shown) => Math.max(Math.min(now, start), end - shown);
  list.scrollLeft = nearest(list.scrollLeft, x, x + wide, list.clientWidth);
  list.scrollTop = nearest(list.scrollTop, y, y + tall, list.clientHeight);
}
