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

from certiseg.certify import rounded_down
from certiseg.hierarchy import Hierarchy
from certiseg.hits import levels_of_gaps
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
        self.floor, size = floor, votes.candidate.size
        below = np.empty(size, np.uint8)
        over_pixels(levels_of_gaps, size, votes.gap.reshape(-1), rounded_down(values, votes.gap.dtype), below)
        parts = over_pixels(
            _count_pixels,
            size,
            (
                votes.counts.reshape(size, -1),
                np.ascontiguousarray(votes.candidate).reshape(-1),
                votes.ranking.reshape(size, -1),
                votes.set_hits.reshape(-1, size),
                votes.n,
            ),
            below,
            np.ascontiguousarray(label).reshape(-1),
            deepest,
            (_joining(hierarchy), _agreement(hierarchy), hierarchy.num_levels),
            (floor, cap),
        )
        by_candidate, rest, unsure = (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
        sure = _by_agreement(by_candidate, hierarchy)
        self.pixels = sure.sum(axis=1) + rest.sum(axis=1)
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
def _joining(hierarchy: Hierarchy) -> NDArray[np.uint64]:
    """(words, C, C): 1 in the 16 bits of each level at which K(y, l) holds another class, four levels to a word."""
    levels = hierarchy.num_levels
    words = np.zeros((-(-levels // 4), hierarchy.num_classes, hierarchy.num_classes), np.uint64)
    for level in range(levels):
        words[level // 4] |= hierarchy.members[hierarchy.ancestors[:, level]].astype(np.uint64) << (16 * (level % 4))
    return words


@lru_cache(maxsize=16)
def _agreement(hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(C, C + 1): the first level at which the vertex of one class holds another, L for never; the last is void."""
    under = hierarchy.members[hierarchy.ancestors]
    first = np.where(under.any(axis=1), under.argmax(axis=1), hierarchy.num_levels)
    return np.append(first, np.zeros((hierarchy.num_classes, 1), first.dtype), axis=1).astype(np.uint8)


def _by_agreement(pixels: NDArray[np.int32], hierarchy: Hierarchy) -> NDArray[np.int32]:
    """(bins, L + 1, C + 1): pixels (bins, C, C + 1) by candidate, added up by the level at which it is right."""
    agreement = _agreement(hierarchy)
    levels = range(hierarchy.num_levels + 1)
    return np.stack([(pixels * (agreement == level)).sum(axis=1, dtype=np.int32) for level in levels], axis=1)


@_jit
def _count_pixels(
    first: Any, last: Any, votes: Any, below: Any, truth: Any, deepest: Any, tree: Any, bounds: Any
) -> Any:
    """(sure, rest, unsure): pixels that the cap settles at level 0 and the others, both by bin, candidate and true
    class, and the others by level and step, too.

    below: how many of the grid's values a gap does not exceed. Hits are taken from the coarsest level down, and once
    they are below the floor nothing finer matters; four levels are added up side by side in 64 bits. Places in the
    tables are found for a block of pixels at once, which runs on whole vectors; two tables in turn, because an addition
    waits for the one before it in its cell.
    """
    (counts, candidate, ranking, ranked, n), (joining, agreement, levels), (floor, cap) = votes, tree, bounds
    classes, bins, most = counts.shape[1], deepest.size, ranked.shape[0]
    sure = np.zeros((2, bins * classes * (classes + 1)), np.int32)
    rest = np.zeros(bins * classes * (classes + 1), np.int32)
    unsure = np.zeros((bins, levels, cap - floor + 1, levels + 1, classes + 1), np.int32)
    block = np.empty(4096, np.uint32)
    for start in range(first, last, block.size):
        stop = min(start + block.size, last)
        of_candidate, of_below, of_truth = candidate[start:stop], below[start:stop], truth[start:stop]
        for i in range(of_below.size):
            y = np.uint32(classes) if of_truth[i] == VOID else np.uint32(of_truth[i])
            b = np.uint32(bins - 1) - np.uint32(of_below[i])
            block[i] = (b * np.uint32(classes) + np.uint32(of_candidate[i])) * np.uint32(classes + 1) + y
        hits, ranks, all_hits = ranked[0, start:stop], ranking[start:stop], ranked[:, start:stop]
        for i in range(of_below.size):
            if hits[i] >= cap:
                sure[i & 1, block[i]] += 1
                continue
            rest[block[i]] += 1
            own, b = of_candidate[i], bins - 1 - of_below[i]
            y = np.uint32(classes) if of_truth[i] == VOID else np.uint32(of_truth[i])
            top, packed = deepest[b], np.uint64(0)
            for level in range(top, -1, -1):
                if level == top or level & 3 == 3:
                    packed = np.uint64(0)
                    if all_hits[most - 1, i] == n:  # the ranked classes have all votes
                        before = np.uint16(0)
                        for m in range(most):
                            now = all_hits[m, i]
                            packed += np.uint64(now - before) * joining[level >> 2, own, ranks[i, m]]
                            before = now
                    else:
                        for c in range(classes):
                            packed += np.uint64(counts[start + i, c]) * joining[level >> 2, own, c]
                inside = np.int64(packed >> np.uint64(16 * (level & 3)) & np.uint64(0xFFFF))
                if inside < floor:
                    break
                unsure[b, level, min(inside, cap) - floor, agreement[own, y], y] += 1
    shape = (bins, classes, classes + 1)
    return (sure[0] + sure[1]).reshape(shape), rest.reshape(shape), unsure
