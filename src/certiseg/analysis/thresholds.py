"""Threshold functions of `adaptive` searched on a grid: chosen on one part of the images, reported on the other.

Certifying an image with thresholds that were chosen by its own votes is exploration. On images that were not used for
the choice the certificate holds as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.analysis.drawing import MARKERS, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.grid import PAPER_VALUES, GridSums, make_grid, non_decreasing, sum_grid
from certiseg.analysis.tables import score_column
from certiseg.analysis.tradeoff import certifiable_draws
from certiseg.errors import InputError
from certiseg.render.colours import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SKY
from certiseg.render.figures import new_figure
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import ImageSums, brackets
from certiseg.runs.settings import Setting
from certiseg.scores import PixelSums, Scores, scores_of
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CRITERIA = ("cig", "ccig", "accuracy")
FLAT: tuple[float, ...] = ()
"""No threshold at all: level 0 everywhere, which is segcertify."""
_LINES = (ORANGE, BLUE, GREEN, PURPLE, SKY, RED)
_SHOWN = ("cig", "ccig", "abstain", "class_abstain", "accuracy", "wrong")


@dataclass(frozen=True, eq=False)
class ThresholdSearch:
    """Every function of the grid, and the flat one as a baseline, on every image of a run at one setting."""

    setting: Setting
    images: tuple[str, ...]
    each: tuple[GridSums, ...]
    """By image."""
    words: str
    """The setting as titles say it."""
    choose_on: int
    """The first so many images decide, so that neighbouring frames of a video mostly stay together."""
    by: str

    @property
    def functions(self) -> tuple[tuple[float, ...], ...]:
        return self.each[0].grid.functions

    @property
    def chosen(self) -> slice:
        """The images that decide."""
        return slice(self.choose_on)

    @property
    def reported(self) -> slice:
        """The other images."""
        return slice(self.choose_on, None)

    def scores(self, part: slice) -> list[Scores]:
        """Scores of every function on some of the images."""
        pooled = reduce(add, self.each[part])
        return [scores_of(pooled.of(index)) for index in range(len(self.functions))]

    def ranked(self) -> list[int]:
        """Functions from best to worst on the images that decide; ties by fewer abstentions, then as listed."""
        return rank_functions(self.functions, [self.scores(self.chosen)], self.by)

    def sums(self, index: int, part: slice) -> ImageSums:
        """The sums of one function on some of the images."""
        return ImageSums(self.images[part], PixelSums.stack([sums.of(index) for sums in self.each[part]]))


def search_thresholds(
    folder: RunFolder,
    setting: Setting,
    *,
    functions: Sequence[Sequence[float]] | None = None,
    choose_on: int | None = None,
    by: str = "cig",
    progress: Callable[[int], object] = lambda _: None,
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
    make = binomial_test if manifest.test == "fixed" else anytime_test
    options: dict[str, Any] = {"alpha": manifest.alpha_per_image, "correction": manifest.correction, "k": manifest.k}
    each = []
    for name in images:
        votes = folder.votes(name, setting)
        each.append(sum_grid(votes, tree, folder.label(name), grid, make(votes.n, setting.tau), **options))
        progress(1)
    return ThresholdSearch(setting, images, tuple(each), manifest.words(setting), choose_on, by)


def search_over_n(folder: RunFolder, *, sigma: float, tau: float, **options: Any) -> list[ThresholdSearch]:
    """The search at each stored n at which something can be certified."""
    return [search_thresholds(folder, Setting(sigma, n, tau), **options) for n in certifiable_draws(folder, tau)]


def rank_functions(functions: Sequence[tuple[float, ...]], scores: Sequence[Sequence[Scores]], by: str) -> list[int]:
    """Functions by the mean of a score over several settings, best first; the flat one is not among them."""
    means = np.mean([[getattr(s, by) for s in of_setting] for of_setting in scores], axis=0)
    abstain = np.mean([[s.abstain for s in of_setting] for of_setting in scores], axis=0)
    candidates = [index for index, thresholds in enumerate(functions) if thresholds != FLAT]
    return sorted(candidates, key=lambda index: (-means[index], abstain[index], index))


def to_table(search: ThresholdSearch, *, promise: str, most: int | None = None, draws: int = 1000) -> Table:
    """The functions from best to worst on the images that decided, with their scores on the others."""
    choosing, reporting = search.scores(search.chosen), search.scores(search.reported)
    rows = []
    for place, index in enumerate([search.functions.index(FLAT), *search.ranked()[:most]]):
        row: dict[str, Any] = {"thresholds": name_of(search.functions[index]), "place": place or None}
        row |= {f"chosen_{key}": getattr(choosing[index], key) for key in ("cig", "ccig", "abstain")}
        row |= {key: getattr(reporting[index], key) for key in _SHOWN}
        if place <= 1:
            row |= search.sums(index, search.reported).row(("cig", "ccig", "abstain"), draws=draws)
        rows.append(row)
    chosen = (score_column(name) for name in ("cig", "ccig", "abstain"))
    columns = [Column("place", "place", "count"), Column("thresholds", "thresholds")]
    columns += [Column(f"chosen_{c.key}", f"{c.head} (choice)", c.kind) for c in chosen]
    columns += [score_column(name) for name in _SHOWN]
    rest = len(search.images) - search.choose_on
    note = (
        f"Ordered by {search.by} on the first {search.choose_on} images (choice); the other columns are of the {rest} "
        f"others, which were not used for the choice; {promise}. {brackets(rest, draws)}"
    )
    return Table(f"Threshold functions, {search.words}", note, tuple(columns), tuple(rows))


def draw(searches: Sequence[ThresholdSearch], *, most: int = 6) -> Figure:
    """CIG and certified rate over n on the reported images: the best functions by their mean over n, and segcertify."""
    first = searches[0]
    ranked = rank_functions(first.functions, [s.scores(s.chosen) for s in searches], first.by)
    reported = [s.scores(s.reported) for s in searches]
    n = [s.setting.n for s in searches]
    figure, ((gain, rate),) = new_figure(11, 4.6, columns=2)

    def plot(index: int, label: str | None = None, **style: Any) -> None:
        gain.plot(n, [s[index].cig for s in reported], label=label, **style)
        rate.plot(n, [100 - 100 * s[index].abstain for s in reported], **style)

    for index in ranked[most:]:
        plot(index, color=FAINT, alpha=0.15, marker=".", markersize=3, zorder=1)
    for number, index in enumerate(ranked[:most]):
        colour, marker = _LINES[number % len(_LINES)], MARKERS[number]
        plot(index, name_of(first.functions[index]), color=colour, marker=marker, zorder=3)
    plot(first.functions.index(FLAT), name_of(FLAT), color=INK, marker=MARKERS[most], linestyle="--", zorder=3)
    for axes, text in ((gain, "certified information gain (CIG)"), (rate, "certified pixels (%)")):
        axes.set(xlabel="number of samples n", ylabel=text)
        axes.set_xticks(n)
        axes.grid(alpha=0.25)
    figure.legend(loc="outside right upper", title="best first (mean over n,\nimages that decided)", frameon=False)
    figure.suptitle(f"{len(ranked)} threshold functions, sigma = {first.setting.sigma:g}, tau = {first.setting.tau:g}")
    return figure


def write(searches: Sequence[ThresholdSearch], out: str | Path, *, promise: str) -> None:
    """thresholds-SETTING.* for each search and the plot over n in the folder `out`."""
    for search in searches:
        to_table(search, promise=promise).write(f"{out}/thresholds-{search.setting}")
    setting = searches[0].setting
    save_figure(draw(searches), f"{out}/thresholds-sigma{setting.sigma:g}-tau{setting.tau:g}")


def name_of(thresholds: tuple[float, ...]) -> str:
    """Thresholds as the paper writes them."""
    return "SegCertify" if thresholds == FLAT else f"({', '.join(f'{t:g}' for t in thresholds)})"
