// What an exported pane says about itself: title, role, legend, settings, model. Nobody should have to ask afterwards.

import { percent } from "./elements.js";
import { pictureOf } from "./export.js";
import { differenceEntries, legendOf, truthEntries } from "./legend.js";
import { state } from "./state.js";

const ROLES = { promise: "Promise", comparison: "Comparison, not the promise of its run", exploration: "Exploration, not a certificate" };
const PLAIN = { photo: "Image", truth: "Ground truth" };

// answers: { a, b, truth, difference }; runs: { a, b }; titles: the panes' own.
export function sheetOf(pane, { stage, answers, runs, titles }) {
  const run = pane === "b" ? runs.b : runs.a;
  const where = `run ${run.name} (data ${run.dataset}, model ${run.model}), image ${state.image}`;
  const opacity = pane === "photo" ? 0 : pane === "truth" ? 1 : state.opacity;
  const sheet = { picture: pictureOf(stage, stage.panes[pane], opacity), name: fileName(run.name, state.image, pane) };
  if (pane in PLAIN || !answers[pane]?.role) {
    const legend = pane === "photo" ? [] : truthEntries(run, answers[pane]);
    return { ...sheet, title: titles[pane], role: `${PLAIN[pane] ?? titles[pane]}: nothing is certified here`, legend, lines: [where] };
  }
  if (pane === "difference") {
    const each = ["a", "b"].map((name) => `${titles[name]} (${answers[name].role}): ${settings(answers[name], runs[name])}`);
    return { ...sheet, title: "B against A", role: ROLES[answers.difference.role], legend: differenceEntries(run, answers.difference),
      lines: [...each, where] };
  }
  const answer = answers[pane];
  const apart = answer.colours === "radius" && !answer.radius_is_joint;
  return { ...sheet, title: `${titles[pane]} – ${state.image}`, legend: legendOf(run, answer, answer.colours),
    role: apart ? "Radii: a statement of their own, not the certificate" : `${ROLES[answer.role]}${beside(answer, run)}`,
    lines: [settings(answer, run), ...masked(run), scores(answer), answer.agreement_words, where] };
}

function beside(answer, run) {
  if (answer.role === "promise") return `: ${run.promise}`;
  return answer.role === "exploration" && answer.differs.length ? `: ${answer.differs.join(", ")}` : "";
}

function settings(answer, run) {
  const { tau, alpha, correction, test } = answer.query;
  return `${answer.name}, sigma = ${answer.sigma}, n0 = ${answer.n0}, n = ${answer.n}, tau = ${tau}, alpha = ${alpha}, ` +
    `${correction}, ${test} test; ${answer.extent}; model ${run.model}`;
}

function masked(run) {
  const lines = [];
  const name = (id) => run.vertices[id].name;
  if (state.highlight !== null) lines.push(`Shown: pixels where the smoothed model ${state.side === "within" ? "answers" : "does not answer"} ${name(state.highlight)}, whatever the perturbation up to R.`);
  if (state.of !== null) lines.push(`Shown: only pixels whose true class is ${name(state.of)}.`);
  return lines;
}

function scores({ accuracy, wrong, abstain }) {
  const known = accuracy === null ? "" : `certified and right ${percent(accuracy)}, certified and wrong ${percent(wrong)}, `;
  return `Of this image: ${known}abstained ${percent(abstain)}.`;
}

const fileName = (...parts) => parts.join("-").replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 120);
