"""docs/threats-results.md: tables of what is certified along threats, and what a sweep of their parameters says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.archive import write_atomically
from certiseg.attack.sweep import Step, Sweep, refuted_inside
from certiseg.render.colours import BLUE, FAINT, ORANGE
from certiseg.render.figures import figure_bytes, new_figure
from certiseg.threats import Threat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[dict[str, Any]]
INTRODUCTION = """
Abstained: pixels without a certificate, pooled over the images; in brackets the least and the largest share of one
image. CIG: certified information gain. Wrong: certified, and the true class is not under the label. Agreement: of the
certified pixels, those whose prediction on the clear image lies under the label. One method and one threat chosen
beforehand is a promise at alpha = 0.001 per image; the rows beside each other are a comparison.

A network that normalises every image, as `compact` does, undoes light, contrast and uniform fog before rounding
([threats.md](threats.md)): those rows say little about how well it sees. Fog by depth, blur and gamma are not undone.
The depth here is made up: a flat road seen from 1.5 m above it, the horizon at 45 % of the height, the focal length as
many pixels as the image is wide, and 100 m for all that lies above the horizon or beyond. Nothing stands on that road,
so a car gets the fog of the road behind it.
"""
SWEPT = """
At {steps} parameters inside every range (for gamma on each side) and on to {beyond:g} ranges the model is asked {draws}
times about the image there, with fresh draws; then again about the image rounded to 8 bits, which no certificate speaks
of. Refuted: the Clopper-Pearson upper bound of the share under the label is below 1/2, at 0.001 over all pixels and
parameters inside. Lost: fewer than half of the draws lie under the label, an estimate; at the end of the range and at
the end of the sweep, where nothing is promised.
"""


def write_page(
    out: Path,
    title: str,
    threats: Mapping[str, Threat],
    found: Mapping[str, Rows],
    sweeps: Mapping[str, Sequence[Step]],
    sweep: Sweep,
    *,
    n: int,
    tau: float,
) -> None:
    """The page, and the figure of the sweeps beside it."""
    images = len(next(iter(found.values())))
    told = (
        f"Written by `make threats`. Model {title}, {images} test images of CamVid, n = {n}, tau = {tau:g}, sigma = 0."
    )
    lines = ["# Light and weather, on CamVid", "", told, INTRODUCTION, *_certified(found)]
    if any(sweeps.values()):
        picture = out.parent / "images" / "threats-sweep.png"
        values = {"steps": sweep.steps, "beyond": sweep.beyond, "draws": sweep.draws}
        lines += ["", "## Sweeping the parameters", SWEPT.format(**values), *_swept(found, sweeps, threats)]
        lines += ["", f"![Share of draws under the label over the parameter](images/{picture.name})"]
        _write(picture, figure_bytes(draw_sweeps(sweeps), "png", dpi=100))
    _write(out, "\n".join([*lines, ""]).encode())
    print(f"written: {out}")


def _certified(found: Mapping[str, Rows]) -> list[str]:
    methods = list(next(iter(found.values()))[0]["methods"])
    heads = [f"{m}: {what}" for m in methods for what in ("abstained", "CIG", "wrong", "agreement")]
    lines = [f"| certified for | anchors | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for rows in found.values():
        cells = [rows[0]["extent"], str(rows[0]["anchors"])]
        for method in methods:
            of = [row["methods"][method] for row in rows]
            low, high = (pick(each["abstain"] for each in of) for pick in (min, max))
            cells += [f"{_pooled(of, 'abstain'):.1%} [{low:.1%}, {high:.1%}]", f"{_pooled(of, 'cig'):.3f}"]
            cells += [f"{_pooled(of, 'wrong'):.1%}", f"{_agreement(of):.1%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _pooled(rows: Rows, key: str) -> float:
    return float(np.average([row[key] for row in rows], weights=[row["pixels"] for row in rows]))


def _agreement(rows: Rows) -> float:
    certified = [row["pixels"] * (1 - row["abstain"]) for row in rows]
    some = [k for k, weight in enumerate(certified) if weight > 0]
    return float(np.average([rows[k]["agreement"] for k in some], weights=[certified[k] for k in some]))


def _swept(found: Mapping[str, Rows], sweeps: Mapping[str, Sequence[Step]], threats: Mapping[str, Threat]) -> list[str]:
    heads = "certified for | images | certificates | refuted inside | lowest share inside | refuted inside, 8 bits"
    heads += " | lost at the end of the range | 8 bits | lost at the end of the sweep"
    lines = [f"| {heads} |", "|---" * 9 + "|"]
    for name, steps in sweeps.items():
        inside = [step for step in steps if step.inside]
        ends = [max(s.t for s in inside), max(s.t for s in steps)]
        lost = {(t, r): _lost([s for s in steps if s.t == t and s.rounded == r]) for t in ends for r in (False, True)}
        images = {step.image: step.tested for step in steps}
        cells = [found[name][0]["extent"], str(len(images)), f"{sum(images.values()):,}"]
        cells += [f"{sum(step.refuted for step in refuted_inside(steps)):,}"]
        cells += [f"{min(step.lowest_share for step in inside if not step.rounded):.2f}"]
        cells += [f"{sum(step.refuted for step in inside if step.rounded):,}"]
        cells += [f"{lost[ends[0], False]:.2%}", f"{lost[ends[0], True]:.2%}"]
        cells += [f"{lost[ends[1], False]:.2%} ({threats[name].words(ends[1])})"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _lost(steps: Sequence[Step]) -> float:
    return float(np.average([step.lost for step in steps], weights=[step.tested for step in steps]))


def draw_sweeps(sweeps: Mapping[str, Sequence[Step]]) -> Figure:
    """A panel for each threat: mean share and that of the worst pixel over the parameter, the range shaded."""
    columns = min(4, len(sweeps))
    rows = -(-len(sweeps) // columns)
    figure, grid = new_figure(3.4 * columns, 2.8 * rows, rows=rows, columns=columns)
    panels: list[Axes] = grid.ravel().tolist()
    for place in panels[len(sweeps) :]:
        place.remove()
    for place, (name, steps) in zip(panels, sweeps.items(), strict=False):
        inside = [step.t for step in steps if step.inside]
        place.axvspan(min(inside), max(inside), color=FAINT, alpha=0.15, label="certified range")
        for rounded, style in ((False, "-"), (True, ":")):
            some = [step for step in steps if step.rounded == rounded]
            ts = sorted({step.t for step in some})
            mean = [np.mean([s.mean_share for s in some if s.t == t]) for t in ts]
            worst = [min(s.lowest_share for s in some if s.t == t) for t in ts]
            eight = ", 8 bits" if rounded else ""
            place.plot(ts, mean, style, color=BLUE, label=f"mean of the pixels{eight}")
            place.plot(ts, worst, style, color=ORANGE, label=f"worst pixel{eight}")
        place.axhline(0.5, color=FAINT, lw=0.8)
        place.set(title=name, xlabel="t", ylim=(0, 1.02))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    return figure


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as file:
        file.write(content)
