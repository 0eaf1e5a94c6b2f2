// The names and numbers of the two maps.

import { byId, make, percent } from "./elements.js";

const known = (value, text = percent) => (value === null ? "–" : text(value));

// Which map of which run; with a single run nobody needs its name.
export const titleOf = (pane, answer, of, two) => `${pane}: ${answer.name}${two ? `, ${of.name}` : ""}`;

export function scoresOf(answer) {
  return `${answer.cig === null ? "" : `wrong ${percent(answer.wrong)}, `}abstained ${percent(answer.abstain)}`;
}

export function showNumbers(which, title, answer) {
  const votes = answer.critical === null ? "more than all" : `${answer.critical} of ${answer.n}`;
  const cells = [percent(answer.abstain, 2), known(answer.cig, (value) => value.toFixed(4)), known(answer.accuracy),
    known(answer.wrong), known(answer.set_size, (value) => value.toFixed(2)), known(answer.agreement), votes, answer.extent];
  byId(`numbers-${which}`).replaceChildren(make("th", { scope: "row", text: title }), ...cells.map((text) => make("td", { text })));
}
