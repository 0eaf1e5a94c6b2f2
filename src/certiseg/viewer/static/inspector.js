// What is known about the pixel under the pointer.

import { byId, down, make, percent, rgb, swatch } from "./elements.js";

export class Inspector {
  constructor(run) {
    this.colours = new Map(run.vertices.map(({ name, colour }) => [name, colour]));
    this.root = byId("inspector");
    this.card = this.root.parentElement;
  }

  clear() {
    this.card.hidden = true;
  }

  // left, top: in which half of the stage the pixel lies; the card takes the other one.
  show(pixel, { pinned, map, left, top }) {
    this.card.hidden = false;
    this.card.classList.toggle("at-right", left);
    this.card.classList.toggle("at-bottom", top);
    const labels = pixel.certified;
    const title = labels.length ? labels.join(" or ") : "abstained";
    const head = make("div", { class: "pixel-head" }, [
      swatch(labels.length ? this.colours.get(labels[0]) : null),
      make("h2", { id: "pixel-title", text: title }),
      make("span", { class: "quiet", text: `${map}, row ${pixel.row}, column ${pixel.column}${pinned ? ", pinned" : ""}` })]);
    const facts = [["ground truth", pixel.truth], ["model without noise", pixel.prediction],
      ["radius", pixel.radius === null ? null : down(pixel.radius, 4)],
      ["lead of the candidate", pixel.gap.toFixed(3)]].filter(([, value]) => value !== null);
    const list = make("dl", { class: "facts" }, facts.map(([name, value]) =>
      make("div", {}, [make("dt", { text: name }), make("dd", { text: value })])));
    this.root.replaceChildren(head, make("p", { id: "pixel-why", text: pixel.why }), make("div", { class: "chains" }, [
      this.chain("To the root", pixel, pixel.path.map((link) => [link.name, link.votes, link.passes])),
      this.chain("Best ranked classes", pixel, pixel.sets.map((link) =>
        [link.size === 1 ? link.added : `+ ${link.added}`, link.votes, link.passes, link.added]))]), list);
  }

  // Votes along a chain of growing labels, with a mark at what is needed.
  chain(title, pixel, links) {
    const rows = links.map(([name, votes, passes, colour]) => {
      const bar = make("span", { class: "votes-bar", "aria-hidden": "true" }, [make("span", { class: "votes-part" })]);
      bar.firstChild.style.width = percent(votes / pixel.n, 2).replace(" ", "");
      bar.firstChild.style.backgroundColor = rgb(this.colours.get(colour ?? name));
      if (pixel.critical !== null) {
        const mark = make("span", { class: "votes-mark" });
        mark.style.left = `${(pixel.critical / pixel.n) * 100}%`;
        bar.append(mark);
      }
      return make("tr", { class: passes ? "passes" : "" }, [make("th", { scope: "row", text: name }), make("td", {}, [bar]),
        make("td", { class: "count", text: `${votes} of ${pixel.n}${passes ? " ✓" : ""}` })]);
    });
    return make("table", { class: "chain" }, [make("caption", { text: title }), make("tbody", {}, rows)]);
  }
}
