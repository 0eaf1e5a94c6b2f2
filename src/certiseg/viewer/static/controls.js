// The sliders: tau, alpha, thresholds, method, correction, level, max_set; each change is computed while dragging.

import { byId, make } from "./elements.js";
import { change, state } from "./state.js";

const WORDS = {
  segcertify: "the candidate class, or nothing",
  level: "the vertex at one level of the hierarchy",
  adaptive: "a level by the lead of the best class in the first draws",
  nested: "the finest vertex on the way to the root that passes",
  sets: "the smallest set of best ranked classes that passes",
};

export class Controls {
  constructor(run) {
    this.run = run;
    this.outputs = {};
    const root = byId("controls");
    root.append(this.methods(), this.words, ...this.extras(), this.tau(), this.alpha(), this.corrections(), this.votes());
    this.show();
  }

  methods() {
    this.buttons = this.run.all_methods.map(({ method, name }, index) =>
      make("button", { type: "button", text: name, "data-method": method, "aria-keyshortcuts": String(index + 1),
        title: `${name}: ${WORDS[method]} (key ${index + 1})`, onclick: () => this.pick(method) }));
    this.words = make("p", { class: "quiet words" });
    return make("div", { class: "segmented wide", role: "group", "aria-label": "Method" }, this.buttons);
  }

  pick(method) {
    const chain = method === "nested" || method === "sets";
    const allowed = chain ? this.run.chain_corrections : this.run.corrections;
    change({ method, correction: allowed.includes(state.correction) ? state.correction : "bonferroni" });
  }

  slider(id, label, attributes, oninput, hint = "") {
    const input = make("input", { id, type: "range", ...attributes, oninput: () => oninput(Number(input.value)) });
    this.outputs[id] = make("output", { for: id });
    const row = make("div", { class: "control", "data-for": id }, [
      make("label", { for: id, text: label, title: hint }), this.outputs[id], input]);
    this[id] = input;
    return row;
  }

  tau() {
    return this.slider("tau", "tau", { min: 0.5, max: 0.99, step: 0.005 }, (tau) => change({ tau }),
      "the share of votes that must be exceeded");
  }

  alpha() {
    return this.slider("alpha", "alpha", { min: -6, max: -0.3, step: 0.05 },
      (position) => change({ alpha: Number((10 ** position).toPrecision(3)) }), "the allowed error");
  }

  extras() {
    const levels = this.run.num_levels - 1;
    this.level_row = this.slider("level", "level", { min: 0, max: levels, step: 1 }, (level) => change({ level }));
    this.set_row = this.slider("max_set", "largest set", { min: 1, max: 5, step: 1 }, (max_set) => change({ max_set }));
    this.threshold_rows = Array.from({ length: levels }, (_, index) =>
      this.slider(`threshold-${index}`, `level ${levels - index} if the lead is at most`, { min: 0, max: 1, step: 0.01 },
        (value) => this.threshold(index, value)));
    return [this.level_row, this.set_row, ...this.threshold_rows];
  }

  // Thresholds are written coarsest level first and must not decrease: neighbours follow.
  threshold(index, value) {
    const thresholds = state.thresholds.map((old, place) =>
      place === index ? value : place < index ? Math.min(old, value) : Math.max(old, value));
    change({ thresholds });
  }

  corrections() {
    const options = this.run.corrections.map((name) => make("option", { value: name, text: name }));
    this.correction = make("select", { id: "correction", onchange: () => change({ correction: this.correction.value }) },
      options);
    this.k = make("input", { id: "k", type: "number", min: 1, max: 100000, step: 1,
      onchange: () => change({ k: Math.max(1, Math.round(Number(this.k.value)) || 1) }) });
    this.k_row = make("div", { class: "control" }, [make("label", { for: "k", text: "fewer than k false" }), this.k]);
    this.test = make("select", { id: "test", onchange: () => change({ test: this.test.value }) },
      ["fixed", "anytime"].map((name) => make("option", { value: name, text: name })));
    return make("div", { class: "pairs" }, [
      make("div", { class: "control" }, [make("label", { for: "correction", text: "correction" }), this.correction]),
      make("div", { class: "control" }, [make("label", { for: "test", text: "test" }), this.test]),
      this.k_row]);
  }

  votes() {
    const is = this.run.stops ? "up to" : "=";
    const pairs = this.run.sigmas.flatMap((sigma) => this.run.draws.map((n) => ({ sigma, n })));
    this.vote_select = make("select", { id: "votes", onchange: () => change(pairs[this.vote_select.value]) },
      pairs.map(({ sigma, n }, index) => make("option", { value: index, text: `sigma = ${sigma}, n ${is} ${n}` })));
    this.pairs = pairs;
    return make("div", { class: "control" }, [make("label", { for: "votes", text: "votes" }), this.vote_select]);
  }

  // Bring every control in step with the state; max: how many classes the votes rank.
  show({ max, stopped } = {}) {
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.method === state.method));
    this.words.textContent = WORDS[state.method];
    this.tau.value = state.tau;
    this.outputs.tau.textContent = String(Number(state.tau.toFixed(4)));
    this.alpha.value = Math.log10(state.alpha);
    this.outputs.alpha.textContent = String(Number(state.alpha.toPrecision(3)));
    this.level.value = state.level;
    this.outputs.level.textContent = state.level;
    if (max) this.max_set.max = max;
    this.max_set.value = state.max_set;
    this.outputs.max_set.textContent = state.max_set;
    state.thresholds.forEach((value, index) => {
      if (!this[`threshold-${index}`]) return;
      this[`threshold-${index}`].value = value;
      this.outputs[`threshold-${index}`].textContent = value;
    });
    this.level_row.hidden = state.method !== "level";
    this.set_row.hidden = state.method !== "sets";
    for (const row of this.threshold_rows) row.hidden = state.method !== "adaptive";
    const chain = state.method === "nested" || state.method === "sets";
    for (const option of this.correction.options) {
      option.disabled = chain && !this.run.chain_corrections.includes(option.value);
    }
    this.correction.value = state.correction;
    this.k.value = state.k;
    this.k_row.hidden = state.correction !== "kfwer";
    this.test.value = state.test;
    this.test.options[0].disabled = Boolean(stopped);
    this.vote_select.value = this.pairs.findIndex(({ sigma, n }) => sigma === state.sigma && n === state.n);
    this.vote_select.disabled = this.pairs.length < 2;
  }
}

export function nextLevel(run) {
  const level = state.method === "level" ? (state.level + 1) % run.num_levels : state.level;
  change({ method: "level", level });
}
