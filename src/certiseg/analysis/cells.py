"""One pass over the pixels of an image, counted by what the scores of any threshold function ask for.

What is right at a level is so at all coarser ones: the leaves of K(y, l) only grow with l. So at each level a pixel is
told by four numbers: the bin of its gap, its hits, its first right level, its true class. Hits beyond floor and cap,
where they decide nothing, are not told apart, so the table is small.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import Hierarchy
from certiseg.kernels import over_pixels
from certiseg.scores import VOID
from certiseg.votes import Votes

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


class CountedPixels:
    """The pixels of one image, counted. Hits come in steps: 0 is the floor, the last one the cap and all above."""

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
        self.floor, size, classes = floor, votes.candidate.size, hierarchy.num_classes
        parts = over_pixels(
            _count_pixels,
            size,
            votes.counts.reshape(size, classes),
            votes.candidate.reshape(-1),
            votes.gap.reshape(-1),
            np.ascontiguousarray(label).reshape(-1),
            (values, deepest),
            (_masks(hierarchy), _repeated(hierarchy), _agreement(hierarchy)),
            (floor, cap),
        )
        sure, rest, unsure = (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
        self.pixels = sure.sum(axis=1) + rest
        """(bins, C + 1): all pixels by bin and true class, void last."""
        self.steps = unsure.reshape(*unsure.shape[:3], -1).sum(axis=3)
        """(bins, L, steps): pixels by bin, level and step of their hits, those below the floor left out."""
        self.steps[:, :, -1] += sure.sum(axis=(1, 2))[:, None]
        self.sure, self.unsure = sure, unsure

    def passed(self, step: int) -> NDArray[np.int32]:
        """(bins, L, L + 1, C + 1): pixels with at least these hits, by first right level (L: never) and class."""
        return self.unsure[:, :, step:].sum(axis=2, dtype=np.int32) + self.sure[:, None]

    def step_of(self, hits: NDArray[np.integer]) -> NDArray[np.integer]:
        """The step of a number of hits between floor and cap."""
        return hits - self.floor


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
    first: Any, last: Any, counts: Any, candidate: Any, gap: Any, truth: Any, grid: Any, tree: Any, bounds: Any
) -> Any:
    """(sure, rest, unsure): pixels that the cap settles at level 0, the others, and these by level and step.

    Hits are taken from the coarsest level down, and once they are below the floor nothing finer matters.
    """
    (values, deepest), (masks, repeated, agreement), (floor, cap) = grid, tree, bounds
    levels, classes, bins = masks.shape[1], counts.shape[1], deepest.size
    sure = np.zeros((bins, levels + 1, classes + 1), np.int32)
    rest = np.zeros((bins, classes + 1), np.int32)
    unsure = np.zeros((bins, levels, cap - floor + 1, levels + 1, classes + 1), np.int32)
    for i in range(first, last):
        b = 0
        for value in values:  # without a branch: gaps are hard to foretell
            b += value < np.float64(gap[i])
        own = candidate[i]
        y = classes if truth[i] == VOID else np.int64(truth[i])
        agrees, inside = agreement[own, y], counts[i, own]
        if inside >= cap:
            sure[b, agrees, y] += 1
            continue
        rest[b, y] += 1
        top = deepest[b]
        for level in range(top, -1, -1):
            if level == 0:
                inside = counts[i, own]
            elif level == top or not repeated[own, level]:
                inside = _masked_sum(counts[i], masks[own, level])
            if inside < floor:
                break
            unsure[b, level, min(np.int64(inside), cap) - floor, agrees, y] += 1
    return sure, rest, unsure
