// What is shown: one object, kept in the address, so that a reload, a link and the Back button come to it.

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
  radius: null,
  other: "truth",
  colours: "label",
  layout: "grid",
  pane: "a",
  beside: "truth", // what lies beside the image: the ground truth, or the difference of A and B
  highlight: null,
  side: "within",
  of: null, // the true class whose pixels alone are shown
  pin: null, // { row, column, pane }
  view: null, // { zoom, x, y }, null for the whole image
  opacity: 0.75,
  split: 0.5,
  sort: "run",
  filter: "",
  brush: null, // { by, from, to }: the images that are listed
};

export const LAYOUTS = ["grid", "swipe", "single"];
export const COLOURS = ["label", "radius", "reason", "group", "verdict"];
const ALLOWED = { colours: COLOURS, layout: LAYOUTS, side: ["within", "excludes"], pane: ["photo", "truth", "difference", "a", "b"],
  beside: ["truth", "difference"], sort: ["run", "cig-up", "cig-down", "abstain-down", "abstain-up", "wrong-down", "name"],
  method: ["segcertify", "level", "adaptive", "nested", "sets"], test: ["fixed", "anytime"],
  correction: ["bonferroni", "holm", "kfwer", "by"] };
const NUMBERS = new Set(["sigma", "n", "tau", "alpha", "k", "level", "max_set", "radius", "highlight", "of", "opacity",
  "split"]);
// Changes of these are steps that Back undoes; sliders and zoom belong to the step they are moved in.
const STEPS = ["image", "method", "correction", "test", "other", "colours", "layout", "pane", "highlight", "side", "pin",
  "beside", "of", "brush"];
const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

export function change(changes, { step = true } = {}) {
  const isStep = step && STEPS.some((name) => name in changes && written(name, changes[name]) !== written(name, state[name]));
  Object.assign(state, changes);
  write(isStep ? "pushState" : "replaceState");
  for (const listener of listeners) listener(Object.keys(changes));
}

// Keep what is shown already: nobody needs to be told.
export function remember(changes) {
  Object.assign(state, changes);
  clearTimeout(remember.timer);
  remember.timer = setTimeout(() => write("replaceState"), 150);
}

export const toImage = (image) => change({ image, pin: null, view: null });

function write(how) {
  clearTimeout(remember.timer);
  const address = new URLSearchParams();
  for (const name of Object.keys(state)) if (state[name] !== null && state[name] !== "") address.set(name, written(name, state[name]));
  history[how](null, "", `#${address}`);
}

function written(name, value) {
  if (value === null || value === undefined) return "";
  if (name === "pin") return `${value.row},${value.column},${value.pane}`;
  if (name === "view") return [value.zoom, value.x, value.y].map((part) => Number(part.toFixed(4))).join(",");
  if (name === "brush") return [value.by, ...[value.from, value.to].map((part) => Number(part.toFixed(6)))].join(",");
  return String(value);
}

// What the address says; words that mean nothing are left out, and so is what `isKnown` does not know.
export function fromAddress(isKnown = () => true) {
  const found = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const read = Object.hasOwn(state, name) ? readValue(name, value) : undefined;
    if (read !== undefined && isKnown(name, read)) found[name] = read;
  }
  return found;
}

function readValue(name, value) {
  if (ALLOWED[name]) return ALLOWED[name].includes(value) ? value : undefined;
  const parts = value.split(",");
  if (name === "thresholds") return value ? parts.map(Number) : [];
  if (name === "pin") return readPin(parts);
  if (name === "brush") return readBrush(parts);
  if (name === "view") {
    const [zoom, x, y] = parts.map(Number);
    return zoom >= 1 && zoom <= 40 && x >= 0 && x <= 1 && y >= 0 && y <= 1 ? { zoom, x, y } : undefined;
  }
  if (!NUMBERS.has(name)) return value;
  return value !== "" && Number.isFinite(Number(value)) ? Number(value) : undefined;
}

function readPin([row, column, pane]) {
  const whole = (text) => /^\d{1,6}$/.test(text ?? "");
  return whole(row) && whole(column) && ["a", "b"].includes(pane) ? { row: Number(row), column: Number(column), pane } : undefined;
}

function readBrush([by, ...ends]) {
  const [from, to] = ends.map(Number);
  return ["wrong", "abstained", "cig"].includes(by) && from >= 0 && to > from && to < 2 ? { by, from, to } : undefined;
}

// Back and Forward: the state of that address, and nothing is written.
export function followHistory(isKnown) {
  addEventListener("popstate", () => {
    const before = { ...state };
    Object.assign(state, { pin: null, view: null, highlight: null, of: null, brush: null, filter: "" }, fromAddress(isKnown));
    const changed = Object.keys(state).filter((name) => written(name, state[name]) !== written(name, before[name]));
    for (const listener of listeners) listener(changed);
  });
}

// The settings of a method as the server wants them; another method differs in its own values only.
export function choice(method = null, also = {}) {
  const own = ["method", "thresholds", "level", "max_set"].filter((name) => method?.[name] !== undefined);
  const asked = { ...state, ...Object.fromEntries(own.map((name) => [name, method[name]])), ...also };
  const chain = asked.method === "nested" || asked.method === "sets";
  const correction = chain && !["bonferroni", "holm"].includes(asked.correction) ? "bonferroni" : asked.correction;
  const query = { image: asked.image, sigma: asked.sigma, n: asked.n, method: asked.method, tau: asked.tau,
    alpha: asked.alpha, correction, test: asked.test };
  if (correction === "kfwer") query.k = asked.k;
  if (asked.method === "adaptive") query.thresholds = asked.thresholds.join(",");
  if (asked.method === "level") query.level = asked.level;
  if (asked.method === "sets") query.max_set = asked.max_set;
  if (asked.radius) query.radius = asked.radius;
  return query;
}
