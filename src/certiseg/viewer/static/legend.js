// What the colours mean, below the maps.

import { byId, down, make, percent, rgb, swatch } from "./elements.js";
import { hexColour, largest } from "./paint.js";

export function showLegend(run, answer, colours) {
  const ways = { label: byLabel, radius: byRadius, reason: byReason };
  byId("legend").replaceChildren(...ways[colours](run, answer));
}

function entry(colour, text) {
  return make("span", { class: "entry" }, [swatch(colour), make("span", { text })]);
}

// Every label of the map, those that cover most of it first.
function byLabel(run, answer) {
  const order = answer.shares.map((share, id) => ({ share, id })).filter(({ share }) => share > 0);
  order.sort((a, b) => b.share - a.share);
  const entries = order.map(({ id, share }) => entry(run.vertices[id].colour, `${run.vertices[id].name} ${percent(share)}`));
  if (answer.root_share > 0) entries.push(entry(run.colours.root, "set under no vertex"));
  return [entry(null, `abstained ${percent(answer.abstain)}`), ...entries];
}

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
