// Certified and right, certified and wrong, abstained by true class, for map A as it is shown; a click shows a class alone.

import { byId, make, percent } from "./elements.js";
import { change, state } from "./state.js";

export class Classes {
  constructor(run) {
    this.run = run;
    byId("classes-all").addEventListener("click", () => change({ of: null }));
  }

  show(answer, entry) {
    const rows = answer.by_class ?? [];
    byId("classes-none").hidden = rows.length > 0;
    byId("classes-none").textContent = entry.dropped ? "There is no ground truth for a dropped image." : "";
    byId("classes-table").hidden = rows.length === 0;
    byId("classes-all").hidden = state.of === null;
    const sum = (place) => rows.reduce((total, row) => total + row[place], 0);
    byId("classes-sum").textContent = rows.length ? `${answer.name}: ${sum(3).toLocaleString("en")} of ` +
      `${sum(1).toLocaleString("en")} labelled pixels are certified and wrong (${percent(sum(3) / sum(1))}).` : "";
    byId("classes-rows").replaceChildren(...rows.map((row) => this.row(row)));
  }

  row([id, pixels, right, wrong, abstained]) {
    const name = this.run.vertices[id].name;
    const button = make("button", { type: "button", class: "plain", text: name, "aria-pressed": String(state.of === id),
      "data-of": id, title: `show only pixels that are ${name}`,
      onclick: () => change({ of: state.of === id ? null : id, colours: "verdict" }) });
    return make("tr", {}, [make("th", { scope: "row" }, [button]), ...shareCells(pixels, right, wrong, abstained)]);
  }
}

// Pixels, the three shares, and a bar of them.
export function shareCells(pixels, right, wrong, abstained) {
  const share = (part) => percent(part / pixels);
  return [make("td", { class: "pixels", text: pixels.toLocaleString("en") }), make("td", { text: share(right) }),
    make("td", { class: "wrong", text: share(wrong) }), make("td", { text: share(abstained) }),
    make("td", { class: "bar-cell" }, [shareBar(pixels, { right, wrong, abstained })])];
}

function shareBar(pixels, parts) {
  const bar = make("span", { class: "share-bar", "aria-hidden": "true" });
  for (const [name, count] of Object.entries(parts)) {
    const part = make("span", { class: `part-${name}` });
    part.style.width = `${(count / pixels) * 100}%`;
    bar.append(part);
  }
  return bar;
}
