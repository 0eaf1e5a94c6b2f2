// What the colours mean, below the maps and on exported sheets.

import { byId, down, make, rgb, some, swatch } from "./elements.js";
import { hexColour, largest } from "./paint.js";

const WAYS = { label: byLabel, group: byGroup, radius: byRadius, reason: byReason, verdict: byVerdict };
const WORDS = { group: "Lines and dots: coarser than a class.",
  verdict: "Right and wrong are by the ground truth; a certificate speaks of the smoothed model's answers alone." };

export function showLegend(run, answer, colours) {
  const found = legendOf(run, answer, colours);
  const shown = found.stops ? [scaleBar(found), entry({ colour: null, text: "no radius" })] : found.map(entry);
  const words = { ...WORDS, radius: answer.radius_statement }[colours];
  byId("legend").replaceChildren(...shown, ...(words ? [make("p", { class: "quiet", text: words })] : []));
}

// [{ colour, text, texture }], colour null for the hatch; or the scale of the radii.
export function legendOf(run, answer, colours) {
  return WAYS[colours](run, answer);
}

export function entry({ colour, text, texture }) {
  return make("span", { class: "entry" }, [swatch(colour, texture), make("span", { text })]);
}

// Every label of the map, those that cover most of it first.
function byLabel(run, answer) {
  const order = answer.shares.map((share, id) => ({ share, id })).filter(({ share }) => share > 0);
  order.sort((a, b) => b.share - a.share);
  const entries = order.map(({ id, share }) => ({ colour: run.vertices[id].colour, texture: run.vertices[id],
    text: `${run.vertices[id].name} ${some(share)}` }));
  return [{ colour: null, text: `abstained ${some(answer.abstain)}` }, ...entries, ...underNone(run, answer)];
}

// The groups of the map; a texture tells a level above the classes.
function byGroup(run, answer) {
  const shares = run.groups.map(() => 0);
  answer.shares.forEach((share, id) => (shares[run.vertices[id].group] += share));
  const shown = run.groups.map((group, index) => ({ ...group, share: shares[index] })).filter(({ share }) => share > 0);
  return [{ colour: null, text: `abstained ${some(answer.abstain)}` },
    ...shown.map(({ name, colour, share }) => ({ colour, text: `${name} ${some(share)}` })), ...underNone(run, answer)];
}

const underNone = (run, answer) => (answer.root_share > 0 ? [{ colour: run.colours.root, text: "set under no vertex" }] : []);

function byRadius(run, answer) {
  return { stops: run.colours.heat.filter((_, index) => index % 15 === 0), top: largest(answer.maps.radius), mark: answer.end,
    words: `${answer.threat === "l2" ? "R" : "t"} = ${down(answer.end, 3)} at the mark` };
}

function scaleBar({ stops, top, mark, words }) {
  const bar = make("div", { class: "scale-bar", role: "img", "aria-label": `colours from 0 to ${top.toFixed(3)}` });
  bar.style.background = `linear-gradient(to right, ${stops.map(rgb).join(", ")})`;
  const line = make("span", { class: "scale-mark", title: "R" });
  line.style.left = `${Math.min(1, mark / top) * 100}%`;
  bar.append(line);
  const ends = make("div", { class: "scale-ends" }, [make("span", { text: "0" }), make("span", { text: words }),
    make("span", { text: top.toFixed(3) })]);
  return make("div", { class: "scale" }, [bar, ends]);
}

function byReason(run, answer) {
  const count = counter(answer.maps.reason);
  return run.reasons.map(({ code, colour, words }) =>
    ({ colour: hexColour(colour), text: `${words}: ${some(count(code) / answer.maps.reason.length)}` }));
}

// Shares of the pixels whose truth is known.
function byVerdict(run, answer) {
  const count = counter(answer.maps.verdict);
  const known = answer.maps.verdict.length - count(0) || 1;
  return run.verdicts.map(({ code, colour, words }) =>
    ({ colour: colour && hexColour(colour), text: `${words} ${some(count(code) / known)}` }));
}

export function differenceEntries(run, { shares }) {
  return run.differences.filter(({ code }) => shares[code] > 0).map(({ code, colour, words }) =>
    ({ colour: hexColour(colour), text: `${words} ${some(shares[code])}` }));
}

// The classes of a plain label map, the most frequent first.
export function truthEntries(run, answer) {
  if (!answer?.maps) return [];
  const count = counter(answer.maps.vertex);
  const ids = run.vertices.map((_, id) => id).filter((id) => count(id) > 0).sort((a, b) => count(b) - count(a));
  const entries = ids.map((id) => ({ colour: run.vertices[id].colour, text: `${run.vertices[id].name} ${some(count(id) / answer.maps.vertex.length)}` }));
  return count(-1) ? [...entries, { colour: run.colours.void, text: `void ${some(count(-1) / answer.maps.vertex.length)}` }] : entries;
}

function counter(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return (value) => counts.get(value) ?? 0;
}
