// Images x classes x methods as the run counted them, worst first; a click goes to the image.

import { ask } from "./api.js";
import { shareCells } from "./classes.js";
import { byId, make } from "./elements.js";
import { saveText } from "./save.js";
import { change, state } from "./state.js";

const PAGE = 40;
const TOGETHER = -1;
const ORDERS = { wrong: (row) => row[5] / row[3], "wrong-pixels": (row) => row[5], abstained: (row) => row[6] / row[3],
  right: (row) => -row[4] / row[3] };

export class Table {
  constructor(run, { names, chosen, go }) {
    Object.assign(this, { run, names, chosen, go, told: null, key: "", most: PAGE });
    byId("table-method").append(make("option", { value: "", text: "every method" }),
      ...run.methods.map(({ text, name }) => make("option", { value: text, text: name })));
    byId("table-class").append(make("option", { value: "", text: "each class" }),
      make("option", { value: TOGETHER, text: "all classes together" }),
      ...run.vertices.slice(0, run.num_classes).map(({ name }, id) => make("option", { value: id, text: name })));
    byId("table-method").value = run.promised.method;
    for (const id of ["table-method", "table-class", "table-order"]) byId(id).addEventListener("change", () => this.draw(PAGE));
    byId("table-more").addEventListener("click", () => this.draw(this.most * 4));
    byId("table-csv").addEventListener("click", () => this.save());
  }

  // Read the table of a setting once; what was asked meanwhile for another is dropped.
  async use(setting) {
    const key = JSON.stringify(setting);
    if (key === this.key) return;
    this.key = key;
    const told = await ask("/api/table", setting).catch(({ message }) => (byId("table-words").textContent = message) && null);
    if (key !== this.key || !told) return;
    Object.assign(this, { told, setting });
    this.draw(PAGE);
    return true;
  }

  // The share of an image that a method certifies wrong, among the pixels of one class; null where it does not occur.
  wrongOf(image, method, of) {
    const row = this.told?.rows.find((row) => this.told.images[row[0]] === image && row[1] === of &&
      this.told.methods[row[2]] === method);
    return row ? row[5] / row[3] : null;
  }

  rows() {
    const method = this.told.methods.indexOf(byId("table-method").value);
    const wanted = byId("table-class").value;
    const kept = new Set(this.names());
    const found = this.told.rows.filter((row) => (method < 0 || row[2] === method) && kept.has(this.told.images[row[0]]) &&
      (wanted === "" || Number(wanted) === TOGETHER || row[1] === Number(wanted)));
    const rows = Number(wanted) === TOGETHER && wanted !== "" ? added(found) : found.slice();
    const by = ORDERS[byId("table-order").value];
    return rows.sort((a, b) => by(b) - by(a) || b[5] - a[5]);
  }

  draw(most = this.most) {
    if (!this.told) return;
    this.most = most;
    const rows = this.rows();
    byId("table-rows").parentElement.classList.toggle("one-method", byId("table-method").value !== "");
    byId("table-rows").replaceChildren(...rows.slice(0, most).map((row) => this.row(row)));
    byId("table-more").hidden = rows.length <= most;
    const { sigma, n, tau } = this.setting;
    byId("table-words").textContent = `${Math.min(most, rows.length)} of ${rows.length} rows, as the run counted them at ` +
      `sigma = ${sigma}, n = ${n}, tau = ${tau}; void pixels left out. ${this.run.promised.method} at the promised ` +
      "setting is the promise, all else a comparison from the same draws.";
  }

  // The rows of the image that is shown.
  mark() {
    for (const row of byId("table-rows").children) {
      if (row.dataset.image === state.image) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  className(id) {
    return id === TOGETHER ? "all classes" : this.told.classes[id];
  }

  row(row) {
    const [image, id, place, ...counts] = row;
    const method = this.run.methods[place];
    const name = this.told.images[image];
    const link = make("button", { type: "button", class: "plain", text: name, title: `show ${name}`,
      onclick: () => this.go(name, method, id === TOGETHER ? null : id) });
    return make("tr", { "data-image": name, "aria-current": name === state.image ? "true" : null }, [make("th", { scope: "row" }, [link]),
      make("td", { class: "name", text: this.className(id) }), make("td", { class: "name method", text: method.name }), ...shareCells(...counts)]);
  }

  roleOf(method) {
    const { method: promised, setting } = this.run.promised;
    return method === promised && JSON.stringify(setting) === JSON.stringify(this.setting) ? "promise" : "comparison";
  }

  save() {
    const { sigma, n, tau } = this.setting;
    const head = ["run", "model", "role", "sigma", "n", "tau", ...this.told.columns];
    const lines = this.rows().map(([image, id, place, ...counts]) => [this.run.name, this.run.model,
      this.roleOf(this.told.methods[place]), sigma, n, tau, this.told.images[image], this.className(id),
      this.told.methods[place], ...counts]);
    saveText(`${this.run.name}-table.csv`, [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n", "text/csv");
  }
}

// The classes of an image and method added up.
function added(rows) {
  const sums = new Map();
  for (const [image, , method, ...counts] of rows) {
    const key = `${image} ${method}`;
    const sum = sums.get(key) ?? [image, TOGETHER, method, 0, 0, 0, 0];
    counts.forEach((count, index) => (sum[index + 3] += count));
    sums.set(key, sum);
  }
  return [...sums.values()];
}

// Quoted where needed; text that a spreadsheet would run as a formula is marked as text.
function cell(value) {
  const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
