// Objects and areas: what was measured while the votes were drawn, and what is asked about a region by pointing at it.

import { Lane } from "./api.js";
import { byId, make, percent, press } from "./elements.js";
import { Shapes } from "./shapes.js";
import { choice } from "./state.js";

const ROLES = { promise: "Promise", comparison: "Comparison", exploration: "Exploration, not a promise" };
const KINDS = ["share", "free", "overlap", "kept", "accuracy", "dice"];
const WHOLE = { kept: () => "pixels that keep their class", accuracy: () => "pixels labelled rightly",
  dice: ({ label }) => `Dice of ${label}`, free: ({ label }) => `free of ${label} elsewhere` };

export class Ask {
  // words: shows a title, a text and a command in the dialog of the page.
  constructor(run, stage, { words }) {
    Object.assign(this, { run, stage, words, shapes: new Shapes(stage), rows: [], role: null, chosen: null, corners: [],
      answer: null, open: false, tool: "look" });
    this.lanes = {
      objects: new Lane("/api/objects", "o", { onAnswer: (answer) => this.showObjects(answer), onError: (text) => this.complain(text) }),
      ask: new Lane("/api/ask", "q", { onAnswer: (answer) => this.show(answer), onError: (text) => this.complain(text) }),
    };
    byId("ask-label").append(make("option", { value: "", text: "the object's own class" }), ...this.labels());
    byId("ask-label").value = run.vertices[0].name;
    this.listen();
    this.take("look");
  }

  labels() {
    return this.run.vertices.map(({ name, level }) => make("option", { value: name, text: `${name}${level ? ` (level ${level})` : ""}` }));
  }

  listen() {
    for (const button of document.querySelectorAll("[data-tool]")) button.addEventListener("click", () => this.take(button.dataset.tool));
    for (const id of ["ask-label", "ask-kind"]) byId(id).addEventListener("change", () => this.again());
    byId("ask-corners").addEventListener("change", () => this.typed());
    byId("ask-close").addEventListener("click", () => this.close());
    byId("ask-clear").addEventListener("click", () => this.clear());
    byId("ask-command").addEventListener("click", () => this.command());
    byId("objects-claim").addEventListener("click", () => this.words("Bounds of what was measured", this.claim));
  }

  // -- what was measured ------------------------------------------------------------------------------------------

  // Another image: what is drawn belongs to the old one.
  forget() {
    this.rows = [];
    this.chosen = null;
    this.shapes.objects([], {});
    this.clear();
  }

  refresh() {
    this.lanes.objects.ask(choice());
    this.again();
  }

  showObjects({ role, rows, why, claim, extent }) {
    const before = this.chosen?.name;
    Object.assign(this, { rows, role, claim, chosen: rows.find(({ name }) => before && name === before) ?? null });
    const chip = byId("objects-role");
    chip.className = `chip ${role ?? ""}`;
    chip.hidden = !rows.length;
    chip.textContent = rows.length ? `${ROLES[role]}: for ${extent}` : "";
    byId("objects-why").textContent = why ?? "";
    byId("objects-claim").hidden = !rows.length;
    byId("objects").hidden = !rows.length;
    byId("objects-rows").replaceChildren(...rows.map((row) => this.row(row)));
    this.draw();
  }

  row(row) {
    const told = KINDS.filter((kind) => row.bounds[kind]);
    const kindOf = (kind) => (row.whole ? "" : kind === "overlap" ? "IoU " : kind === "free" ? "free " : "");
    const bounds = told.map((kind) => `${kindOf(kind)}≥ ${row.bounds[kind]}`);
    const name = row.outline ? make("button", { type: "button", class: "object", text: row.name,
      "aria-pressed": String(row === this.chosen), onclick: () => this.choose(row === this.chosen ? null : row) }) : (WHOLE[told[0]]?.(row) ?? row.name);
    return make("tr", { title: row.says.join("; ") }, [make("th", { scope: "row" }, [name]),
      make("td", { class: "number", text: bounds.join(", ") })]);
  }

  choose(row) {
    this.chosen = row;
    this.draw();
    for (const button of byId("objects-rows").querySelectorAll(".object")) {
      button.setAttribute("aria-pressed", String(button.textContent === row?.name));
    }
    byId("objects-says").textContent = row ? row.says.join("; ") : "";
  }

  draw() {
    this.shapes.objects(this.rows, { role: this.role, chosen: this.chosen });
  }

  // -- what is asked ----------------------------------------------------------------------------------------------

  take(tool) {
    this.tool = tool;
    const label = byId("ask-label");
    if (tool === "object") label.value = "";
    else if (!label.value) label.value = this.run.vertices[0].name;
    press(document.querySelectorAll("[data-tool]"), "tool", tool);
    byId("ask-close").hidden = tool !== "polygon";
    this.stage.root.classList.toggle("drawing", tool !== "look");
    this.stage.tool = tool === "look" ? null : { down: (at) => this.down(at), move: (at) => this.move(at),
      up: (at) => this.up(at), twice: () => tool === "polygon" && this.close() };
    const words = { look: "", box: "Drag a box over a map.", polygon: "Click the corners; a double click closes the polygon.",
      object: "Click a pixel: the part of the candidate map around it is the object." };
    byId("ask-hint").textContent = words[tool];
  }

  // A point of the image in pixels, from shares of it.
  place({ x, y }) {
    const inside = (share, size) => Math.round(Math.min(1, Math.max(0, share)) * size * 10) / 10;
    return [inside(x, this.stage.size.width), inside(y, this.stage.size.height)];
  }

  down(at) {
    if (this.tool === "box") this.start = this.place(at);
  }

  move(at) {
    if (this.tool === "box" && this.start) this.set(box(this.start, this.place(at)));
    else if (this.tool === "polygon" && this.open) this.shapes.region([...this.corners, this.place(at)], { open: true });
  }

  up(at) {
    const [x, y] = this.place(at);
    if (this.tool === "box" && this.start) {
      const begun = this.start;
      this.start = null;
      if (begun[0] === x || begun[1] === y) return;
      this.set(box(begun, [x, y]));
      this.ask({ corners: this.corners });
    } else if (this.tool === "polygon") {
      const last = this.open ? this.corners.at(-1) : null;
      if (last && last[0] === x && last[1] === y) return; // the second half of a double click
      this.set(this.open ? [...this.corners, [x, y]] : [[x, y]], true);
    } else if (this.tool === "object") {
      const at = [Math.min(Math.floor(y), this.stage.size.height - 1), Math.min(Math.floor(x), this.stage.size.width - 1)];
      this.set([]);
      this.ask({ at });
    }
  }

  close() {
    if (this.corners.length < 3) return;
    this.set(this.corners);
    this.ask({ corners: this.corners });
  }

  set(corners, open = false) {
    Object.assign(this, { corners, open });
    byId("ask-corners").value = corners.map((corner) => corner.join(",")).join(" ");
    this.shapes.region(corners, { open });
  }

  typed() {
    const corners = byId("ask-corners").value.trim().split(/\s+/).map((part) => part.split(",").map(Number));
    if (corners.some((corner) => corner.length !== 2 || corner.some((value) => !Number.isFinite(value)))) {
      this.complain("corners must be numbers x,y with spaces between the corners");
      return;
    }
    this.set(corners);
    this.ask({ corners });
  }

  ask(region) {
    this.region = region;
    this.again();
  }

  // The same region again: other settings, another label.
  again() {
    if (!this.region) return;
    const label = byId("ask-label").value || null;
    this.lanes.ask.ask({ ...choice(), body: JSON.stringify({ kind: byId("ask-kind").value, label, ...this.region }) });
  }

  clear() {
    this.region = this.answer = null;
    this.set([]);
    byId("ask-answer").replaceChildren();
    byId("ask-error").textContent = "";
    byId("ask-buttons").hidden = true;
  }

  complain(text) {
    byId("ask-answer").replaceChildren();
    byId("ask-buttons").hidden = true;
    byId("ask-error").textContent = text;
  }

  show(answer) {
    if (!this.region) return;
    this.answer = answer;
    byId("ask-error").textContent = "";
    if (answer.outline) this.shapes.region([], { path: answer.outline });
    const seen = Object.entries(answer.seen).map(([where, share]) => make("div", {}, [make("dt", { text: where }),
      make("dd", { text: percent(share) })]));
    const chip = make("p", { class: "chip exploration", text: answer.why ? "No bound" : `${ROLES.exploration}: for ${answer.extent}` });
    const said = answer.why ? [answer.why] : answer.bounds.map(({ says }) => says);
    byId("ask-answer").replaceChildren(
      make("p", { text: `${answer.label} in ${answer.name} of ${answer.pixels} pixels:` }),
      make("dl", { class: "facts" }, seen), chip, ...said.map((text) => make("p", { class: "said", text })));
    const file = byId("ask-file");
    URL.revokeObjectURL(file.href);
    file.href = URL.createObjectURL(new Blob([JSON.stringify(answer.file)], { type: "application/json" }));
    file.download = answer.file_name;
    const picture = byId("ask-picture");
    picture.hidden = !answer.save_picture;
    picture.href = `/api/picture?${new URLSearchParams({ image: choice().image })}`;
    picture.download = `${choice().image}.png`;
    byId("ask-buttons").hidden = false;
  }

  command() {
    this.words("How to make it a promise", "This region was chosen while the votes could be looked at. Fresh draws can prove " +
      `something about it: save ${this.answer.file_name} with the link beside this button` +
      `${this.answer.save_picture ? ", and the photograph" : ""}, then run once, and keep what it says:`, this.answer.command);
  }

  escape() {
    if (document.querySelector("dialog[open]")) return;
    if (this.open || this.region) this.clear();
    else if (this.chosen) this.choose(null);
  }
}

const box = ([left, top], [right, bottom]) => [[left, top], [right, top], [right, bottom], [left, bottom]];
