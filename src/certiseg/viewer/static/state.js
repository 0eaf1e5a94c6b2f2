// What is shown: one object, kept in the address so that a reload comes back to it, and those who want to know.

export const state = {
  image: null,
  sigma: 0,
  n: 0,
  tau: 0.75,
  method: "nested",
  alpha: 0.001,
  correction: "bonferroni",
  k: 1,
  test: "fixed",
  thresholds: [],
  level: 0,
  max_set: 5,
  other: "truth",
  colours: "label",
  layout: "grid",
  highlight: null,
  side: "within",
};

const IN_ADDRESS = ["image", "sigma", "n", "tau", "method", "alpha", "correction", "k", "test", "thresholds", "level",
  "max_set", "other", "colours", "layout"];
const NUMBERS = new Set(["sigma", "n", "tau", "alpha", "k", "level", "max_set"]);
const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

export function change(changes) {
  Object.assign(state, changes);
  const address = new URLSearchParams();
  for (const name of IN_ADDRESS) if (state[name] !== null) address.set(name, state[name]);
  history.replaceState(null, "", `#${address}`);
  for (const listener of listeners) listener(Object.keys(changes));
}

export function fromAddress() {
  const found = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (!IN_ADDRESS.includes(name)) continue;
    if (name === "thresholds") found[name] = value ? value.split(",").map(Number) : [];
    else if (!NUMBERS.has(name)) found[name] = value;
    else if (Number.isFinite(Number(value))) found[name] = Number(value);
  }
  return found;
}

// The settings of a method as the server wants them; another method differs in its own values only.
export function choice(method = null) {
  const own = ["method", "thresholds", "level", "max_set"].filter((name) => method?.[name] !== undefined);
  const asked = { ...state, ...Object.fromEntries(own.map((name) => [name, method[name]])) };
  const chain = asked.method === "nested" || asked.method === "sets";
  const correction = chain && !["bonferroni", "holm"].includes(asked.correction) ? "bonferroni" : asked.correction;
  const query = { image: asked.image, sigma: asked.sigma, n: asked.n, method: asked.method, tau: asked.tau,
    alpha: asked.alpha, correction, test: asked.test };
  if (correction === "kfwer") query.k = asked.k;
  if (asked.method === "adaptive") query.thresholds = asked.thresholds.join(",");
  if (asked.method === "level") query.level = asked.level;
  if (asked.method === "sets") query.max_set = asked.max_set;
  return query;
}
