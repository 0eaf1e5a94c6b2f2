"""Objects over a data set: which true ones are certified to be seen, and which certified ones are real.

Certified recall: the share of true objects whose bound of `share` reaches a level. Certified precision: of the objects
found in the candidate map whose bound reaches a level, the share that fits a true one (IoU >= 0.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.analysis.exports import Column, Table
from certiseg.render.colours import BLUE, SKY
from certiseg.render.figures import new_figure
from certiseg.runs.folder import RunFolder
from certiseg.runs.measured import ELSEWHERE, TRUE
from certiseg.runs.settings import Setting
from certiseg.words import confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.5, 0.8)
REAL = 0.5
"""Least IoU with a true object of the same label."""
SIZES = (0, 400, 1600, 6400)
"""Areas in pixels at which true objects are parted."""
Rows = list[dict[str, Any]]


def measured(folder: RunFolder, setting: Setting) -> Rows:
    """The bounds of all finished images at a setting."""
    rows = [row for name in folder.finished() for row in folder.receipt(name).measures]
    return [row for row in rows if row["setting"] == str(setting)]


def note_of(folder: RunFolder) -> str:
    """What the bounds promise."""
    manifest = folder.manifest
    marked = "True objects are those that the data set marks, elsewhere connected parts. " if manifest.instances else ""
    return (
        f"{len(folder.finished())} images, objects from {manifest.least_area} pixels on. {marked}Bounds hold with "
        f"probability {confidence(manifest.alpha_per_image)} for all measures of an image, beside the alpha of its "
        f"pixels: both together {confidence(min(2 * manifest.alpha_per_image, 1))}."
    )


def recall_table(folder: RunFolder, setting: Setting) -> Table:
    """A row for each label and size of true objects, and one for all sizes of a label."""
    true = [row for row in measured(folder, setting) if row["name"].startswith(TRUE)]
    rows = []
    for label in folder.manifest.objects or ():
        of_label = [row for row in true if row["label"] == label]
        for low, high in (*pairwise(SIZES), (SIZES[-1], None), (0, None)):
            found = [row for row in of_label if low <= row["pixels"] < (high or float("inf"))]
            if found:
                cells = {f"recall_{level:g}": _share(row["bound"] >= level for row in found) for level in LEVELS}
                rows.append({"label": label, "size": _size(low, high), "objects": len(found), **cells})
    columns: tuple[Column, ...] = (
        Column("label", "label"),
        Column("size", "pixels"),
        Column("objects", "true objects", "count"),
    )
    columns += tuple(Column(f"recall_{level:g}", f"certified >= {level:g}", "percent") for level in LEVELS)
    note = f"Certified: more than half of the noisy predictions label so much of the true object. {note_of(folder)}"
    return Table(f"Certified recall, {folder.manifest.words(setting)}", note, columns, tuple(rows))


def precision_table(folder: RunFolder, setting: Setting) -> Table:
    """A row for each label: of the objects that are found, and of those with a bound, how many are real."""
    found = [row for row in measured(folder, setting) if "iou" in row]
    rows = []
    for label in folder.manifest.objects or ():
        for level in (0.0, *LEVELS):
            some = [row for row in found if row["label"] == label and row["bound"] >= level]
            if some:
                real = _share(row["iou"] >= REAL for row in some)
                what = f"bound >= {level:g}" if level else "all found"
                rows.append({"label": label, "what": what, "objects": len(some), "real": real})
    columns: tuple[Column, ...] = (Column("label", "label"), Column("what", "objects of the candidate map"))
    columns += (Column("objects", "number", "count"), Column("real", f"real (IoU >= {REAL:g})", "percent"))
    return Table(f"Certified precision, {folder.manifest.words(setting)}", note_of(folder), columns, tuple(rows))


def image_table(folder: RunFolder, setting: Setting) -> Table:
    """How the bounds of whole images are distributed: pixels kept, accuracy, Dice, IoU, and areas free of phantoms."""
    rows = []
    for name, bounds in _by_measure(folder, setting):
        cells = {f"q{part}": float(np.quantile(bounds, part / 100)) for part in (0, 25, 50, 75)}
        rows.append({"measure": name, "images": len(bounds), **cells})
    heads = {"q0": "least", "q25": "a quarter below", "q50": "median", "q75": "a quarter above"}
    columns: tuple[Column, ...] = (Column("measure", "certified, per image"), Column("images", "images", "count"))
    columns += tuple(Column(key, head, "score") for key, head in heads.items())
    note = f"Elsewhere: known pixels more than 10 from every true object of the label. {note_of(folder)}"
    return Table(f"Bounds of whole images, {folder.manifest.words(setting)}", note, columns, tuple(rows))


def _by_measure(folder: RunFolder, setting: Setting) -> Iterator[tuple[str, list[float]]]:
    rows = measured(folder, setting)
    yield "pixels that keep their class", [row["bound"] for row in rows if row["kind"] == "kept"]
    yield "accuracy", [row["bound"] for row in rows if row["kind"] == "accuracy"]
    for label in folder.manifest.objects or ():
        dice = [row["bound"] for row in rows if row["kind"] == "dice" and row["label"] == label]
        yield f"Dice of {label}", dice
        yield f"IoU of {label}", [value / (2 - value) for value in dice]
        free = [row["bound"] for row in rows if row["name"] == ELSEWHERE and row["label"] == label]
        if free:
            yield f"free of {label} elsewhere", free


def draw(table: Table) -> Figure:
    """Bars of certified recall by label and size."""
    figure, axes = new_figure(9, 1.4 + 0.4 * max(len(table.rows), 1))
    bars = axes[0, 0]
    for place, row in enumerate(table.rows):
        for level, colour in zip(LEVELS, (SKY, BLUE), strict=True):
            bars.barh(place, 100 * row[f"recall_{level:g}"], color=colour, label=f"bound >= {level:g}")
        bars.annotate(f"{row['objects']:,}", (101, place), va="center", fontsize=9)
    bars.set_yticks(range(len(table.rows)), [f"{row['label']}, {row['size']}" for row in table.rows])
    bars.set_ylim(len(table.rows) - 0.4, -0.6)
    bars.set_xlim(0, 112)
    bars.set_xlabel("true objects that are certified (%); right: their number")
    handles, labels = bars.get_legend_handles_labels()
    figure.legend(handles[:2], labels[:2], loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(table.title, fontsize=12)
    return figure


def _size(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} and more" if low else "all"
    return f"below {high:,}" if low == 0 else f"{low:,} to {high - 1:,}"


def _share(hits: Iterable[bool]) -> float:
    return float(np.mean(list(hits)))
