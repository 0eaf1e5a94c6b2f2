"""Loops that count pixels by true class, label and hits: for scores, and for searches of thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels.threads import jit


@jit
def count_vertices(truth: Any, scored: Any, vertex: Any, level: Any, counts: Any) -> None:
    """counts[true class, vertex + 1, level] += 1 for every scored pixel, an abstention being 0."""
    for i in range(truth.size):
        if scored[i]:
            counts[truth[i], max(vertex[i] + 1, 0), level[i]] += 1


@jit
def count_sets(truth: Any, scored: Any, ranking: Any, set_size: Any, counts: Any, claimed: Any) -> None:
    """counts[true class, 2 * size + right, 0] += 1 for every scored pixel, and `claimed` for sets of one class.

    ranking (N, max_set): a set is its first set_size classes.
    """
    for i in range(truth.size):
        if scored[i]:
            size, right = np.intp(set_size[i]), np.intp(0)
            for m in range(size):
                right |= np.intp(ranking[i, m] == truth[i])
            counts[truth[i], 2 * size + right, 0] += 1
            if size == 1:
                claimed[ranking[i, 0]] += 1


@jit
def count_by_gap(
    first: Any, last: Any, votes: Any, below: Any, truth: Any, deepest: Any, tree: Any, bounds: Any
) -> Any:
    """Pixels counted as `threshold_histogram` needs them: (sure, rest, unsure).

    sure: those with at least `cap` hits at level 0, by bin of the gap, candidate and true class. rest: the others,
    likewise. unsure: these by bin, level, hits from floor to cap, first right level and true class, too.
    votes: counts (N, C), candidate, ranking, its hits, n. below: how many values of the grid a gap does not exceed.
    deepest: the coarsest level that is wanted in a bin. tree: see `threshold_histogram`. Void counts as class C.
    Hits are taken from the coarsest level down, and once they are below the floor nothing finer matters; four levels
    are added up side by side in 64 bits. Places in the tables are found for a block of pixels at once, which runs on
    whole vectors; two tables in turn, because an addition waits for the one before it at its place.
    """
    (counts, candidate, ranking, ranked, n), (joining, agreement, levels), (floor, cap, void) = votes, tree, bounds
    classes, bins, most = counts.shape[1], deepest.size, ranked.shape[0]
    sure = np.zeros((2, bins * classes * (classes + 1)), np.int32)
    rest = np.zeros(bins * classes * (classes + 1), np.int32)
    unsure = np.zeros((bins, levels, cap - floor + 1, levels + 1, classes + 1), np.int32)
    block = np.empty(4096, np.uint32)
    for start in range(first, last, block.size):
        stop = min(start + block.size, last)
        of_candidate, of_below, of_truth = candidate[start:stop], below[start:stop], truth[start:stop]
        for i in range(of_below.size):
            y = np.uint32(classes) if of_truth[i] == void else np.uint32(of_truth[i])
            b = np.uint32(bins - 1) - np.uint32(of_below[i])
            block[i] = (b * np.uint32(classes) + np.uint32(of_candidate[i])) * np.uint32(classes + 1) + y
        hits, ranks, all_hits = ranked[0, start:stop], ranking[start:stop], ranked[:, start:stop]
        for i in range(of_below.size):
            if hits[i] >= cap:
                sure[i & 1, block[i]] += 1
                continue
            rest[block[i]] += 1
            own, b = of_candidate[i], bins - 1 - of_below[i]
            y = np.uint32(classes) if of_truth[i] == void else np.uint32(of_truth[i])
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
