// What the colours mean, below the maps.

import { byId, down, make, percent, rgb, swatch } from "./elements.js";
import { hexColour, largest } from "./paint.js";

export function showLegend(run, answer, colours) {
  const ways = { label: byLabel, group: byGroup, radius: byRadius, reason: byReason };
  byId("legend").replaceChildren(...ways[colours](run, answer));
}

function entry(colour, text, texture) {
  return make("span", { class: "entry" }, [swatch(colour, texture), make("span", { text })]);
}

// Every label of the map, those that cover most of it first.
function byLabel(run, answer) {
  const order = answer.shares.map((share, id) => ({ share, id })).filter(({ share }) => share > 0);
  order.sort((a, b) => b.share - a.share);
  const entries = order.map(({ id, share }) => entry(run.vertices[id].colour,
    `${run.vertices[id].name} ${percent(share)}`, run.vertices[id]));
  return [entry(null, `abstained ${percent(answer.abstain)}`), ...entries, ...underNone(run, answer)];
}

// The groups of the map; a texture tells a level above the classes.
function byGroup(run, answer) {
  const shares = run.groups.map(() => 0);
  answer.shares.forEach((share, id) => (shares[run.vertices[id].group] += share));
  const shown = run.groups.map((group, index) => ({ ...group, share: shares[index] })).filter(({ share }) => share > 0);
  return [entry(null, `abstained ${percent(answer.abstain)}`),
    ...shown.map(({ name, colour, share }) => entry(colour, `${name} ${percent(share)}`)), ...underNone(run, answer),
    make("p", { class: "quiet", text: "Lines and dots: coarser than a class." })];
}

const underNone = (run, answer) => (answer.root_share > 0 ? [entry(run.colours.root, "set under no vertex")] : []);

function byRadius(run, answer) {
  const top = largest(answer.maps.radius);
  const bar = make("div", { class: "scale-bar", role: "img", "aria-label": `colours from 0 to ${top.toFixed(3)}` });
  const stops = run.colours.heat.filter((_, index) => index % 15 === 0).map(rgb);
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const mark = make("span", { class: "scale-mark", title: "R" });
  mark.style.left = `${Math.min(1, answer.end / top) * 100}%`;
  bar.append(mark);
  const ends = make("div", { class: "scale-ends" }, [make("span", { text: "0" }),
    make("span", { text: `${answer.threat === "l2" ? "R" : "t"} = ${down(answer.end, 3)} at the mark` }),
    make("span", { text: top.toFixed(3) })]);
  return [make("div", { class: "scale" }, [bar, ends]), entry(null, "no radius"),
    make("p", { class: "quiet", text: answer.radius_statement })];
}

function byReason(run, answer) {
  const counts = new Map();
  for (const code of answer.maps.reason) counts.set(code, (counts.get(code) ?? 0) + 1);
  return run.reasons.map(({ code, colour, words }) =>
    entry(hexColour(colour), `${words}: ${percent((counts.get(code) ?? 0) / answer.maps.reason.length)}`));
}
