"""The hot loops of certifying: from counts to hits of label sets, from certified links to vertices.

Each runs over the pixels first .. last-1 of flat arrays, for `kernels.over_pixels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels import inline, jit, total_of


@inline
def _masked_sum(row: Any, mask: Any) -> Any:
    """Sum of the values whose mask is all ones; no branch and 16 bits throughout, so that it runs on whole vectors."""
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


# Where finer hits reach `enough`, coarser ones are at least those and nobody needs to know them better.


@jit
def path_hits(first: Any, last: Any, counts: Any, candidate: Any, own: Any, masks: Any, enough: Any, hits: Any) -> None:
    """hits[l, i] = votes of pixel i for the leaves under K(candidate, l).

    counts (N, C); candidate (N,) and its hits `own`; masks (C, L, C): all ones at the leaves under K(y, l).
    """
    for i in range(first, last):
        inside = own[i]
        hits[0, i] = inside
        for link in range(1, masks.shape[1]):
            if inside < enough:
                inside = _masked_sum(counts[i], masks[candidate[i], link])
            hits[link, i] = inside


@jit
def level_hits(
    first: Any, last: Any, counts: Any, candidate: Any, own: Any, level: Any, masks: Any, enough: Any, hits: Any
) -> None:
    """hits[0, i] = votes of pixel i for the leaves under K(candidate, level[i]); see `path_hits`."""
    for i in range(first, last):
        inside = own[i]
        if level[i] > 0 and inside < enough:
            inside = _masked_sum(counts[i], masks[candidate[i], level[i]])
        hits[0, i] = inside


@jit
def set_hits(first: Any, last: Any, counts: Any, ranking: Any, own: Any, enough: Any, hits: Any) -> None:
    """hits[m, i] = votes of pixel i for its m + 1 best ranked classes; hits (max_set, N)."""
    for i in range(first, last):
        total = own[i]
        hits[0, i] = total
        for m in range(1, hits.shape[0]):
            if total < enough:
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
def covers(
    first: Any, last: Any, ranking: Any, set_size: Any, ancestors: Any, members: Any, root: Any, vertex: Any
) -> None:
    """vertex[i] = the lowest vertex over the first set_size[i] ranked classes; empty sets are left as they are.

    It is the first vertex on the path of the best ranked class that has all the others under it.
    """
    for i in range(first, last):
        if set_size[i] == 1:
            vertex[i] = ranking[i, 0]
        elif set_size[i] > 1:
            vertex[i] = root
            for level in range(1, ancestors.shape[1]):
                above = ancestors[ranking[i, 0], level]
                covered = True
                for m in range(1, set_size[i]):
                    covered = covered and members[above, ranking[i, m]]
                if covered:
                    vertex[i] = above
                    break
