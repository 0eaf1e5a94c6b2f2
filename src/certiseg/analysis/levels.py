"""Share of pixels per level of the hierarchy: certified rightly, certified but wrong, abstained, per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.analysis.drawing import BLUE, FAINT, RED, method_name, new_figure, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import describe
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting


@dataclass(frozen=True)
class LevelShare:
    """Shares of all pixels; certified ones include the wrong ones."""

    method: str
    level: int
    certified: float
    abstained: float
    wrong: float


@dataclass(frozen=True)
class LevelShares:
    """Every level of every method; the shares of a method add up to 1."""

    setting: Setting
    shares: tuple[LevelShare, ...]
    note: str

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(share.method for share in self.shares))


def level_shares(pools: Pools, setting: Setting, *, methods: Sequence[str] | None = None) -> LevelShares:
    """Shares at the assigned level; nested counts abstentions at the coarsest. Sets have no level and are left out."""
    chosen = [m for m in methods or pools.manifest.methods if not m.startswith("sets")]
    shares = [
        LevelShare(method, level, *of_level)
        for method in chosen
        for level, of_level in enumerate(pools.pool(method, setting).scores().per_level)
    ]
    note = f"{describe(pools)} Nested counts its abstentions at the coarsest level; label sets have no level."
    return LevelShares(setting, tuple(shares), note)


def to_table(found: LevelShares) -> Table:
    rows = tuple(
        {
            "name": method_name(share.method),
            "level": f"H{share.level}",
            "certified": share.certified,
            "wrong": share.wrong,
            "abstained": share.abstained,
        }
        for share in found.shares
        if share.certified or share.abstained
    )
    parts = (Column(key, head, "percent") for key, head in _HEADS.items())
    return Table(f"Pixels per level, {found.setting}", found.note, (*_KEYS, *parts), rows)


_KEYS = (Column("name", "method"), Column("level", "level"))
_HEADS = {"certified": "certified", "wrong": "of these wrong", "abstained": "abstained"}


def draw(found: LevelShares) -> Any:
    """Stacked bars: for every level a bar per method."""
    methods, levels = found.methods, sorted({share.level for share in found.shares})
    shares = {(share.method, share.level): share for share in found.shares}
    height = 0.6 + 0.42 * len(methods)
    figure, panels = new_figure(9, max(2.2 * len(levels), height * len(levels)), rows=len(levels), sharex=True)
    place = np.arange(len(methods))
    for level, axes in zip(levels, panels[:, 0], strict=True):
        of_level = [shares[method, level] for method in methods]
        right = np.array([100 * (s.certified - s.wrong) for s in of_level])
        wrong = np.array([100 * s.wrong for s in of_level])
        abstained = np.array([100 * s.abstained for s in of_level])
        axes.barh(place, right, color=BLUE, label="certified, right")
        axes.barh(place, wrong, left=right, color=RED, hatch="///", edgecolor="white", label="certified, wrong")
        axes.barh(place, abstained, left=right + wrong, color="#d9d9de", edgecolor=FAINT, label="abstained")
        for row, total in enumerate(right + wrong + abstained):
            if total > 0:
                text = f"{right[row]:.1f} / {wrong[row]:.1f} / {abstained[row]:.1f}"
                axes.annotate(text, (total, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(place, [method_name(method) for method in methods])
        axes.invert_yaxis()
        axes.set_xlim(0, 118)
        axes.set_xticks(range(0, 101, 20))
        axes.set_title(f"H{level}", loc="left", fontsize=11, weight="bold")
    panels[-1, 0].set_xlabel("share of all pixels (%): right / wrong / abstained")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    s = found.setting
    figure.suptitle(f"Pixels per level, sigma = {s.sigma:g}, n = {s.n}, tau = {s.tau:g}", fontsize=12)
    return figure


def write(folder: RunFolder, out: str | Path, *, setting: Setting) -> list[Path]:
    """levels-SETTING.* in the folder `out`."""
    found = level_shares(Pools(folder), setting)
    stem = f"{out}/levels-{setting}"
    return to_table(found).write(stem) + save_figure(draw(found), stem)
