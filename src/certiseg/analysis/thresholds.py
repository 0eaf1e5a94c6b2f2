"""Threshold functions of `adaptive` searched on a grid: chosen on one part of the images, reported on the other.

Choosing by the votes of an image and certifying that image with the choice is exploration. On images that had no
part in the choice the certificate holds as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.analysis.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    new_figure,
    save_figure,
)
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.grid import PAPER_VALUES, GridSums, make_grid, non_decreasing, sum_grid
from certiseg.analysis.pooling import Pool, percentile_interval, pool_of
from certiseg.analysis.tradeoff import certifiable_draws
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.scores import Scores, scores_of
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test

CRITERIA = ("cig", "ccig", "accuracy")
FLAT: tuple[float, ...] = ()
"""No threshold at all: level 0 everywhere, which is segcertify."""
_LINES = (ORANGE, BLUE, GREEN, PURPLE, SKY, RED)


@dataclass(frozen=True, eq=False)
class ThresholdSearch:
    """Every function of the grid on every image of a run, at one setting; the flat one comes along as a baseline."""

    setting: Setting
    images: tuple[str, ...]
    each: tuple[GridSums, ...]
    """By image."""
    choose_on: int
    """The choice is made on so many images, the first ones; neighbours in a video are not torn apart."""
    by: str

    @property
    def functions(self) -> tuple[tuple[float, ...], ...]:
        return self.each[0].grid.functions

    def scores(self, *, reported: bool) -> list[Scores]:
        """Scores of every function on the images of the choice, or on the others."""
        part = self.each[self.choose_on :] if reported else self.each[: self.choose_on]
        pooled = reduce(add, part)
        return [scores_of(pooled.sums(index)) for index in range(len(self.functions))]

    def ranked(self) -> list[int]:
        """Functions from best to worst on the images of the choice; ties by fewer abstentions, then as listed."""
        return rank_functions(self.functions, [self.scores(reported=False)], self.by)

    def pool(self, index: int) -> Pool:
        """The sums of one function on the reported images, for intervals."""
        return pool_of(self.images[self.choose_on :], [s.sums(index) for s in self.each[self.choose_on :]])


def search_thresholds(
    folder: RunFolder,
    setting: Setting,
    *,
    functions: Sequence[Sequence[float]] | None = None,
    choose_on: int | None = None,
    by: str = "cig",
    progress: Callable[[int], None] = lambda _: None,
) -> ThresholdSearch:
    """One pass over the stored votes of each image for all functions (default: the paper's grid).

    choose_on: how many images, the first ones, decide; default: half of them.
    """
    manifest, images = folder.manifest, tuple(folder.finished())
    choose_on = len(images) // 2 if choose_on is None else choose_on
    if not 1 <= choose_on < len(images):
        raise InputError(
            f"images to choose on must be at least 1 and leave one of {len(images)} to report on, got {choose_on}"
        )
    if by not in CRITERIA:
        raise InputError(f"criterion must be one of {', '.join(CRITERIA)}, got {by!r}")
    tree = manifest.tree
    if functions is None:
        functions = non_decreasing(PAPER_VALUES, min(3, tree.num_levels - 1))
    grid = make_grid([FLAT, *functions], tree.num_levels)
    if len(grid.functions) < 2:
        raise InputError("grid must have a function with a threshold; a hierarchy of one level has nothing to tune")
    test = (binomial_test if manifest.test == "fixed" else anytime_test)(setting.n, setting.tau)
    options: dict[str, Any] = {"alpha": manifest.alpha_per_image, "correction": manifest.correction, "k": manifest.k}
    each = []
    for name in images:
        each.append(sum_grid(folder.votes(name, setting), tree, folder.label(name), grid, test, **options))
        progress(1)
    return ThresholdSearch(setting, images, tuple(each), choose_on, by)


def search_over_n(folder: RunFolder, *, sigma: float, tau: float, **options: Any) -> list[ThresholdSearch]:
    """The search at each n kept at which something can be certified."""
    return [search_thresholds(folder, Setting(sigma, n, tau), **options) for n in certifiable_draws(folder, tau)]


def rank_functions(functions: Sequence[tuple[float, ...]], scores: Sequence[Sequence[Scores]], by: str) -> list[int]:
    """Functions by the mean of a score over several settings, best first; the flat one is not among them."""
    means = np.mean([[getattr(s, by) for s in of_setting] for of_setting in scores], axis=0)
    abstain = np.mean([[s.abstain for s in of_setting] for of_setting in scores], axis=0)
    candidates = [index for index, thresholds in enumerate(functions) if thresholds != FLAT]
    return sorted(candidates, key=lambda index: (-means[index], abstain[index], index))


def to_table(search: ThresholdSearch, *, promise: str, most: int | None = None, draws: int = 1000) -> Table:
    """The functions from best to worst where they were chosen, with their scores on the other images."""
    choosing, reporting = search.scores(reported=False), search.scores(reported=True)
    order = [search.functions.index(FLAT), *search.ranked()[:most]]
    rows = []
    for place, index in enumerate(order):
        row: dict[str, Any] = {"thresholds": name_of(search.functions[index]), "place": place or None}
        row |= {f"chosen_{key}": getattr(choosing[index], key) for key in ("cig", "ccig", "abstain")}
        row |= {key: getattr(reporting[index], key) for key in ("cig", "ccig", "abstain", "class_abstain", "accuracy")}
        if place <= 1:
            samples = search.pool(index).resampled(draws=draws)
            for key in ("cig", "ccig", "abstain"):
                row[f"{key}_low"], row[f"{key}_high"] = percentile_interval(samples[key])
        rows.append(row)
    heads = {"cig": "CIG", "ccig": "cCIG", "abstain": "abstain", "class_abstain": "c-abstain", "accuracy": "cert. acc."}
    columns = [Column("place", "place", "count"), Column("thresholds", "thresholds")]
    columns += [Column(f"chosen_{k}", f"{heads[k]} (choice)", _kind(k)) for k in ("cig", "ccig", "abstain")]
    columns += [Column(key, head, _kind(key)) for key, head in heads.items()]
    rest = len(search.images) - search.choose_on
    note = (
        f"Ordered by {search.by} on the first {search.choose_on} images (choice); the other columns are of the "
        f"{rest} others, which had no part in it; {promise}. Brackets: 95% intervals from {draws} bootstrap samples."
    )
    return Table(f"Threshold functions, {search.setting}", note, tuple(columns), tuple(rows))


def draw(searches: Sequence[ThresholdSearch], *, most: int = 6) -> Any:
    """CIG and certified rate over n on the reported images, best functions by the mean over n, segcertify beside."""
    first = searches[0]
    ranked = rank_functions(first.functions, [s.scores(reported=False) for s in searches], first.by)
    reported = [s.scores(reported=True) for s in searches]
    n = [s.setting.n for s in searches]
    figure, ((gain, rate),) = new_figure(11, 4.6, columns=2)
    for index in ranked[most:]:
        gain.plot(n, [s[index].cig for s in reported], color=FAINT, alpha=0.15, marker=".", markersize=3, zorder=1)
        rate.plot(n, [100 - 100 * s[index].abstain for s in reported], color=FAINT, alpha=0.15, marker=".", zorder=1)
    shown = [*ranked[:most], first.functions.index(FLAT)]
    for number, index in enumerate(shown):
        flat = index == shown[-1]
        style: dict[str, Any] = {"color": INK if flat else _LINES[number % len(_LINES)], "marker": MARKERS[number]}
        style |= {"linestyle": "--" if flat else "-", "zorder": 3}
        gain.plot(n, [s[index].cig for s in reported], label=name_of(first.functions[index]), **style)
        rate.plot(n, [100 - 100 * s[index].abstain for s in reported], **style)
    for axes, text in ((gain, "certified information gain (CIG)"), (rate, "certified pixels (%)")):
        axes.set(xlabel="number of samples n", ylabel=text)
        axes.set_xticks(n)
        axes.grid(alpha=0.25)
    figure.legend(loc="outside right upper", title="best first (mean over n\nwhere chosen)", frameon=False)
    figure.suptitle(f"{len(ranked)} threshold functions, sigma = {first.setting.sigma:g}, tau = {first.setting.tau:g}")
    return figure


def write(searches: Sequence[ThresholdSearch], out: str | Path, *, promise: str) -> list[Path]:
    """thresholds-SETTING.* for each search and the plot over n in the folder `out`."""
    paths = []
    for search in searches:
        paths += to_table(search, promise=promise).write(f"{out}/thresholds-{search.setting}")
    setting = searches[0].setting
    return paths + save_figure(draw(searches), f"{out}/thresholds-sigma{setting.sigma:g}-tau{setting.tau:g}")


def name_of(thresholds: tuple[float, ...]) -> str:
    """Thresholds as the paper writes them."""
    return "SegCertify" if thresholds == FLAT else f"({', '.join(f'{t:g}' for t in thresholds)})"


def _kind(score: str) -> Any:
    return "percent" if "abstain" in score else "score"
