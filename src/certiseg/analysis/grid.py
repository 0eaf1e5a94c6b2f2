"""All threshold functions of a grid from one pass over the votes of an image.

A threshold function only asks between which of the grid's values the gap of a pixel lies. So one pass counts pixels
by (bin of the gap, level): first their hits, from which every function gets its critical count with any correction,
then, by true class, how many reach it and are right. Each function is a sum of these counts, and its scores are those
of certifying with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.threshold_histogram import ThresholdHistogram
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, check_thresholds
from certiseg.scores import PixelSums
from certiseg.stats.anytime import AnytimeTest
from certiseg.stats.binomial import BinomialTest
from certiseg.stats.correction import Correction, cutoff_of
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

    def of(self, index: int) -> PixelSums:
        """The sums of one function, as `scores.sum_pixels` has them but for what only label maps tell."""
        nobody = np.zeros(self.right.shape[1], np.int64)
        assigned, certified, right = self.assigned[index], self.certified[index], self.right[index]
        return PixelSums(
            pixels=assigned.sum(axis=1),
            gain=(right * _gains(self.hierarchy)).sum(axis=1),
            abstained=(assigned - certified).sum(axis=1),
            right=right.sum(axis=1),
            claimed=nobody,
            members=nobody,
            compared=nobody,
            agreed=nobody,
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
    test: BinomialTest | AnytimeTest,
    *,
    alpha: float,
    correction: Correction = "bonferroni",
    k: int = 1,
) -> GridSums:
    """The sums of every function on one image, each as if the image had been certified with it."""
    tested, critical_count = votes.candidate.size, _remembered(test)

    def count(significance: float) -> int:
        return _or_none(critical_count(significance), test.n)

    # A correction tests at significances between alpha / (N (1 + 1/2 + ... + 1/N)), the least of by's, and alpha.
    bounds = (alpha / tested,) * 2 if correction == "bonferroni" else (alpha, alpha / (tested * (2 + np.log(tested))))
    floor, cap = map(count, bounds)
    pixels = ThresholdHistogram(votes, hierarchy, label, grid.values, grid.level.max(axis=0), floor=floor, cap=cap)
    if correction == "bonferroni":  # the same for all: it only asks how many pixels there are
        return _add_up(pixels, grid, hierarchy, np.zeros(len(grid.level), np.int64))
    reaching = np.cumsum(_by_function(pixels.steps, grid)[:, ::-1], axis=1)[:, ::-1].astype(np.int64).tolist()
    found = [
        cutoff_of([tested] * floor + counts, critical_count, alpha=alpha, correction=correction, k=k)
        for counts in reaching
    ]
    criticals = np.array([_or_none(critical, test.n) for critical in found])
    return _add_up(pixels, grid, hierarchy, np.minimum(criticals, cap) - floor)


def _or_none(critical: int | None, n: int) -> int:
    """The critical count, n + 1 where nothing can be certified."""
    return n + 1 if critical is None else critical


@lru_cache(maxsize=16)
def _remembered(test: BinomialTest | AnytimeTest) -> Callable[[float], int | None]:
    """test.critical, taken from known neighbours where both agree: it never grows with the significance."""
    known: list[float] = []
    criticals: list[int | None] = []

    def critical_count(significance: float) -> int | None:
        place = bisect_left(known, significance)
        if place < len(known):
            after = criticals[place]
            if known[place] == significance or (place and criticals[place - 1] == after):
                return after
        found = test.critical(significance)
        known.insert(place, significance)
        criticals.insert(place, found)
        return found

    return critical_count


def _by_function(counted: NDArray[np.integer], grid: Grid) -> NDArray[np.float64]:
    """(functions, ...): counts (bins, L, ...) added up over the bins, each at the function's level there.

    In floating point, which is faster: whole numbers below 2^53 are exact.
    """
    total = np.zeros((len(grid.level), *counted.shape[2:]))
    for level in range(counted.shape[1]):
        total += np.tensordot((grid.level == level).astype(np.float64), counted[:, level].astype(np.float64), axes=1)
    return total


def _add_up(pixels: ThresholdHistogram, grid: Grid, hierarchy: Hierarchy, steps: NDArray[np.int64]) -> GridSums:
    """The sums of each function, which certifies from its own step of hits on."""
    levels, shape = hierarchy.num_levels, (hierarchy.num_levels, len(grid.functions), hierarchy.num_classes)
    assigned, certified, right = (np.empty(shape, np.int64) for _ in range(3))
    counted = pixels.pixels[:, :-1].astype(np.float64)  # whole numbers below 2^53: all sums are exact
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
    gains: NDArray[np.float64] = 1 - np.log(generality) / np.log(hierarchy.num_classes)
    return gains
