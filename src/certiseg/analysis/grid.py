"""All threshold functions of a grid from one pass over the votes of an image.

A threshold function only asks between which of the grid's values the gap of a pixel lies. So one pass counts pixels
by (bin of the gap, level): first their hits, from which every function gets its critical count with any correction,
then, by true class, how many reach it and are right. Each function is a sum of these cells, and its scores are those
of certifying with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import cast

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.cells import CountedPixels
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, check_thresholds
from certiseg.scores import PixelSums
from certiseg.stats.binomial import CountTest
from certiseg.stats.correction import Correction
from certiseg.votes import Votes

PAPER_VALUES = (0, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.7)
_MOST_VALUES = 255
"""Bins are kept in 8 bits."""


def non_decreasing(values: Sequence[float], length: int) -> tuple[tuple[float, ...], ...]:
    """Every non-decreasing tuple of the given length: 120 triples for the paper's eight values."""
    return tuple(combinations_with_replacement(sorted({float(value) for value in values}), length))


@dataclass(frozen=True, eq=False)
class Grid:
    """Threshold functions, as levels of the bins between their values."""

    functions: tuple[tuple[float, ...], ...]
    values: NDArray[np.float64]
    """Rising: bin b holds the gaps in (values[b-1], values[b]], the last bin those above all values."""
    level: NDArray[np.uint8]
    """(functions, bins): the level that a function assigns in a bin."""

    @property
    def deepest(self) -> NDArray[np.uint8]:
        """(bins,): the coarsest level that any function assigns there."""
        return self.level.max(axis=0)


def make_grid(functions: Sequence[Sequence[float]], num_levels: int) -> Grid:
    """A grid of checked threshold functions."""
    if not functions:
        raise InputError("grid must have a threshold function, got none")
    checked = tuple(dict.fromkeys(check_thresholds(list(thresholds), num_levels) for thresholds in functions))
    values = np.unique([t for thresholds in checked for t in thresholds])
    if len(values) > _MOST_VALUES:
        raise InputError(f"grid must have at most {_MOST_VALUES} different thresholds, got {len(values)}")
    level = np.zeros((len(checked), len(values) + 1), np.uint8)
    for row, thresholds in zip(level, checked, strict=True):
        for threshold in thresholds:
            row[: np.searchsorted(values, threshold) + 1] += 1
    return Grid(checked, values, level)


@dataclass(frozen=True, eq=False)
class GridSums:
    """Pixels of one image, or of several added up, for every threshold function, true class and assigned level."""

    grid: Grid
    hierarchy: Hierarchy
    assigned: NDArray[np.int64]
    """(functions, C, L)."""
    certified: NDArray[np.int64]
    right: NDArray[np.int64]

    def __add__(self, other: GridSums) -> GridSums:
        if self.grid.functions != other.grid.functions:
            raise InputError("sums must be of the same grid to be added")
        parts = (getattr(self, name) + getattr(other, name) for name in ("assigned", "certified", "right"))
        return GridSums(self.grid, self.hierarchy, *parts)

    def sums(self, index: int) -> PixelSums:
        """The sums of one function, as `scores.sum_pixels` has them (without `claimed`, which only an IoU needs)."""
        assigned, certified, right = self.assigned[index], self.certified[index], self.right[index]
        return PixelSums(
            pixels=assigned.sum(axis=1),
            gain=(right * _gains(self.hierarchy)).sum(axis=1),
            abstained=(assigned - certified).sum(axis=1),
            right=right.sum(axis=1),
            claimed=np.zeros(len(right), np.int64),
            level_certified=certified,
            level_abstained=assigned - certified,
            level_wrong=certified - right,
            flat=False,
        )


def sum_grid(
    votes: Votes,
    hierarchy: Hierarchy,
    label: NDArray[np.integer],
    grid: Grid,
    test: CountTest,
    *,
    alpha: float,
    correction: Correction = "bonferroni",
    k: int = 1,
) -> GridSums:
    """The sums of every function on one image, each as if the image had been certified with it."""
    floor, cap = _decisive_hits(test, alpha, votes.candidate.size, correction)
    pixels = CountedPixels(votes, hierarchy, label, grid.values, grid.deepest, floor=floor, cap=cap)
    if correction == "bonferroni":  # the same for all: it only asks how many pixels there are
        critical = np.full(len(grid.level), floor)
    else:
        critical = _criticals(pixels, grid, test, votes.candidate.size, alpha=alpha, correction=correction, k=k)
    return _add_cells(pixels, grid, hierarchy, critical)


def _decisive_hits(test: CountTest, alpha: float, tested: int, correction: Correction) -> tuple[int, int]:
    """(floor, cap): fewer hits than the floor never certify, the cap always does (n + 1 where nothing does).

    A correction tests at levels between alpha / (N (1 + 1/2 + ... + 1/N)), the least of by's, and alpha. Which number
    of hits a pixel has beyond these bounds changes no cutoff and no score.
    """
    remembered = _remembered(cast(Hashable, test))
    if correction == "bonferroni":
        both = _as_number(remembered.critical(alpha / tested), test)
        return both, both
    cap = _as_number(remembered.critical(alpha / (tested * (2 + np.log(tested)))), test)
    return _as_number(remembered.critical(alpha), test), cap


def _criticals(
    pixels: CountedPixels,
    grid: Grid,
    test: CountTest,
    tested: int,
    *,
    alpha: float,
    correction: Correction,
    k: int,
) -> NDArray[np.int64]:
    """(functions,): the critical count of each function, n + 1 where nothing can be certified.

    What `correction.cutoff` finds by a walk over all hits is found here by leaps: take the critical count for the
    pixels rejected so far, count those that reach it, and repeat until they stay as many.
    """
    remembered = _remembered(cast(Hashable, test))
    of_function = np.zeros((len(grid.level), pixels.steps.shape[2]))
    for level in range(pixels.steps.shape[1]):
        of_function += (grid.level == level).astype(np.float64) @ pixels.steps[:, level].astype(np.float64)
    reaching = np.cumsum(of_function[:, ::-1], axis=1)[:, ::-1].astype(np.int64).tolist()
    at, last = _levels(tested, alpha, correction, k), len(reaching[0]) - 1
    after: dict[int, int] = {}  # critical counts by the number of rejected pixels: the functions share most of them
    found = []
    for counts in reaching:
        rejected = tested if correction == "by" else 0
        while True:
            critical = after.get(rejected)
            if critical is None:
                critical = after[rejected] = _as_number(remembered.critical(at(rejected)), test)
            now = counts[min(critical - pixels.floor, last)] if critical <= test.n else 0
            if now == rejected or critical > test.n:
                break
            rejected = now
        found.append(critical)
    return np.array(found)


def _levels(tested: int, alpha: float, correction: Correction, k: int) -> Callable[[int], float]:
    """The level of the next test when so many pixels are rejected; for by, when so many are still to be."""
    if correction == "holm":
        return lambda rejected: alpha / (tested - min(rejected + 1, tested) + 1)
    if correction == "kfwer":
        return lambda rejected: k * alpha / (tested + k - max(min(rejected + 1, tested), k))
    from scipy.special import digamma

    per_rank = alpha / (tested * (float(digamma(tested + 1)) + np.euler_gamma))
    return lambda rejected: max(rejected, 1) * per_rank


def _as_number(critical: int | None, test: CountTest) -> int:
    return test.n + 1 if critical is None else critical


class _Remembered:
    """A test whose critical counts are looked up where they are known: they never grow with the level."""

    def __init__(self, test: CountTest) -> None:
        self.test, self.n = test, test.n
        self.levels: list[float] = []
        self.criticals: list[int | None] = []

    @property
    def p_values(self) -> NDArray[np.float64]:
        return self.test.p_values

    def lower_bounds(self, error: float) -> NDArray[np.float64]:
        return self.test.lower_bounds(error)

    def critical(self, level: float) -> int | None:
        place = bisect_left(self.levels, level)
        if place < len(self.levels):
            after = self.criticals[place]
            if self.levels[place] == level or (place and self.criticals[place - 1] == after):
                return after
        found = self.test.critical(level)
        self.levels.insert(place, level)
        self.criticals.insert(place, found)
        return found


@lru_cache(maxsize=16)
def _remembered(test: Hashable) -> _Remembered:
    return _Remembered(cast(CountTest, test))


def _add_cells(pixels: CountedPixels, grid: Grid, hierarchy: Hierarchy, critical: NDArray[np.integer]) -> GridSums:
    """Each function's cells added up: in bin b those of its level there, with its own critical count."""
    levels, shape = hierarchy.num_levels, (hierarchy.num_levels, len(grid.functions), hierarchy.num_classes)
    assigned, certified, right = (np.empty(shape, np.int64) for _ in range(3))
    counted = pixels.pixels[:, :-1].astype(np.float64)  # whole numbers below 2^53: all sums are exact
    steps = np.minimum(pixels.step_of(critical), pixels.steps.shape[2] - 1)
    chosen = [(grid.level == level).astype(np.float64) for level in range(levels)]
    for level in range(levels):
        assigned[level] = chosen[level] @ counted
    for step in np.unique(steps):
        passed, here = pixels.passed(int(step))[..., :-1].astype(np.float64), steps == step
        for level in range(levels):
            certified[level, here] = chosen[level][here] @ passed[:, level].sum(axis=1)
            right[level, here] = chosen[level][here] @ passed[:, level, : level + 1].sum(axis=1)
    return GridSums(grid, hierarchy, *(np.moveaxis(part, 0, -1) for part in (assigned, certified, right)))


@lru_cache(maxsize=16)
def _gains(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """(C, L): 1 - log G(K(y, l)) / log |Y|. A vertex over the true class at level l is K(y, l), so this is all."""
    generality = hierarchy.members.sum(axis=1)[hierarchy.ancestors]
    return 1 - np.log(generality) / np.log(hierarchy.num_classes)
