// The page: what is chosen, what the server answers, and who shows it.

import { ask, Lane } from "./api.js";
import { Ask } from "./ask.js";
import { Banner } from "./banner.js";
import { Calibrated, NAME as CALIBRATED } from "./calibrated.js";
import { Classes } from "./classes.js";
import { Controls, nextLevel } from "./controls.js";
import { Difference } from "./difference.js";
import { Dropper, nameOf } from "./drop.js";
import { byId, make, press } from "./elements.js";
import { listenToExport } from "./export.js";
import { Histograms } from "./histograms.js";
import { Inspector } from "./inspector.js";
import { listenToKeys } from "./keys.js";
import { showLegend } from "./legend.js";
import { Look } from "./look.js";
import { ImageList } from "./list.js";
import { scoresOf, showNumbers, titleOf } from "./numbers.js";
import { Other, PLAIN } from "./other.js";
import { Painter } from "./paint.js";
import { sheetOf } from "./sheet.js";
import { Stage } from "./stage.js";
import { change, choice, COLOURS, followHistory, fromAddress, LAYOUTS, onChange, remember, state, toImage } from "./state.js";
import { Table } from "./table.js";
import { Tree } from "./tree.js";

const LAYERS = { label: "vertex", group: "vertex", verdict: "vertex,verdict", radius: "vertex,radius", reason: "vertex,reason" };

const run = await ask("/api/run").catch(unusable);
if (run.calibrated) PLAIN[CALIBRATED] = "Sets that hold the truth";
const painter = new Painter(run);
const list = new ImageList(run, { keeps: (image) => histograms.keeps(image), onDraw: () => table.draw(),
  wrongOf: (image, of) => table.wrongOf(image, promised().method.text, of) });
const histograms = new Histograms(list, (image, by) => list.scores(image)[{ cig: 0, abstained: 1, wrong: 2 }[by]]);
const table = new Table(run, { names: () => list.shown().map(({ name }) => name), go });
const classes = new Classes(run);
const other = new Other(run, painter, () => settingsOf(promised()));
const banner = new Banner(run);
const controls = new Controls(run);
const tree = new Tree(run);
const inspector = new Inspector(run);
const stage = new Stage(byId("stage"), { onPoint: point, onPin: pin, onView: (view) => remember({ view }) });
const difference = new Difference(run, stage, painter, other);
const asker = new Ask(run, stage, { words });
const looker = new Look(run, stage);
const calibrated = new Calibrated(stage, painter, { words });
const answers = {};
let pointed = null;
let growing = false;

const lanes = {
  a: new Lane("/api/map", "a", { onAnswer: showA, onError: (text) => { banner.complain(text); askB(); } }),
  b: new Lane("/api/map", "b", { onAnswer: showB, onError: (text) => { banner.complain(text); stage.busy = false; } }),
  pixel: new Lane("/api/pixel", "p", { onAnswer: showPixel, onError: () => inspector.clear() }),
  difference: difference.lane,
  ...asker.lanes,
  look: looker.lane,
  truth: calibrated.lane,
};
const dropper = new Dropper(run, { chosen: promised, onGrow: grow, onDone: dropped });

// -- what the run fixed beforehand --------------------------------------------------------------------------------

function promised() {
  const near = run.settings.find(({ sigma, n }) => sigma === state.sigma && n === state.n) ?? run.settings[0];
  const exact = run.settings.find(({ sigma, n, tau }) => sigma === state.sigma && n === state.n && tau === state.tau);
  const alike = run.methods.filter(({ settings }) => settings.method === state.method);
  const method = alike.find(({ settings }) => settings.level === undefined || settings.level === state.level);
  return { setting: exact ?? near, method: method ?? alike[0] ?? run.methods[0] };
}

function entryOf(name) {
  return list.images.find((image) => image.name === name);
}

// The run's own values for the controls of every method, those of the given one above all.
function settingsOf({ setting, method }) {
  const chosen = (name) => run.methods.map(({ settings }) => settings[name]).find((value) => value !== undefined);
  return { thresholds: chosen("thresholds") ?? run.thresholds ?? Array(run.num_levels - 1).fill(0),
    max_set: chosen("max_set") ?? Math.min(5, run.num_classes), level: chosen("level") ?? 0, k: 1, ...setting,
    ...method.settings };
}

function reset(step = true) {
  const entry = entryOf(state.image);
  if (entry.dropped) {
    const { sigma, n, settings } = entry.summary;
    change({ sigma, n, ...Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null)) }, { step });
  } else change(settingsOf(promised()), { step });
}

function isOfRun() {
  return run.sigmas.includes(state.sigma) && run.draws.includes(state.n);
}

// -- asking -------------------------------------------------------------------------------------------------------

onChange((changed) => {
  painter.use(state.colours);
  if (changed.includes("image")) return openImage();
  if (changed.every((name) => name === "brush")) return listImages();
  if (changed.includes("colours")) showLabels("truth", "truth");
  refresh();
});

// What is listed, and how all images spread.
function listImages() {
  const { setting, method } = promised();
  list.use(`${setting.sigma} ${setting.n} ${setting.tau} ${method.text}`);
  histograms.draw();
  table.use(setting).then((read) => read && state.of !== null && list.draw());
}

// A row of the table: the image with that method, and what is right and wrong in that class.
function go(image, method, of) {
  change({ image, pin: null, view: null, of, colours: "verdict", ...settingsOf({ setting: promised().setting, method }) });
}

async function openImage() {
  const entry = entryOf(state.image);
  list.mark();
  table.mark();
  growing = false;
  asker.forget();
  looker.forget();
  if (entry.dropped || !isOfRun() || state.test !== run.methods[0].settings.test) reset(false);
  else refresh();
  await showPhoto(entry);
}

function refresh() {
  listImages();
  difference.follow();
  dropper.words();
  controls.show({ max: answers.a?.max_set, stopped: entryOf(state.image).dropped });
  press(document.querySelectorAll("[data-side]"), "side", state.side);
  press(document.querySelectorAll("[data-layout]"), "layout", state.layout);
  byId("colours").value = state.colours;
  byId("other").value = state.other;
  calibrated.card();
  byId("pane").value = state.pane;
  byId("pane-label").hidden = state.layout !== "single";
  byId("split-label").hidden = state.layout !== "swipe";
  byId("split").value = stage.splitAt = state.split;
  byId("opacity").value = state.opacity;
  stage.root.style.setProperty("--opacity", state.opacity);
  stage.layout(state.layout, state.pane);
  stage.show(state.view);
  showPin();
  if (growing) return;
  started = performance.now();
  stage.busy = true;
  lanes.a.ask({ ...choice(), ...shown() });
  askPixel();
}

let started = 0;

// Pane B follows when A is painted: side by side on few cores both would be late.
function askB() {
  const missing = isMissing();
  const why = other.plain ? "choose a map for B to see how it differs" : missing;
  if (other.plain) showLabels("b", state.other).then(() => (stage.busy = false));
  else if (missing) showMissing(missing);
  else lanes.b.ask({ ...other.query(), ...shown() }, `${other.chosen.path}/api/map`);
  if (why) difference.ask(why);
}

// Why there is no map B: the second run has no uploads.
function isMissing() {
  return !other.plain && other.chosen.path && entryOf(state.image).dropped ? `not in ${other.chosen.run.name}` : "";
}

function showMissing(why) {
  stage.busy = false;
  answers.b = null;
  stage.title("b", `B: ${other.chosen.name}, ${other.chosen.run.name}`);
  stage.note("b", why);
  stage.panes.b.map.hidden = true;
  byId("numbers-b").replaceChildren();
}

function shown() {
  const layers = { layers: LAYERS[state.colours], ...(state.of === null ? {} : { of: state.of }) };
  return state.highlight === null ? layers : { ...layers, highlight: state.highlight, side: state.side };
}

// The colours that an answer has the maps for.
function coloursOf({ layers }) {
  return layers.split(",")[1] ?? (state.colours === "group" && run.groups.length ? "group" : "label");
}

// -- showing ------------------------------------------------------------------------------------------------------

function showA(answer, query) {
  if (query.image !== state.image || growing) return;
  answers.a = { ...answer, query, colours: coloursOf(query) };
  stage.setSize(answer.width, answer.height);
  painter.certified(stage.panes.a.map, answer, coloursOf(query));
  Object.assign(stage.panes.a.map.dataset, { tau: query.tau, method: query.method });
  entitle("a", answer, run);
  document.body.dataset.milliseconds = (performance.now() - started).toFixed(1);
  controls.show({ max: answer.max_set, stopped: answer.stopped });
  tree.show(answer);
  showLegend(run, answer, coloursOf(query));
  classes.show(answer, entryOf(state.image));
  banner.show(answer);
  warn();
  askB();
  asker.refresh();
  looker.refresh(answer);
}

function showB(answer, query) {
  stage.busy = false;
  if (query.image !== state.image || growing || other.plain) return;
  answers.b = { ...answer, query, colours: coloursOf(query) };
  stage.note("b", "");
  stage.panes.b.map.hidden = false;
  other.chosen.painter.use(state.colours);
  other.chosen.painter.certified(stage.panes.b.map, answer, coloursOf(query));
  entitle("b", answer, other.chosen.run);
  warn();
  difference.ask();
}

// Name and numbers of a map, above it and in the table.
function entitle(pane, answer, of) {
  const title = titleOf(pane.toUpperCase(), answer, of, Boolean(run.second));
  stage.title(pane, title, { scores: scoresOf(answer), role: answer.role });
  showNumbers(pane, title, answer);
}

function warn() {
  banner.warn({ "Map A": answers.a, ...(other.plain ? {} : { "Map B": answers.b }) });
}

async function showLabels(pane, which) {
  if (which === CALIBRATED) {
    byId("numbers-b").replaceChildren();
    return calibrated.show();
  }
  const image = state.image;
  stage.title(pane, pane === "b" ? `B: ${PLAIN[which]}` : PLAIN[which]);
  stage.note(pane, entryOf(image).dropped ? "none for a dropped image" : "");
  answers[pane] = null;
  if (pane === "b") byId("numbers-b").replaceChildren();
  const canvas = stage.panes[pane].map;
  canvas.hidden = entryOf(image).dropped;
  if (entryOf(image).dropped) return;
  const answer = await ask("/api/labels", { image, which }).catch(({ message }) => stage.note(pane, message));
  if (!answer || image !== state.image) return;
  answers[pane] = answer;
  stage.setSize(answer.width, answer.height);
  painter.truth(canvas, answer);
}

async function showPhoto(entry) {
  const missing = run.pictures_missing && !entry.dropped;
  stage.note("photo", missing ? "no photograph: start certiseg view with --root" : "");
  stage.panes.b.map.hidden = false;
  showLabels("truth", "truth");
  if (missing) return stage.setPhoto(null);
  const picture = new Image();
  picture.src = `/api/picture?${new URLSearchParams({ image: entry.name })}`;
  const shown = await picture.decode().then(() => true, () => stage.note("photo", "its photograph cannot be read"));
  if (!shown || state.image !== entry.name) return;
  looker.photo(picture);
  document.body.dataset.photo = entry.name;
}

// -- one pixel ----------------------------------------------------------------------------------------------------

function point(pixel, pane) {
  pointed = pixel ? { ...pixel, pane } : null;
  if (!state.pin) stage.point(pixel);
  if (!state.pin && !pixel) inspector.clear();
  askPixel();
}

function pin(pixel, pane = "a") {
  change({ pin: pixel ? { ...pixel, pane } : null });
}

function showPin() {
  stage.root.classList.toggle("pinned", Boolean(state.pin));
  stage.point(state.pin ?? pointed);
  if (!state.pin && !pointed) inspector.clear();
}

function askPixel() {
  const at = state.pin ?? pointed;
  calibrated.at(at);
  if (!at || growing) return;
  const ofB = at.pane === "b" && !other.plain && !isMissing();
  const query = ofB ? other.query() : choice();
  lanes.pixel.ask({ ...query, row: at.row, column: at.column }, `${ofB ? other.chosen.path : ""}/api/pixel`);
}

function showPixel(pixel, query) {
  const at = state.pin ?? pointed;
  if (!at) return;
  const { left, top } = stage.halfOf(at);
  inspector.show(pixel, { pinned: Boolean(state.pin), map: pixel.name, left, top });
}

function movePixel(down, right) {
  const at = state.pin ?? { row: Math.floor(stage.size.height / 2), column: Math.floor(stage.size.width / 2), pane: "a" };
  const row = Math.min(stage.size.height - 1, Math.max(0, at.row + down));
  pin({ row, column: Math.min(stage.size.width - 1, Math.max(0, at.column + right)) }, at.pane);
}

// -- another image ------------------------------------------------------------------------------------------------

function grow(drop) {
  growing = true;
  stage.setPhoto(null);
  stage.setSize(drop.width, drop.height);
  painter.certified(stage.panes.a.map, drop, "label");
  for (const name of ["photo", "truth", "b"]) stage.panes[name].map.hidden = name !== "photo";
  stage.title("a", `A: ${drop.name}, ${drop.shown_draws} draws`, { scores: scoresOf({ ...drop, cig: null }) });
  showNumbers("a", `A: ${nameOf(run, drop)}`, drop);
  byId("export-button").disabled = true;
  tree.show(drop);
  classes.show(drop, { dropped: true });
  banner.warn({ "Map A": drop });
  banner.drawing(drop);
}

async function dropped(image) {
  growing = byId("export-button").disabled = false;
  await list.load();
  change({ image: image ?? state.image, highlight: null, pin: null, view: null });
}

// -- the rest of the page -----------------------------------------------------------------------------------------

function words(title, text, command = null) {
  byId("words-title").textContent = title;
  byId("words-text").textContent = text;
  byId("words-command").hidden = byId("copy").hidden = command === null;
  byId("words-command").textContent = command ?? "";
  byId("words").showModal();
}

async function recipe() {
  const { command, error } = await ask("/api/recipe", choice()).catch(({ message }) => ({ error: message }));
  if (error) return words("Not possible", error);
  words("How to make it a certificate", "These settings were chosen while looking at the votes, so these votes cannot " +
    "prove anything about them. Fresh draws can: the command below certifies with the same settings and a seed that " +
    "nobody has seen the draws of. Run it once and keep what it says.", command);
}

function escape() {
  asker.escape();
  if (state.pin || state.highlight !== null || state.of !== null) change({ pin: null, highlight: null, of: null });
}

function exported(pane) {
  const titles = Object.fromEntries(Object.entries(stage.panes).map(([name, { caption }]) => [name, caption.firstChild.textContent.trim()]));
  return sheetOf(pane, { stage, titles, answers: { ...answers, difference: difference.answer },
    runs: { a: run, b: other.plain ? run : other.chosen.run } });
}

function offered() {
  const has = { photo: !run.pictures_missing, truth: Boolean(answers.truth), difference: difference.on && Boolean(difference.answer),
    a: true, b: Boolean(answers.b) };
  return Object.keys(has).filter((name) => has[name]);
}

function certificateOf() {
  return entryOf(state.image).dropped ? `/api/certificate?${new URLSearchParams({ image: state.image })}` : null;
}

function listen() {
  for (const button of document.querySelectorAll("[data-layout]")) {
    button.addEventListener("click", () => change({ layout: button.dataset.layout }));
  }
  byId("colours").addEventListener("change", (event) => change({ colours: event.target.value }));
  byId("other").addEventListener("change", (event) => {
    stage.note("b", "");
    stage.panes.b.map.hidden = false;
    change({ other: event.target.value });
  });
  byId("pane").addEventListener("change", (event) => change({ pane: event.target.value }));
  byId("opacity").addEventListener("input", ({ target }) => {
    stage.root.style.setProperty("--opacity", target.value);
    remember({ opacity: Number(target.value) });
  });
  byId("split").addEventListener("input", ({ target }) => {
    stage.splitAt = target.value;
    remember({ split: Number(target.value) });
  });
  byId("zoom-in").addEventListener("click", () => stage.zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => stage.zoomBy(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => stage.fit());
  byId("recipe-button").addEventListener("click", recipe);
  byId("reset-button").addEventListener("click", () => reset());
  byId("claim-button").addEventListener("click", () => words("What is promised", answers.a.claim));
  byId("copy").addEventListener("click", () => navigator.clipboard.writeText(byId("words-command").textContent));
  listenToExport({ sheetOf: exported, panes: offered, certificate: certificateOf });
  listenToKeys({ escape, movePixel, step: (by) => list.step(by),
    method: (index) => controls.pick(run.all_methods[index].method),
    single: { l: () => nextLevel(run), "?": () => byId("help").showModal(), "+": () => stage.zoomBy(1.5),
      "-": () => stage.zoomBy(1 / 1.5), 0: () => stage.fit(),
      d: () => change({ beside: state.beside === "truth" ? "difference" : "truth" }),
      g: () => change({ layout: LAYOUTS[(LAYOUTS.indexOf(state.layout) + 1) % LAYOUTS.length] }),
      c: () => change({ colours: COLOURS[(COLOURS.indexOf(state.colours) + 1) % COLOURS.length] }) } });
}

async function begin() {
  document.title = `${run.name} – certiseg`;
  byId("run-name").textContent = run.name;
  byId("run-facts").replaceChildren(...[run, run.second].filter(Boolean).map((each) => make("span", { text: factsOf(each) })));
  byId("other").append(...other.options());
  if (!run.groups.length) byId("colours").querySelector("[value=group]").remove();
  await list.load();
  const method = run.methods.find(({ text }) => text === run.promised.method);
  Object.assign(state, { other: other.first(method.settings.method), method: method.settings.method },
    settingsOf({ setting: run.promised.setting, method }));
  if (run.second) state.beside = "difference";
  const known = { image: entryOf, highlight: (id) => run.vertices[id], of: (id) => id < run.num_classes && run.vertices[id],
    other: (name) => other.knows(name) };
  const isKnown = (name, value) => !(name in known) || Boolean(known[name](value));
  const wanted = fromAddress(isKnown);
  if (innerWidth < 600) state.layout = "single";
  listen();
  followHistory(isKnown);
  change(wanted.image ? wanted : { image: list.images[0].name }, { step: false });
}

function factsOf(each) {
  const alone = each.only_here ? ` · ${each.only_here} more image${each.only_here > 1 ? "s" : ""} that the other has not` : "";
  const name = run.second ? `${each === run ? "A" : "B"}: ${each.name} · ` : "";
  return `${name}${each.dataset} · ${each.model} · promise: ${each.promised.method}, ${each.promise}${alone}`;
}

// Without the run there is nothing to show but why.
function unusable({ message }) {
  document.querySelector("main").replaceChildren(make("p", { class: "card error", role: "alert", text: message }));
  return new Promise(() => {});
}

globalThis.certiseg = { state, change, lanes, stage, answers, table };
await begin().catch(unusable);
