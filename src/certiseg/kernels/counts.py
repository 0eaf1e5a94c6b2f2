"""Loops over votes: counting labels, ranking classes, checking totals, histograms of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.kernels.threads import in_parts, inline, jit


@jit
def count_labels(labels: Any, counts: Any) -> None:
    """counts[H, W, C] += 1 at labels[d, H, W] for every draw d."""
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            for d in range(labels.shape[0]):
                counts[i, j, labels[d, i, j]] += np.uint16(1)


@jit
def _rank_classes(first: Any, last: Any, sums: Any, ranking: Any, lead: Any) -> None:
    """`rank_classes` for the rows first .. last-1: each class is sorted into the best ones so far.

    Neighbours rank alike: the least sum here of the classes that were best one pixel before is reached by as many
    classes as are kept, and a class below it need not be sorted in.
    """
    num_classes, kept, low = sums.shape[2], max(ranking.shape[2], 2), np.uint64(0xFFFF)
    rows, leads = sums[first:last].reshape(-1, num_classes), lead[first:last].reshape(-1)
    ranks = ranking[first:last].reshape(-1, ranking.shape[2])
    keys = low - np.arange(kept).astype(np.uint64)  # the sum, and below it 16 bits that favour low class indices
    for i in range(leads.size):
        row, least = rows[i], np.uint64(0xFFFFFFFFFFFFFFFF)
        for m in range(kept):
            own = keys[m] & low
            least = min(least, np.uint64(row[low - own]) << np.uint64(16) | own)
        keys[:] = 0
        for k in range(num_classes):
            key = np.uint64(row[k]) << np.uint64(16) | np.uint64(0xFFFF - k)
            if key >= least:
                place = kept - 1
                while place > 0 and key > keys[place - 1]:
                    keys[place] = keys[place - 1]
                    place -= 1
                keys[place] = key
                least = max(least, keys[kept - 1])
        for r in range(ranks.shape[1]):
            ranks[i, r] = low - (keys[r] & low)
        leads[i] = np.int64(keys[0] >> np.uint64(16)) - np.int64(keys[1] >> np.uint64(16))


def rank_classes(sums: NDArray[np.uint32], ranking: NDArray[np.unsignedinteger], lead: NDArray[np.int64]) -> None:
    """ranking[H, W, m]: the m classes with the largest sums, ties by class index; lead: largest minus second."""
    height, width = sums.shape[:2]
    in_parts(_rank_classes, height, width, sums, ranking, lead)


@inline
def total_of(row: Any) -> Any:
    """The sum of a row, in 32 bits."""
    total = np.uint32(0)
    for k in range(row.size):
        total += np.uint32(row[k])
    return total


@jit
def totals_are(first: Any, last: Any, counts: Any, n: Any) -> bool:
    """Whether the counts (N, C) of the pixels first .. last-1 add up to n."""
    right = True
    for i in range(first, last):
        right &= total_of(counts[i]) == n
    return right


@jit
def names_repeat(first: Any, last: Any, ranking: Any) -> bool:
    """Whether one of the pixels first .. last-1 of a ranking (N, m) names a class more than once."""
    ranking = ranking[first:last]
    for i in range(ranking.shape[0]):
        seen, twice = np.uint64(0), np.uint64(0)
        for m in range(ranking.shape[1]):
            bit = np.uint64(1) << (np.uint64(ranking[i, m]) & np.uint64(63))
            twice |= seen & bit
            seen |= bit
        if twice and np.unique(ranking[i]).size < ranking.shape[1]:
            return True
    return False


@jit
def histogram(hits: Any, n: Any) -> Any:
    """How many pixels have 0, 1, ..., n hits; four counters in turn, because neighbours often have the same number."""
    counters = np.zeros((4, n + 1), np.int64)
    for i in range(hits.size):
        counters[i & 3, hits[i]] += 1
    return counters.sum(axis=0)
