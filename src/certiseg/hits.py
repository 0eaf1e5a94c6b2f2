"""The hot loops of certifying: from counts to hits of label sets, from certified links to vertices.

Each runs over the pixels first .. last-1 of flat arrays, for `kernels.over_pixels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels import inline, jit, total_of


@inline
def _masked_sum(flat: Any, i: Any, num_classes: Any, mask: Any) -> Any:
    """Sum of the counts of pixel i whose mask is all ones; no branch and 16 bits, so that it runs on whole vectors.

    Masks are longer than the classes, with zeros behind, and the sum reads into the next pixels.
    """
    row = flat[i * num_classes : i * num_classes + mask.size]
    total = np.uint16(0)
    for k in range(row.size):
        total = np.uint16(total + (row[k] & mask[k]))
    return total


@jit
def candidate_hits(first: Any, last: Any, counts: Any, candidate: Any, n: Any, hits: Any) -> bool:
    """hits[i] = votes of pixel i for its candidate; returns whether the counts (N, C) of every pixel add up to n."""
    right = True
    for i in range(first, last):
        right &= total_of(counts[i]) == n
        hits[i] = counts[i, candidate[i]]
    return right


@jit
def path_hits(first: Any, last: Any, counts: Any, candidate: Any, own: Any, masks: Any, hits: Any) -> None:
    """hits[l, i] = votes of pixel i for the leaves under K(candidate, l).

    counts (N, C); candidate (N,) and its hits `own`; masks (C, L, C and more): all ones at the leaves under K(y, l).
    """
    flat, num_classes = counts.reshape(-1), counts.shape[1]
    for i in range(first, last):
        hits[0, i] = own[i]
        for link in range(1, masks.shape[1]):
            hits[link, i] = _masked_sum(flat, i, num_classes, masks[candidate[i], link])


@jit
def level_hits(first: Any, last: Any, counts: Any, candidate: Any, own: Any, level: Any, masks: Any, hits: Any) -> None:
    """hits[0, i] = votes of pixel i for the leaves under K(candidate, level[i]); see `path_hits`."""
    flat, num_classes = counts.reshape(-1), counts.shape[1]
    for i in range(first, last):
        if level[i] == 0:
            hits[0, i] = own[i]
        else:
            hits[0, i] = _masked_sum(flat, i, num_classes, masks[candidate[i], level[i]])


@jit
def set_hits(first: Any, last: Any, counts: Any, ranking: Any, own: Any, hits: Any) -> None:
    """hits[m, i] = votes of pixel i for its m + 1 best ranked classes; hits (max_set, N)."""
    for i in range(first, last):
        total = own[i]
        hits[0, i] = total
        for m in range(1, hits.shape[0]):
            total = np.uint16(total + counts[i, ranking[i, m]])
            hits[m, i] = total


@jit
def levels_of_gaps(first: Any, last: Any, gap: Any, thresholds: Any, level: Any) -> None:
    """level[i] = number of thresholds t with gap <= t; in blocks, so that each comparison runs on whole vectors."""
    for start in range(first, last, 4096):
        stop = min(start + 4096, last)
        level[start:stop] = 0
        for threshold in thresholds:
            for i in range(start, stop):
                level[i] += np.uint8(gap[i] <= threshold)


@jit
def vertices_at(
    first: Any, last: Any, candidate: Any, level: Any, link: Any, links: Any, table: Any, vertex: Any
) -> None:
    """vertex[i] = table[candidate, level] where a link below `links` was certified, else the table's last column.

    Computed without a branch: where certified and abstained pixels mix, a processor guesses every other one wrong.
    """
    width = np.uint32(table.shape[1])
    flat = table.reshape(-1)
    for i in range(first, last):
        yes = np.uint32(link[i] < links)
        column = np.uint32(level[i]) * yes + (width - np.uint32(1)) * (np.uint32(1) - yes)
        vertex[i] = flat[np.uint32(candidate[i]) * width + column]


@jit
def covers(first: Any, last: Any, ranking: Any, set_size: Any, meeting: Any, table: Any, vertex: Any) -> None:
    """vertex[i] = the lowest vertex over the first set_size[i] ranked classes.

    It lies on the path of the best ranked class, where the last of the others joins it. meeting (C, C): the level at
    which one class joins the path of another, L for never; table (C, L + 2): the path, the root, and nothing.
    """
    nothing = table.shape[1] - 1
    for i in range(first, last):
        best, level = ranking[i, 0], np.int64(0)
        for m in range(1, ranking.shape[1]):
            level = max(level, np.int64(meeting[best, ranking[i, m]]) * np.int64(m < set_size[i]))
        vertex[i] = table[best, nothing if set_size[i] == 0 else level]
