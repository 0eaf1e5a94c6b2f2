"""Per class: how much CIG and certified rate a method wins over segcertify, and where it loses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.analysis.drawing import BLUE, FAINT, GREEN, INK, RED, method_name, new_figure, plain_text, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import BASELINE, describe
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting

OVERALL = "Overall"


@dataclass(frozen=True)
class ClassDelta:
    """One class, or all of them: score of the method minus score of the baseline, as fractions."""

    name: str
    pixels: int
    cig: float
    certified: float


@dataclass(frozen=True)
class ClassDeltas:
    """The classes that occur in the ground truth, in the hierarchy's order, and their plain average."""

    method: str
    baseline: str
    setting: Setting
    classes: tuple[ClassDelta, ...]
    overall: ClassDelta
    note: str


def class_deltas(pools: Pools, method: str, setting: Setting, *, baseline: str = BASELINE) -> ClassDeltas:
    """Differences by true class; classes without a pixel do not enter, neither as points nor in the average."""
    ours, theirs = (pools.pool(name, setting).scores() for name in (method, baseline))
    pixels = pools.pool(method, setting).sums().pixels
    deltas = tuple(
        ClassDelta(
            name=pools.manifest.tree.classes[index],
            pixels=int(pixels[index]),
            cig=float(ours.class_cig[index] - theirs.class_cig[index]),
            certified=float(theirs.class_abstained[index] - ours.class_abstained[index]),
        )
        for index in np.flatnonzero(pixels)
    )
    overall = ClassDelta(OVERALL, int(pixels.sum()), ours.ccig - theirs.ccig, theirs.class_abstain - ours.class_abstain)
    return ClassDeltas(method, baseline, setting, deltas, overall, describe(pools))


def to_table(deltas: ClassDeltas) -> Table:
    """The classes with the largest win in CIG first, the average on top."""
    ordered = sorted(deltas.classes, key=lambda delta: -delta.cig)
    rows = tuple(
        {"name": d.name, "pixels": d.pixels, "cig": d.cig, "certified": 100 * d.certified}
        for d in (deltas.overall, *ordered)
    )
    columns = (
        Column("name", "class"),
        Column("pixels", "pixels", "count"),
        Column("cig", "ΔCIG", "change"),
        Column("certified", "Δ certified (points)", "change"),
    )
    title = f"{method_name(deltas.method)} against {method_name(deltas.baseline)} by class, {deltas.setting}"
    return Table(title, deltas.note, columns, rows)


def draw(deltas: ClassDeltas, *, most: int = 40) -> Any:
    """Scatter with four quadrants, top right where the method wins twice; names of the `most` farthest classes."""
    figure, ((axes,),) = new_figure(9, 6.5)
    x = np.array([100 * d.certified for d in deltas.classes])
    y = np.array([d.cig for d in deltas.classes])
    sizes = 18 + 160 * np.sqrt([d.pixels / max(deltas.overall.pixels, 1) for d in deltas.classes])
    wins = (x >= 0) & (y >= 0)
    for where, colour, marker, text in ((wins, BLUE, "o", "wins both"), (~wins, RED, "s", "loses one or both")):
        if where.any():
            points = {"s": sizes[where], "color": colour, "marker": marker, "label": text}
            axes.scatter(x[where], y[where], alpha=0.75, linewidths=0, **points)
    overall = (100 * deltas.overall.certified, deltas.overall.cig)
    axes.scatter(*overall, s=220, color=GREEN, marker="*", edgecolors=INK, linewidths=0.8, zorder=4, label=OVERALL)
    _shade_quadrants(axes, x, y)
    axes.set(xlabel="Δ certified pixels (percentage points)", ylabel="Δ CIG")
    figure.legend(loc="outside lower center", ncols=3, fontsize=10, frameon=False)
    axes.set_title(
        f"{method_name(deltas.method)} against {method_name(deltas.baseline)}, sigma = {deltas.setting.sigma:g}, "
        f"n = {deltas.setting.n}, tau = {deltas.setting.tau:g}"
    )
    names = [(float(a), float(b), d.name) for a, b, d in zip(x, y, deltas.classes, strict=True)]
    _name_points(axes, [(*overall, OVERALL), *sorted(names, key=lambda p: -abs(p[0]) - 100 * abs(p[1]))[:most]])
    return figure


def write(folder: RunFolder, out: str | Path, *, method: str, setting: Setting) -> list[Path]:
    """classes-SETTING-METHOD.* in the folder `out`."""
    deltas = class_deltas(Pools(folder), method, setting)
    stem = f"{out}/classes-{setting}-{method.replace(':', '').replace(',', '-')}"
    return to_table(deltas).write(stem) + save_figure(draw(deltas), stem)


def _shade_quadrants(axes: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Lines through zero, and the quadrant of the winners tinted."""
    for values, set_limits in ((x, axes.set_xlim), (y, axes.set_ylim)):
        low, high = min(float(values.min(initial=0)), 0.0), max(float(values.max(initial=0)), 0.0)
        room = 0.14 * (high - low) or 0.1
        set_limits(low - room, high + room)
    axes.axhline(0, color=FAINT, linewidth=0.9, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.9, zorder=0)
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    axes.fill_between([0, right], 0, top, color=GREEN, alpha=0.07, linewidth=0, zorder=0)


def _name_points(axes: Any, points: list[tuple[float, float, str]]) -> None:
    """Names beside their points, in order; a name that would lie over an earlier one is left out."""
    from matplotlib.transforms import Bbox

    figure = axes.figure
    plain_text(figure)
    figure.draw_without_rendering()  # settles the layout, on which the places of names depend
    places = axes.transData.transform([point[:2] for point in points])
    taken: list[Any] = [Bbox([place - 5, place + 5]) for place in places]
    inside = axes.get_window_extent()
    for x, y, name in points:
        for offset, align in (
            ((6, 4), "left"),
            ((6, -12), "left"),
            ((-6, 4), "right"),
            ((-6, -12), "right"),
            ((10, -4), "left"),
        ):
            weight = "bold" if name == OVERALL else "normal"
            text = axes.annotate(
                name, (x, y), xytext=offset, textcoords="offset points", ha=align, fontsize=9, color=INK, weight=weight
            )
            text.set_parse_math(False)
            box = text.get_window_extent()
            within = box.x0 >= inside.x0 and box.x1 <= inside.x1 and box.y0 >= inside.y0 and box.y1 <= inside.y1
            if within and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
