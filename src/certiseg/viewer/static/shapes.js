// Lines over the maps: outlines of objects with their names, and the region that is being drawn.

const SPACE = "http://www.w3.org/2000/svg";
const MOST_NAMES = 12;

function svg(tag, attributes, text = "") {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

export class Shapes {
  constructor(stage) {
    this.stage = stage;
    this.layers = {};
    for (const [name, { shapes }] of Object.entries(stage.panes)) {
      const parts = { objects: svg("g", { class: "objects" }), region: svg("g", { class: "region" }) };
      shapes.append(parts.objects, parts.region);
      this.layers[name] = parts;
    }
  }

  // Found objects over image and maps, true ones over the ground truth; the largest found ones are named.
  objects(rows, { role, chosen }) {
    for (const [pane, { objects }] of Object.entries(this.layers)) {
      objects.setAttribute("class", `objects ${role ?? ""}`);
      const here = rows.filter((row) => row.outline && row.found === (pane !== "truth"));
      objects.replaceChildren(...here.flatMap((row, index) => {
        const marked = row === chosen ? " chosen" : "";
        const lines = [svg("path", { class: `casing${marked}`, d: row.outline }), svg("path", { class: `line${marked}`, d: row.outline })];
        const [left, y] = row.at;
        const width = this.stage.size.width;
        const [x, anchor] = left > 0.75 * width ? [width, "end"] : [left, "start"];
        return (row.found && index < MOST_NAMES) || marked ? [...lines, svg("text", { x, y, "text-anchor": anchor }, nameOf(row))] : lines;
      }));
    }
  }

  // corners: [[x, y], ...] in pixels; path: an outline instead of them.
  region(corners, { path = null, open = false } = {}) {
    const joined = corners.map(([x, y], index) => `${index ? "L" : "M"}${x} ${y}`).join("") + (open || !corners.length ? "" : "Z");
    for (const { region } of Object.values(this.layers)) {
      const d = path ?? joined;
      region.replaceChildren(...(d ? [svg("path", { class: "casing", d }), svg("path", { class: "line", d })] : []));
    }
  }
}

export const nameOf = (row) => `${row.name}: ${row.bounds.share ? `≥ ${row.bounds.share}` : `free ≥ ${row.bounds.free}`}`;
