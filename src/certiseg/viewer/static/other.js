// What pane B shows: a plain label map, a method of the run, or a method of the second run.

import { make } from "./elements.js";
import { Painter } from "./paint.js";
import { choice, state } from "./state.js";

export const PLAIN = { truth: "Ground truth", prediction: "Model without noise" };
const FOLLOWED = ["tau", "alpha", "correction", "k", "test"];

export class Other {
  // fixed: gives the values that the run fixed for the controls, to tell which of them were moved.
  constructor(run, painter, fixed) {
    Object.assign(this, { run, fixed, choices: new Map() });
    for (const method of run.methods) this.choices.set(method.text, { ...method, run, painter, path: "" });
    if (run.second) this.addSecond(run.second, new Painter({ ...run, ...run.second }));
  }

  addSecond(run, painter) {
    const label = ({ name }, { sigma, n, tau }) =>
      run.settings.length === 1 ? name : `${name}, sigma = ${sigma}, n = ${n}, tau = ${tau}`;
    for (const setting of run.settings) {
      for (const method of run.methods) {
        this.choices.set(`second/${method.text}@${setting.sigma}:${setting.n}:${setting.tau}`,
          { ...method, label: label(method, setting), setting, run, painter, path: "/second" });
      }
    }
  }

  options() {
    const option = (value, text) => make("option", { value, text });
    const of = (path) => [...this.choices].filter(([, known]) => known.path === path)
      .map(([value, known]) => option(value, known.label ?? known.name));
    const plain = Object.entries(PLAIN).map(([value, text]) => option(value, text));
    if (!this.run.second) return [...of(""), ...plain];
    return [make("optgroup", { label: this.run.second.name }, of("/second")),
      make("optgroup", { label: this.run.name }, of("")), make("optgroup", { label: "labels" }, plain)];
  }

  // As the page opens: the promise of the second run, or the run's first method of another kind.
  first(method) {
    if (!this.run.second) return this.run.methods.find(({ settings }) => settings.method !== method)?.text ?? "truth";
    const { method: text, setting: { sigma, n, tau } } = this.run.second.promised;
    return `second/${text}@${sigma}:${n}:${tau}`;
  }

  knows(value) {
    return this.choices.has(value) || Object.hasOwn(PLAIN, value);
  }

  get plain() {
    return Object.hasOwn(PLAIN, state.other);
  }

  get chosen() {
    return this.choices.get(state.other);
  }

  // The settings of map B. Of a second run they are its own, but for the controls that were moved.
  query() {
    const { setting, settings } = this.chosen;
    if (!setting) return choice(settings);
    const fixed = this.fixed();
    const moved = FOLLOWED.filter((name) => state[name] !== (fixed[name] ?? state[name]));
    return choice(settings, { radius: null, k: 1, ...setting, ...settings,
      ...Object.fromEntries(moved.map((name) => [name, state[name]])) });
  }
}
