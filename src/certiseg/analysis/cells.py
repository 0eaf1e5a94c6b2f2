"""One pass over the pixels of an image: what each level of each would certify, counted by what scores ask for.

What is certified or right at a level is so at all coarser ones: hits and the leaves of K(y, l) only grow with l. So a
pixel is told by four numbers: the bin of its gap, its first certified level, its first right level, its true class.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import Hierarchy
from certiseg.scores import VOID
from certiseg.votes import Votes

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


class CountedPixels:
    """The pixels of one image, counted: those settled by the cap at once, the others listed with their hits."""

    def __init__(
        self,
        votes: Votes,
        hierarchy: Hierarchy,
        label: NDArray[np.integer],
        values: NDArray[np.float64],
        deepest: NDArray[np.uint8],
        *,
        floor: int,
        cap: int,
    ) -> None:
        """values: rising, between them lie the bins of the gap. deepest: (bins,), the coarsest level wanted there.

        floor, cap: fewer hits than the floor never certify, the cap always does.
        """
        bins, classes, levels = len(deepest), hierarchy.num_classes, hierarchy.num_levels
        self.deepest, self.agreement = deepest, _agreement(hierarchy)
        self.candidate, self.truth = votes.candidate.reshape(-1), np.ascontiguousarray(label).reshape(-1)
        self.settled = np.zeros((bins, levels + 1, levels + 1, classes + 1), np.int32)
        """The cells of the pixels that floor and cap decide at every level."""
        self.histogram = np.zeros((bins, levels, votes.n + 1), np.int32)
        """All pixels by bin, level and hits, below the floor as if they had 0, from the cap on as if n."""
        size = self.candidate.size
        lists = np.empty(size, np.int32), np.empty(size, np.uint8), np.empty((size, levels), np.uint16)
        found = _count_pixels(
            votes.counts.reshape(size, classes),
            self.candidate,
            votes.gap.reshape(-1),
            self.truth,
            (values, deepest),
            (_masks(hierarchy), _repeated(hierarchy), self.agreement),
            (floor, cap),
            lists,
            self.settled,
            self.histogram,
        )
        self.rest, self.bins, self.hits = (part[:found] for part in lists)
        passed = self.settled.sum(axis=(2, 3)).cumsum(axis=1)  # (bins, L+1): settled pixels certified at a level
        self.histogram[:, :, votes.n] += passed[:, :-1].astype(np.int32)
        self.histogram[:, :, 0] += (passed[:, -1:] - passed[:, :-1]).astype(np.int32)

    def cells(self, criticals: NDArray[np.int64]) -> NDArray[np.int32]:
        """(criticals, bins, L+1, L+1, C): pixels by first certified level, first right level (L: never), true class."""
        cells = np.repeat(self.settled[None], len(criticals), axis=0)
        for of_critical, critical in zip(cells, criticals, strict=True):
            listed = (self.rest, self.bins, self.hits)
            _count_listed(listed, self.deepest, critical, self.candidate, self.truth, self.agreement, of_critical)
        return cells[..., :-1]


@lru_cache(maxsize=16)
def _masks(hierarchy: Hierarchy) -> NDArray[np.uint16]:
    """(C, L, C): all ones at the leaves under K(y, l)."""
    return hierarchy.members[hierarchy.ancestors].astype(np.uint16) * np.uint16(0xFFFF)


@lru_cache(maxsize=16)
def _repeated(hierarchy: Hierarchy) -> NDArray[np.bool_]:
    """(C, L): whether K(y, l) is K(y, l + 1), so that its hits are known from above."""
    above = np.append(hierarchy.ancestors[:, 1:], np.full((hierarchy.num_classes, 1), -1, np.int32), axis=1)
    return hierarchy.ancestors == above


@lru_cache(maxsize=16)
def _agreement(hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(C, C + 1): the first level at which the vertex of one class holds another, L for never; the last is void."""
    under = hierarchy.members[hierarchy.ancestors]
    first = np.where(under.any(axis=1), under.argmax(axis=1), hierarchy.num_levels)
    return np.append(first, np.zeros((hierarchy.num_classes, 1), first.dtype), axis=1).astype(np.uint8)


@_jit
def _masked_sum(row: Any, mask: Any) -> Any:
    """Sum of the values whose mask is all ones, in 16 bits throughout: it runs on whole vectors."""
    total = np.uint16(0)
    for c in range(row.size):
        total = np.uint16(total + (row[c] & mask[c]))
    return total


@_jit
def _count_pixels(
    counts: Any,
    candidate: Any,
    gap: Any,
    truth: Any,
    grid: Any,
    tree: Any,
    bounds: Any,
    lists: Any,
    settled: Any,
    histogram: Any,
) -> Any:
    """Count the pixels that floor and cap decide; list the others with bin and hits, and return how many.

    Hits are taken from the coarsest level down, and once they are below the floor nothing finer matters.
    """
    (values, deepest), (masks, repeated, agreement), (floor, cap), (rest, bins, hits) = grid, tree, bounds, lists
    levels, classes, n = masks.shape[1], counts.shape[1], histogram.shape[2] - 1
    found = 0
    for i in range(candidate.size):
        b = 0
        for value in values:  # without a branch: gaps are hard to foretell
            b += value < np.float64(gap[i])
        own = candidate[i]
        inside = counts[i, own]
        certified, decided = 0, True
        if inside < cap:
            certified, top, total = levels, deepest[b], n
            for level in range(top, -1, -1):
                if total > 0:
                    if level == 0:
                        inside = counts[i, own]
                    elif level == top or not repeated[own, level]:
                        inside = _masked_sum(counts[i], masks[own, level])
                    if inside >= cap:
                        certified = level
                    elif inside >= floor:
                        total, decided = np.int64(inside), False
                    else:
                        total = 0
                hits[found, level] = total
        if decided:
            y = classes if truth[i] == VOID else np.int64(truth[i])
            settled[b, certified, agreement[own, y], y] += 1
        else:
            rest[found] = i
            bins[found] = b
            for level in range(deepest[b] + 1):
                histogram[b, level, hits[found, level]] += 1
            found += 1
    return found


@_jit
def _count_listed(
    listed: Any, deepest: Any, critical: Any, candidate: Any, truth: Any, agreement: Any, cells: Any
) -> None:
    """cells[bin, first certified level, first right level, true class] += 1 for every listed pixel, void last."""
    rest, bins, hits = listed
    levels, classes = hits.shape[1], cells.shape[3] - 1
    for j in range(rest.size):
        certified = levels
        for level in range(deepest[bins[j]], -1, -1):
            if hits[j, level] < critical:
                break
            certified = level
        y = classes if truth[rest[j]] == VOID else np.int64(truth[rest[j]])
        cells[bins[j], certified, agreement[candidate[rest[j]], y], y] += 1
