"""Per class: how much CIG and certified rate a method gains over segcertify, or loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table
from certiseg.render.colours import BLUE, FAINT, GREEN, INK, RED
from certiseg.render.figures import new_figure, plain_text
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.scores import divided

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OVERALL = "Overall"
_PLACES = (((6, 4), "left"), ((6, -12), "left"), ((-6, 4), "right"), ((-6, -12), "right"), ((10, -4), "left"))
"""Where a name may stand beside its point."""
_COLUMNS = (
    Column("name", "class"),
    Column("pixels", "pixels", "count"),
    Column("cig", "ΔCIG", "change"),
    Column("certified", "Δ certified (points)", "change"),
    Column("right", "certified, right", "percent"),
    Column("wrong", "certified, wrong", "percent"),
)


def class_table(run: ScoredRun, method: str, setting: Setting) -> Table:
    """Method minus segcertify by true class, the largest gain in CIG first, after the plain average over classes.

    Classes without a pixel are left out.
    """
    sums = run.sums(method, setting)
    ours, theirs, total = sums.scores(), run.sums(BASELINE, setting).scores(), sums.total()
    pixels = total.pixels
    cig = ours.class_cig - theirs.class_cig
    certified = 100 * (theirs.class_abstained - ours.class_abstained)
    right = divided(total.right, pixels)
    wrong = 1 - ours.class_abstained - right
    rows = [
        {"name": run.manifest.tree.classes[c], "pixels": int(pixels[c]), "cig": cig[c], "certified": certified[c]}
        | {"right": right[c], "wrong": wrong[c]}
        for c in sorted(np.flatnonzero(pixels), key=lambda c: -cig[c])
    ]
    overall = {"name": OVERALL, "pixels": int(pixels.sum()), "cig": ours.ccig - theirs.ccig}
    overall |= {"right": ours.accuracy, "wrong": ours.wrong}
    overall["certified"] = 100 * (theirs.class_abstain - ours.class_abstain)
    title = f"{method_name(method)} against {method_name(BASELINE)} by class, {run.manifest.words(setting)}"
    return Table(title, run.describe(), _COLUMNS, (overall, *rows))


def draw(table: Table, *, most: int = 40) -> Figure:
    """Scatter with four quadrants, top right where the method gains both; the `most` farthest classes are named."""
    figure, ((axes,),) = new_figure(9, 6.5)
    overall, *classes = table.rows
    x, y = (np.array([row[key] for row in classes]) for key in ("certified", "cig"))
    sizes = 18 + 160 * np.sqrt([row["pixels"] / max(overall["pixels"], 1) for row in classes])
    wins = (x >= 0) & (y >= 0)
    for where, colour, marker, text in ((wins, BLUE, "o", "gains both"), (~wins, RED, "s", "loses one or both")):
        if where.any():
            points = {"s": sizes[where], "color": colour, "marker": marker, "label": text}
            axes.scatter(x[where], y[where], alpha=0.75, linewidths=0, **points)
    middle = (overall["certified"], overall["cig"])
    axes.scatter(*middle, s=220, color=GREEN, marker="*", edgecolors=INK, linewidths=0.8, zorder=4, label=OVERALL)
    _shade_quadrants(axes, x, y)
    axes.set(xlabel="Δ certified pixels (percentage points)", ylabel="Δ CIG")
    figure.legend(loc="outside lower center", ncols=3, fontsize=10, frameon=False)
    axes.set_title(table.title)
    far = sorted(zip(x, y, (row["name"] for row in classes), strict=True), key=lambda p: -abs(p[0]) - 100 * abs(p[1]))
    _name_points(axes, [(*middle, OVERALL), *far[:most]])
    return figure


def _shade_quadrants(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Lines through zero, and a tint where the method gains both."""
    for values, set_limits in ((x, axes.set_xlim), (y, axes.set_ylim)):
        low, high = float(values.min(initial=0)), float(values.max(initial=0))
        room = 0.14 * (high - low) or 0.1
        set_limits(low - room, high + room)
    axes.axhline(0, color=FAINT, linewidth=0.9, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.9, zorder=0)
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    axes.fill_between([0, right], 0, top, color=GREEN, alpha=0.07, linewidth=0, zorder=0)


def _name_points(axes: Axes, points: Sequence[tuple[float, float, str]]) -> None:
    """Names beside their points, in order; a name that would lie over an earlier one is left out."""
    from matplotlib.transforms import Bbox

    figure: Any = axes.figure
    plain_text(figure)
    figure.draw_without_rendering()  # settles the layout, on which the places of names depend
    taken = [Bbox([place - 5, place + 5]) for place in axes.transData.transform([point[:2] for point in points])]
    inside = axes.get_window_extent()
    for x, y, name in points:
        style: dict[str, Any] = {"fontsize": 9, "color": INK, "weight": "bold" if name == OVERALL else "normal"}
        for offset, align in _PLACES:
            text: Any = axes.annotate(name, (x, y), xytext=offset, textcoords="offset points", ha=align, **style)
            text.set_parse_math(False)
            box = text.get_window_extent()
            within = box.x0 >= inside.x0 and box.x1 <= inside.x1 and box.y0 >= inside.y0 and box.y1 <= inside.y1
            if within and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
