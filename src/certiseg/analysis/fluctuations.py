"""Between which classes the model fluctuates where segcertify abstains, and whether one vertex covers them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import BLUE, ORANGE, new_figure, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.tables import BASELINE
from certiseg.hierarchy import ROOT, Hierarchy
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.scores import VOID


@dataclass(frozen=True)
class FluctuationSet:
    """Classes that all got votes in a pixel, and how often."""

    classes: tuple[int, ...]
    pixels: int
    cover: int
    """The lowest vertex over all of them, ROOT where only the omitted root is."""


@dataclass(frozen=True)
class Fluctuations:
    """Every set that occurs, the most frequent first."""

    setting: Setting
    hierarchy: Hierarchy
    sets: tuple[FluctuationSet, ...]
    images: int

    @property
    def pixels(self) -> int:
        """Pixels abstained, void ones left out."""
        return sum(found.pixels for found in self.sets)

    @property
    def covered(self) -> float:
        """Share of these pixels whose classes fall under one vertex; NaN if nothing was abstained."""
        covered = sum(found.pixels for found in self.sets if found.cover != ROOT)
        return covered / self.pixels if self.pixels else float("nan")

    def name(self, found: FluctuationSet) -> str:
        return ", ".join(self.hierarchy.vertices[c] for c in found.classes)

    def cover_name(self, found: FluctuationSet) -> str:
        return "no vertex" if found.cover == ROOT else self.hierarchy.vertices[found.cover]


def fluctuations(folder: RunFolder, setting: Setting, *, first: int = 40, least_votes: int = 1) -> Fluctuations:
    """The sets of classes with `least_votes` or more, over the first images (the paper: 40), from stored votes."""
    tree, counter = folder.manifest.tree, Counter[tuple[int, ...]]()
    names = folder.finished()[:first]
    for name in names:
        votes = folder.votes(name, setting)
        if BASELINE in folder.manifest.methods and setting in folder.manifest.each_setting():
            abstained = folder.certificate(name, setting, BASELINE).abstained
        else:
            abstained = folder.certify(votes, setting, BASELINE).abstained
        counter += count_sets(votes.counts[abstained & (folder.label(name) != VOID)] >= least_votes)
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    sets = tuple(FluctuationSet(classes, count, tree.cover(classes)) for classes, count in ordered)
    return Fluctuations(setting, tree, sets, len(names))


def count_sets(voted: NDArray[np.bool_]) -> Counter[tuple[int, ...]]:
    """How often each set of classes occurs among the rows of (pixels, C)."""
    packed = np.packbits(voted, axis=1)
    distinct, counts = np.unique(packed, axis=0, return_counts=True)
    members = np.unpackbits(distinct, axis=1, count=voted.shape[1]).astype(bool)
    pairs = zip(members, counts, strict=True)
    return Counter({tuple(int(c) for c in np.flatnonzero(row)): int(count) for row, count in pairs})


def to_table(found: Fluctuations, *, most: int = 30) -> Table:
    rows = tuple(
        {
            "classes": found.name(each),
            "pixels": each.pixels,
            "share": each.pixels / found.pixels,
            "cover": found.cover_name(each),
        }
        for each in found.sets[:most]
    )
    columns = (
        Column("classes", "classes with votes"),
        Column("pixels", "pixels", "count"),
        Column("share", "share", "percent"),
        Column("cover", "lowest vertex over them"),
    )
    note = (
        f"The {len(rows)} most frequent of {len(found.sets)} sets in {found.pixels:,} abstained pixels of "
        f"{found.images} images; the classes of {found.covered:.1%} of these pixels fall under one vertex. An "
        "observation of the votes, nothing is promised about it."
        if found.pixels
        else f"SegCertify abstained nowhere in {found.images} images."
    )
    return Table(f"Class sets in pixels abstained by SegCertify, {found.setting}", note, columns, rows)


def draw(found: Fluctuations, *, most: int = 20) -> Any:
    """Bars on a log scale, the most frequent on top; hatched where no vertex covers the set."""
    from matplotlib.patches import Patch

    shown = found.sets[:most]
    figure, ((axes,),) = new_figure(10, 1.8 + 0.34 * max(len(shown), 1))
    for row, each in enumerate(shown):
        free = each.cover == ROOT
        axes.barh(row, each.pixels, color=ORANGE if free else BLUE, hatch="//" if free else None, edgecolor="white")
        axes.annotate(
            f"{each.pixels:,}  {'' if free else found.cover_name(each)}",
            (each.pixels, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(shown)), [_shortened(found.name(each)) for each in shown], fontsize=9)
    if shown:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlim(max(0.5, shown[-1].pixels / 3), shown[0].pixels * 6)
    axes.set_xlabel("abstained pixels (log scale), with the vertex that covers the set")
    entries = [
        Patch(color=BLUE, label="under one vertex"),
        Patch(facecolor=ORANGE, hatch="//", edgecolor="white", label="under none"),
    ]
    axes.legend(handles=entries, loc="lower right", fontsize=9, frameon=False)
    covered = f"{found.covered:.0%} of these pixels under one vertex" if found.pixels else "nothing abstained"
    axes.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    figure.suptitle(f"Classes with votes where SegCertify abstains, {found.images} images\n{covered}", fontsize=12)
    return figure


def write(folder: RunFolder, out: str | Path, *, setting: Setting, first: int = 40) -> list[Path]:
    """fluctuations-SETTING.* in the folder `out`."""
    found = fluctuations(folder, setting, first=first)
    stem = f"{out}/fluctuations-{setting}"
    return to_table(found).write(stem) + save_figure(draw(found), stem)


def _shortened(text: str, most: int = 62) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(', ')}…"
