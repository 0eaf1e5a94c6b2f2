"""The pixels of one image, counted once for all threshold functions of a grid.

At a level, the scores of a function ask four things of a pixel: the bin of its gap, its hits, its true class, and the
first level at which it is right (what is right at a level is right at all coarser ones: the leaves of K(y, l) only grow
with l). Fewer hits than the floor never certify and the cap always does, so hits beyond them are not told apart and
the table is small.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certiseg.chains import pick, ranked_hits_of, rounded_down
from certiseg.errors import InputError
from certiseg.hierarchy import VOID, Hierarchy
from certiseg.kernels.histograms import count_by_gap
from certiseg.kernels.hits import levels_of_gaps
from certiseg.kernels.threads import over_pixels
from certiseg.votes import Votes


class ThresholdHistogram:
    """The counted pixels. Hits come in steps: 0 is the floor, the last one the cap and all above."""

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
        if votes.further:
            raise InputError(
                "votes must be at one anchor to search thresholds, got more; certify with adaptive instead"
            )
        size = votes.candidate.size
        below = np.empty(size, np.uint8)
        over_pixels(levels_of_gaps, size, votes.gap.reshape(-1), rounded_down(values, votes.gap.dtype), below)
        arrays = [pick(array, None) for array in (votes.counts, votes.candidate, votes.ranking)]
        counted, bounds = (*arrays, ranked_hits_of(votes), votes.n), (floor, cap, VOID)
        parts = over_pixels(count_by_gap, size, counted, below, pick(label, None), deepest, _tree(hierarchy), bounds)
        by_candidate, rest, unsure = (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
        agreement = _tree(hierarchy)[1]
        levels = range(hierarchy.num_levels + 1)
        sure = np.stack([(by_candidate * (agreement == k)).sum(axis=1, dtype=np.int32) for k in levels], axis=1)
        self._sure: NDArray[np.int32] = sure
        """(bins, L + 1, C + 1): pixels that certify at every level, by first right level (L: never) and true class."""
        self._unsure: NDArray[np.int32] = unsure
        """(bins, L, steps, L + 1, C + 1): the other pixels, those below the floor left out."""
        self.pixels: NDArray[np.int32] = sure.sum(axis=1) + rest.sum(axis=1)
        """(bins, C + 1): all pixels by bin and true class, void last."""
        self.steps: NDArray[np.int64] = unsure.reshape(*unsure.shape[:3], -1).sum(axis=3)
        """(bins, L, steps): pixels by bin, level and step of their hits, those below the floor left out."""
        self.steps[:, :, -1] += sure.sum(axis=(1, 2))[:, None]

    def passed(self, step: int) -> NDArray[np.int32]:
        """(bins, L, L + 1, C + 1): pixels with at least these hits, by first right level (L: never) and class."""
        found: NDArray[np.int32] = self._unsure[:, :, step:].sum(axis=2, dtype=np.int32) + self._sure[:, None]
        return found


@lru_cache(maxsize=16)
def _tree(hierarchy: Hierarchy) -> tuple[NDArray[np.uint64], NDArray[np.uint8], int]:
    """(joining, agreement, L).

    joining (words, C, C): 1 in the 16 bits of each level at which K(y, l) holds another class, four levels to a word.
    agreement (C, C + 1): the hierarchy's agreement table, with a last column for void.
    """
    levels = hierarchy.num_levels
    words = np.zeros((-(-levels // 4), hierarchy.num_classes, hierarchy.num_classes), np.uint64)
    for level in range(levels):
        words[level // 4] |= hierarchy.members[hierarchy.ancestors[:, level]].astype(np.uint64) << (16 * (level % 4))
    return words, np.pad(hierarchy.agreement, ((0, 0), (0, 1))), levels
