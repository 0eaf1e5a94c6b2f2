// The image list: thumbnails, CIG and abstain rate of the run's own certificates, filter and sort.

import { ask } from "./api.js";
import { byId, make, percent } from "./elements.js";
import { state, toImage } from "./state.js";

export class ImageList {
  constructor(run) {
    this.run = run;
    this.images = [];
    this.key = "";
    byId("filter").addEventListener("input", () => this.draw());
    byId("sort").addEventListener("change", () => this.draw());
  }

  async load() {
    this.images = await ask("/api/images");
    this.draw();
  }

  // The run's setting and method whose scores are listed.
  use(key) {
    if (key === this.key) return;
    this.key = key;
    this.draw();
  }

  scores(image) {
    if (image.dropped) return [null, image.summary.abstain];
    return image.scores[this.key] ?? [null, null];
  }

  shown() {
    const wanted = byId("filter").value.trim().toLowerCase();
    const [by, way] = byId("sort").value.split("-");
    const kept = this.images.filter(({ name }) => name.toLowerCase().includes(wanted));
    const value = (image) => (by === "name" ? image.name : this.scores(image)[by === "cig" ? 0 : 1]);
    if (by === "run") return kept;
    const order = (a, b) => (value(a) === value(b) ? 0 : value(a) === null || (value(b) !== null && value(a) < value(b)) ? -1 : 1);
    kept.sort(order);
    return way === "down" ? kept.reverse() : kept;
  }

  draw() {
    const shown = this.shown();
    byId("image-list").replaceChildren(...shown.map((image) => this.entry(image)));
    byId("image-count").textContent = `${shown.length} of ${this.images.length} images`;
  }

  entry(image) {
    const [cig, abstain] = this.scores(image);
    const facts = [cig === null ? "no ground truth" : `CIG ${cig.toFixed(3)}`,
      abstain === null ? "" : `abstained ${percent(abstain)}`];
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
