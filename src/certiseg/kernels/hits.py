"""The hot loops of certifying: from counts to hits of label sets, from certified links to vertices.

Each runs over the pixels first .. last-1 of flat arrays, for `threads.over_pixels`. Some cut their part out first:
an index that begins at 0 cannot be negative, and without that check they run on whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from certiseg.kernels.threads import inline, jit


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
def ranked_hits(first: Any, last: Any, counts: Any, ranking: Any, hits: Any) -> None:
    """hits[m, i] = votes of pixel i for its m + 1 best ranked classes.

    counts (N, C); ranking (N, max_set), each class once; hits (max_set, N).
    """
    counts, ranking, hits = counts[first:last], ranking[first:last], hits[:, first:last]
    for i in range(hits.shape[1]):
        total = np.uint16(0)
        for m in range(hits.shape[0]):
            total = np.uint16(total + counts[i, ranking[i, m]])
            hits[m, i] = total


@cache
def level_hits(ranks: int) -> Callable[..., None]:
    """The loop that finds the votes for a vertex, compiled for rankings of that many classes: it has no inner loop."""

    @jit
    def loop(
        first: Any, last: Any, counts: Any, ranking: Any, ranked: Any, n: Any, masks: Any, level: Any, hits: Any
    ) -> None:
        """hits[i] = votes of pixel i for the leaves under K(candidate, level[i]).

        counts (N, C) of n draws; ranking (N, ranks), the candidate first, and its `ranked_hits`;
        masks (C, L, C and more): all ones at the leaves under K(y, l).
        Most pixels of a scene are unanimous, and nearly everywhere the ranked classes have all n votes; then theirs are
        enough and the counts are not read.
        """
        flat, num_classes = counts.reshape(-1), counts.shape[1]
        rows, levels, width = masks.reshape(-1), np.uint32(masks.shape[1]), np.uint32(masks.shape[2])
        for i in range(first, last):
            if ranked[0, i] == n:
                hits[i] = n
            elif ranked[ranks - 1, i] == n:
                row = (np.uint32(ranking[i, 0]) * levels + np.uint32(level[i])) * width
                total = before = np.uint32(ranked[0, i])
                for m in range(1, ranks):
                    now = np.uint32(ranked[m, i])
                    total += (now - before) & np.uint32(rows[row + np.uint32(ranking[i, m])])
                    before = now
                hits[i] = total
            else:
                hits[i] = _masked_sum(flat, i, num_classes, masks[ranking[i, 0], level[i]])

    return loop


@jit
def levels_of_gaps(first: Any, last: Any, gap: Any, thresholds: Any, level: Any) -> None:
    """level[i] = number of thresholds t with gap <= t; in blocks, so that each comparison runs on whole vectors."""
    for start in range(first, last, 4096):
        stop = min(start + 4096, last)
        of_gap, of_level = gap[start:stop], level[start:stop]
        of_level[:] = 0
        for threshold in thresholds:
            for i in range(of_level.size):
                of_level[i] += np.uint8(of_gap[i] <= threshold)


@jit
def vertices_at(
    first: Any, last: Any, candidate: Any, level: Any, link: Any, links: Any, table: Any, vertex: Any
) -> None:
    """vertex[i] = table[candidate, level] where a link below `links` was certified, else -1.

    Computed without a branch: where certified and abstained pixels mix, a processor guesses every other one wrong.
    """
    flat, width = table.reshape(-1), np.uint32(table.shape[1])
    for start in range(first, last, 4096):
        stop = min(start + 4096, last)
        of_candidate, of_level, of_link = candidate[start:stop], level[start:stop], link[start:stop]
        found = vertex[start:stop]
        for i in range(found.size):
            found[i] = flat[np.uint32(of_candidate[i]) * width + np.uint32(of_level[i])]
        for i in range(found.size):
            found[i] |= np.int16(0) if of_link[i] < links else np.int16(-1)


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
