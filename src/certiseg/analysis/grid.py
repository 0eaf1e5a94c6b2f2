"""All threshold functions of a grid from one pass over the votes of an image.

A threshold function only asks between which of the grid's values the gap of a pixel lies. So one pass counts pixels
by (bin of the gap, level): first their hits, from which every function gets its critical count with any correction,
then, by true class, how many reach it and are right. Each function is a sum of these cells, and its scores are those
of certifying with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, cast

import numba
import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, check_thresholds
from certiseg.scores import VOID, PixelSums
from certiseg.stats.binomial import CountTest
from certiseg.stats.correction import Correction, cutoff
from certiseg.votes import Votes

PAPER_VALUES = (0, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.7)

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


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
    counts = votes.counts.reshape(-1, votes.num_classes)
    candidate, truth = votes.candidate.reshape(-1), np.ascontiguousarray(label).reshape(-1)
    bins, hits, histogram = _bin_hits(
        counts, candidate, votes.gap.reshape(-1), grid.values, grid.deepest, _masks(hierarchy), votes.n
    )
    critical = _criticals(histogram, grid, test, alpha=alpha, correction=correction, k=k)
    distinct, which = np.unique(critical, return_inverse=True)
    bucket = np.searchsorted(distinct, np.arange(votes.n + 1), side="right").astype(np.uint8)
    under = hierarchy.members[hierarchy.ancestors]
    shape = (len(grid.values) + 1, hierarchy.num_levels, hierarchy.num_classes, 2, len(distinct) + 1)
    cells = np.zeros(shape, np.int32)
    _count_cells(hits, bins, grid.deepest, bucket, candidate, truth, under, np.int64(VOID), cells)
    return _add_cells(cells, grid, hierarchy, which.reshape(-1))


def _criticals(
    histogram: NDArray[np.int32], grid: Grid, test: CountTest, *, alpha: float, correction: Correction, k: int
) -> NDArray[np.int64]:
    """(functions,): the critical count of each function, n + 1 where nothing can be certified."""
    remembered = _remembered(cast(Hashable, test))

    def as_number(critical: int | None) -> int:
        return test.n + 1 if critical is None else critical

    if correction == "bonferroni":  # the same for all: it only asks how many pixels there are
        total = histogram[:, 0].sum(axis=0)
        return np.full(len(grid.level), as_number(cutoff(total, remembered, alpha=alpha, correction=correction)))
    least = min(as_number(remembered.critical(alpha)), test.n)  # no correction certifies below it: all that is one bin
    folded = np.zeros((len(grid.level), test.n + 1))
    for level in range(histogram.shape[1]):
        folded += (grid.level == level).astype(np.float64) @ histogram[:, level].astype(np.float64)
    folded[:, 0] = folded[:, :least].sum(axis=1) if least else folded[:, 0]
    folded[:, 1:least] = 0
    criticals = (cutoff(h, remembered, alpha=alpha, correction=correction, k=k) for h in folded.astype(np.int64))
    return np.array([as_number(critical) for critical in criticals])


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
def _remembered(test: Any) -> _Remembered:
    return _Remembered(test)


def _add_cells(cells: NDArray[np.int32], grid: Grid, hierarchy: Hierarchy, which: NDArray[np.intp]) -> GridSums:
    """Each function's cells added up: in bin b those of its level there, at its critical count or above."""
    levels, classes = cells.shape[1:3]
    at_least = cells[..., ::-1].cumsum(axis=-1)[..., ::-1].astype(np.float64)  # whole numbers below 2^53: exact sums
    shape = (len(grid.functions), classes, levels)
    assigned, certified, right = (np.zeros(shape, np.int64) for _ in range(3))
    for level in range(levels):
        chosen = (grid.level == level).astype(np.float64)
        assigned[..., level] = chosen @ at_least[:, level, :, :, 0].sum(axis=-1)
        for number in range(cells.shape[-1] - 1):
            rows = which == number
            reached = at_least[:, level, :, :, number + 1]
            certified[rows, :, level] = chosen[rows] @ reached.sum(axis=-1)
            right[rows, :, level] = chosen[rows] @ reached[..., 1]
    return GridSums(grid, hierarchy, assigned, certified, right)


@lru_cache(maxsize=16)
def _gains(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """(C, L): 1 - log G(K(y, l)) / log |Y|. A vertex over the true class at level l is K(y, l), so this is all."""
    generality = hierarchy.members.sum(axis=1)[hierarchy.ancestors]
    return 1 - np.log(generality) / np.log(hierarchy.num_classes)


@lru_cache(maxsize=16)
def _masks(hierarchy: Hierarchy) -> NDArray[np.uint16]:
    """(C, L, C): all ones at the leaves under K(y, l)."""
    return hierarchy.members[hierarchy.ancestors].astype(np.uint16) * np.uint16(0xFFFF)


@_jit
def _bin_hits(counts: Any, candidate: Any, gap: Any, values: Any, deepest: Any, masks: Any, n: Any) -> Any:
    """Bin of every pixel's gap, hits (N, L) at the levels that count there, and their histogram (bins, L, n + 1)."""
    pixels, levels = counts.shape[0], masks.shape[1]
    bins = np.empty(pixels, np.uint8)
    hits = np.empty((pixels, levels), np.uint16)
    histogram = np.zeros((deepest.size, levels, n + 1), np.int32)
    for i in range(pixels):
        b = values.size
        while b > 0 and np.float64(gap[i]) <= values[b - 1]:
            b -= 1
        bins[i] = b
        first = counts[i, candidate[i]]
        hits[i, 0] = first
        histogram[b, 0, first] += 1
        for level in range(1, deepest[b] + 1):
            total = np.uint16(0)
            mask = masks[candidate[i], level]
            for c in range(counts.shape[1]):
                total = np.uint16(total + (counts[i, c] & mask[c]))
            hits[i, level] = total
            histogram[b, level, total] += 1
    return bins, hits, histogram


@_jit
def _count_cells(
    hits: Any, bins: Any, deepest: Any, bucket: Any, candidate: Any, truth: Any, under: Any, void: Any, cells: Any
) -> None:
    """cells[bin, level, true class, right, bucket of the hits] += 1 for every pixel that is not void."""
    for i in range(bins.size):
        y = truth[i]
        if y == void:
            continue
        b = bins[i]
        for level in range(deepest[b] + 1):
            right = np.int64(under[candidate[i], level, y])
            cells[b, level, y, right, bucket[hits[i, level]]] += 1
