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
_HEADS = {"certified": "certified", "wrong": "wrong (of all pixels)", "abstained": "abstained"}


def draw(found: LevelShares) -> Any:
    """Stacked bars: for every level a bar per method that uses it."""
    levels = sorted({share.level for share in found.shares})
    used = {level: [s for s in found.shares if s.level == level and s.certified + s.abstained > 0] for level in levels}
    heights = [0.6 + 0.4 * len(used[level]) for level in levels]
    figure, panels = new_figure(9, sum(heights) + 1.6, rows=len(levels), sharex=True, height_ratios=heights)
    for level, axes in zip(levels, panels[:, 0], strict=True):
        _draw_bars(axes, used[level])
        axes.set_title(f"H{level}", loc="left", fontsize=11, weight="bold")
    panels[-1, 0].set_xlabel("share of all pixels (%): right / wrong / abstained")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    s = found.setting
    figure.suptitle(f"Pixels per level, sigma = {s.sigma:g}, n = {s.n}, tau = {s.tau:g}", fontsize=12)
    return figure


def _draw_bars(axes: Any, shares: Sequence[LevelShare]) -> None:
    place = np.arange(len(shares))
    right = np.array([100 * (s.certified - s.wrong) for s in shares])
    wrong, abstained = np.array([100 * s.wrong for s in shares]), np.array([100 * s.abstained for s in shares])
    axes.barh(place, right, color=BLUE, label="certified, right")
    axes.barh(place, wrong, left=right, color=RED, hatch="///", edgecolor="white", label="certified, wrong")
    axes.barh(place, abstained, left=right + wrong, color="#d9d9de", edgecolor=FAINT, label="abstained")
    for row, total in enumerate(right + wrong + abstained):
        text = f"{right[row]:.1f} / {wrong[row]:.1f} / {abstained[row]:.1f}"
        axes.annotate(text, (total, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(place, [method_name(share.method) for share in shares])
    axes.set_ylim(len(shares) - 0.4, -0.6)
    axes.set_xlim(0, 122)
    axes.set_xticks(range(0, 101, 20))


def write(folder: RunFolder, out: str | Path, *, setting: Setting) -> list[Path]:
    """levels-SETTING.* in the folder `out`."""
    found = level_shares(Pools(folder), setting)
    stem = f"{out}/levels-{setting}"
    return to_table(found).write(stem) + save_figure(draw(found), stem)
