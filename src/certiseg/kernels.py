"""The hot loops over pixels: up-sampling, arg max, posteriors, counting, hits. No Python per pixel.

Scores come at the model's own resolution, (h, w, C), and are extended to the image by bilinear interpolation inside
these loops; full-size scores never exist. The loops are the certified function, not an approximation of it: they
agree with torch's interpolation wherever the two best scores differ by more than 1e-5.

All loops release the GIL and are plain sequential code, so threads may run them side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_PIXELS_PER_THREAD = 100_000
_LN2 = np.float32(np.log(2.0))
_INVERSE_LN2 = np.float32(1 / np.log(2.0))

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
_inline = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")


Interpolation = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]
"""For rows, then columns: the first of two source samples, and the weight of the second."""


def interpolation(
    source: tuple[int, int], full: tuple[int, int], crop: tuple[int, int], *, align_corners: bool
) -> Interpolation:
    """How the `crop` top left pixels of an image of size `full` are mixed from scores of size `source`."""
    rows, columns = (_along(s, f, c, align_corners) for s, f, c in zip(source, full, crop, strict=True))
    return rows + columns


def _along(size: int, full: int, crop: int, align_corners: bool) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """For each of the first `crop` of `full` positions: the left of its two source samples, and the right's weight.

    The right neighbour of the last sample never carries weight, so `left + 1` may be clamped freely.
    """
    positions = np.arange(crop, dtype=np.float64)
    if align_corners:
        source = positions * ((size - 1) / (full - 1)) if full > 1 else positions
    else:
        source = np.maximum((positions + 0.5) * (size / full) - 0.5, 0)
    left = np.minimum(np.floor(source).astype(np.int64), size - 1)
    weight = np.where(left + 1 < size, source - left, 0.0)
    return left, weight.astype(np.float32)


@_inline
def _interpolate(scores: Any, top: Any, bottom: Any, left: Any, right: Any, y: Any, x: Any, out: Any) -> None:
    """out[c] = the bilinear mean of the four corners at weights (y, x)."""
    one = np.float32(1)
    a, b, c, d = (one - y) * (one - x), (one - y) * x, y * (one - x), y * x
    for k in range(out.size):
        out[k] = (
            a * scores[top, left, k]
            + b * scores[top, right, k]
            + c * scores[bottom, left, k]
            + (d * scores[bottom, right, k])
        )


@_inline
def _first_largest(values: Any) -> Any:
    best = 0
    for k in range(1, values.size):
        if values[k] > values[best]:
            best = k
    return best


@_jit
def labels_of_scores(scores: Any, places: Any, labels: Any) -> None:
    """labels[H, W] = arg max over classes of the up-sampled scores (h, w, C); ties go to the lowest class.

    Interpolation is a convex combination, so a class that is largest at all four corners of a cell is largest
    everywhere inside it: only cells whose corners disagree are interpolated.
    """
    rows, row_weights, columns, column_weights = places
    h, w, num_classes = scores.shape
    best = np.empty((h, w), np.int32)
    for i in range(h):
        for j in range(w):
            best[i, j] = _first_largest(scores[i, j])
    mixed = np.empty(num_classes, np.float32)
    for i in range(labels.shape[0]):
        top, bottom = rows[i], min(rows[i] + 1, h - 1)
        for j in range(labels.shape[1]):
            left, right = columns[j], min(columns[j] + 1, w - 1)
            label = best[top, left]
            if best[top, right] != label or best[bottom, left] != label or best[bottom, right] != label:
                _interpolate(scores, top, bottom, left, right, row_weights[i], column_weights[j], mixed)
                label = _first_largest(mixed)
            labels[i, j] = label


@_inline
def _exp(x: Any) -> Any:
    """exp of a float32 in [-87, 0], by 2^k times the series of exp on [-ln 2 / 2, ln 2 / 2]."""
    x = max(x, np.float32(-87))
    k = np.float32(np.int32(x * _INVERSE_LN2 - np.float32(0.5)))
    r = x - k * _LN2
    series = np.float32(1 / 120) + r * np.float32(1 / 720)
    series = np.float32(1 / 2) + r * (np.float32(1 / 6) + r * (np.float32(1 / 24) + r * series))
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * (np.float32(1) + r * (np.float32(1) + r * series))


@_jit
def add_posteriors(scores: Any, places: Any, inverse_temperature: Any, unit: Any, sums: Any) -> None:
    """sums[H, W, C] += the posterior of every pixel in fixed point (`unit` is one), so that sums have no order.

    inverse_temperature > 0: scores are logits and the posterior is their softmax; 0: they are probabilities.
    """
    rows, row_weights, columns, column_weights = places
    h, w, num_classes = scores.shape
    mixed = np.empty(num_classes, np.float32)
    for i in range(sums.shape[0]):
        top, bottom = rows[i], min(rows[i] + 1, h - 1)
        for j in range(sums.shape[1]):
            left, right = columns[j], min(columns[j] + 1, w - 1)
            _interpolate(scores, top, bottom, left, right, row_weights[i], column_weights[j], mixed)
            if inverse_temperature > 0:
                largest = mixed[_first_largest(mixed)]
                for k in range(num_classes):
                    mixed[k] = _exp((mixed[k] - largest) * inverse_temperature)
            total = np.float32(0)
            for k in range(num_classes):
                total += mixed[k]
            factor = np.float64(unit) / np.float64(total) if total > 0 else np.float64(0)
            for k in range(num_classes):
                sums[i, j, k] += np.uint32(np.float64(mixed[k]) * factor)


@_jit
def add_label_posteriors(labels: Any, unit: Any, sums: Any) -> None:
    """sums[H, W, C] += unit at the label of every pixel: the posterior of a model that only gives labels."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[i, j, labels[i, j]] += np.uint32(unit)


@_jit
def count_labels(labels: Any, counts: Any) -> None:
    """counts[H, W, C] += 1 at labels[d, H, W] for every draw d."""
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            for d in range(labels.shape[0]):
                counts[i, j, labels[d, i, j]] += np.uint16(1)


@_jit
def rank_classes(sums: Any, ranking: Any, lead: Any) -> None:
    """ranking[H, W, m]: the m classes with the largest sums, ties by class index; lead: largest minus second."""
    num_classes, m = sums.shape[2], ranking.shape[2]
    taken = np.zeros(num_classes, np.bool_)
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            taken[:] = False
            first, second = np.int64(0), np.int64(0)
            for r in range(max(m, 2)):
                best = -1
                for k in range(num_classes):
                    if not taken[k] and (best < 0 or sums[i, j, k] > sums[i, j, best]):
                        best = k
                taken[best] = True
                if r < m:
                    ranking[i, j, r] = best
                if r == 0:
                    first = np.int64(sums[i, j, best])
                elif r == 1:
                    second = np.int64(sums[i, j, best])
            lead[i, j] = first - second


@_jit
def count_totals_equal(counts: Any, n: Any) -> bool:
    """Whether the counts (N, C) of every pixel add up to n."""
    for i in range(counts.shape[0]):
        total = np.uint32(0)
        for k in range(counts.shape[1]):
            total += np.uint32(counts[i, k])
        if total != n:
            return False
    return True


@_jit
def names_repeat(ranking: Any) -> bool:
    """Whether some pixel of a ranking (N, m) names a class more than once."""
    for i in range(ranking.shape[0]):
        for m in range(1, ranking.shape[1]):
            for earlier in range(m):
                if ranking[i, m] == ranking[i, earlier]:
                    return True
    return False


@_inline
def _masked_sum(row: Any, mask: Any) -> Any:
    """Sum of the values whose mask is all ones; no branch and 16 bits throughout, so that it runs on whole vectors."""
    total = np.uint16(0)
    for k in range(row.size):
        total = np.uint16(total + (row[k] & mask[k]))
    return total


# Loops over the pixels first .. last-1 of flat arrays, for `over_pixels`.


@_jit
def path_hits(first: Any, last: Any, counts: Any, candidate: Any, masks: Any, hits: Any) -> None:
    """hits[l, i] = votes of pixel i for the leaves under K(candidate, l).

    counts (N, C); candidate (N,); masks (C, L, C): all ones at the leaves under K(y, l); hits (L, N).
    """
    for i in range(first, last):
        for link in range(masks.shape[1]):
            hits[link, i] = _masked_sum(counts[i], masks[candidate[i], link])


@_jit
def candidate_hits(first: Any, last: Any, counts: Any, candidate: Any, hits: Any) -> None:
    """hits[0, i] = votes of pixel i for its candidate."""
    for i in range(first, last):
        hits[0, i] = counts[i, candidate[i]]


@_jit
def level_hits(first: Any, last: Any, counts: Any, candidate: Any, level: Any, masks: Any, hits: Any) -> None:
    """hits[0, i] = votes of pixel i for the leaves under K(candidate, level[i]); see `path_hits`."""
    for i in range(first, last):
        if level[i] == 0:
            hits[0, i] = counts[i, candidate[i]]
        else:
            hits[0, i] = _masked_sum(counts[i], masks[candidate[i], level[i]])


@_jit
def set_hits(first: Any, last: Any, counts: Any, ranking: Any, hits: Any) -> None:
    """hits[m, i] = votes of pixel i for its m + 1 best ranked classes; hits (max_set, N)."""
    for i in range(first, last):
        total = np.uint16(0)
        for m in range(hits.shape[0]):
            total = np.uint16(total + counts[i, ranking[i, m]])
            hits[m, i] = total


@_jit
def levels_of_gaps(first: Any, last: Any, gap: Any, thresholds: Any, level: Any) -> None:
    """level[i] = number of thresholds t with gap <= t; in blocks, so that each comparison runs on whole vectors."""
    for start in range(first, last, 4096):
        stop = min(start + 4096, last)
        level[start:stop] = 0
        for threshold in thresholds:
            for i in range(start, stop):
                level[i] += np.uint8(gap[i] <= threshold)


@_jit
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


@_jit
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


def over_pixels(loop: Callable[..., None], count: int, *arguments: Any) -> None:
    """Run a loop over `count` pixels, large images on several threads: parts of an image do not touch each other."""
    parts = min(os.cpu_count() or 1, max(1, count // _PIXELS_PER_THREAD))
    edges = [count * part // parts for part in range(parts + 1)]
    if parts == 1:
        loop(0, count, *arguments)
        return
    waiting = [_pool().submit(loop, first, last, *arguments) for first, last in pairwise(edges)]
    for part in waiting:
        part.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="certiseg")
