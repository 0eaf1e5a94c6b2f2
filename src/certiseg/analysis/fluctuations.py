"""Which classes the model fluctuates between where segcertify abstains, and whether one vertex covers them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.exports import Column, Table
from certiseg.hierarchy import ROOT, VOID
from certiseg.render.colours import BLUE, ORANGE
from certiseg.render.figures import new_figure
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE
from certiseg.runs.settings import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNCOVERED = "no vertex"
_COLUMNS = (
    Column("classes", "classes with votes"),
    Column("pixels", "pixels", "count"),
    Column("share", "share", "percent"),
    Column("cover", "lowest vertex over them"),
)


def fluctuation_table(folder: RunFolder, setting: Setting, *, first: int = 40, most: int = 20) -> Table:
    """The most frequent sets of classes that all got votes in an abstained pixel, from stored votes, without void.

    first: how many images are counted (the paper: 40). most: how many sets are shown.
    """
    tree, names = folder.manifest.tree, folder.finished()[:first]
    counted = count_abstained_sets(folder, setting, names)
    covers = {classes: tree.cover(classes) for classes in counted}
    pixels = counted.total()
    title = f"Class sets where SegCertify abstains, {folder.manifest.words(setting)}"
    if not pixels:
        return Table(title, f"SegCertify abstained nowhere in {len(names)} images.", _COLUMNS, ())
    rows = tuple(
        {
            "classes": ", ".join(tree.vertices[c] for c in classes),
            "pixels": count,
            "share": count / pixels,
            "cover": UNCOVERED if covers[classes] == ROOT else tree.vertices[covers[classes]],
        }
        for classes, count in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:most]
    )
    covered = sum(count for classes, count in counted.items() if covers[classes] != ROOT) / pixels
    note = (
        f"The {len(rows)} most frequent of {len(counted)} sets in {pixels:,} abstained pixels of {len(names)} images; "
        f"the classes of {covered:.1%} of these pixels fall under one vertex. An observation of the votes, no promise."
    )
    return Table(f"{title}: {covered:.0%} of the pixels under one vertex", note, _COLUMNS, rows)


def count_abstained_sets(folder: RunFolder, setting: Setting, names: list[str]) -> Counter[tuple[int, ...]]:
    """How many pixels abstained by segcertify have votes for exactly these classes."""
    stored = BASELINE in folder.manifest.methods and setting in folder.manifest.each_setting()
    found: Counter[tuple[int, ...]] = Counter()
    for name in names:
        votes = folder.votes(name, setting)
        made = folder.certificate(name, setting, BASELINE) if stored else folder.certify(votes, setting, BASELINE)
        chosen = made.abstained & (folder.label(name) != VOID)
        found += count_sets(np.logical_or.reduce([apart.counts[chosen] > 0 for apart in votes.by_anchor]))
    return found


def count_sets(voted: NDArray[np.bool_]) -> Counter[tuple[int, ...]]:
    """How often each set of classes occurs among the rows of (pixels, C)."""
    distinct, counts = np.unique(np.packbits(voted, axis=1), axis=0, return_counts=True)
    members = np.unpackbits(distinct, axis=1, count=voted.shape[1]).astype(bool)
    pairs = zip(members, counts, strict=True)
    return Counter({tuple(np.flatnonzero(row).tolist()): int(count) for row, count in pairs})


def draw(table: Table) -> Figure:
    """Bars on a log scale, the most frequent on top; hatched where no vertex covers the set."""
    from matplotlib.patches import Patch

    figure, ((axes,),) = new_figure(10, 1.8 + 0.34 * max(len(table.rows), 1))
    for place, row in enumerate(table.rows):
        free, pixels = row["cover"] == UNCOVERED, row["pixels"]
        axes.barh(place, pixels, color=ORANGE if free else BLUE, hatch="//" if free else None, edgecolor="white")
        text, style = f"{pixels:,}  {'' if free else row['cover']}", {"va": "center", "fontsize": 8}
        axes.annotate(text, (pixels, place), xytext=(4, 0), textcoords="offset points", **style)
    axes.set_yticks(range(len(table.rows)), [_shortened(row["classes"]) for row in table.rows], fontsize=9)
    if table.rows:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlim(max(0.5, table.rows[-1]["pixels"] / 3), table.rows[0]["pixels"] * 6)
    axes.set_xlabel("abstained pixels (log scale), with the vertex that covers the set")
    covered = Patch(color=BLUE, label="under one vertex")
    uncovered = Patch(facecolor=ORANGE, hatch="//", edgecolor="white", label="under none")
    axes.legend(handles=[covered, uncovered], loc="lower right", fontsize=9, frameon=False)
    axes.set_ylim(max(len(table.rows), 1) - 0.4, -0.6)
    figure.suptitle(table.title, fontsize=12)
    return figure


def _shortened(text: str, most: int = 62) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(', ')}…"
