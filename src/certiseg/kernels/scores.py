"""Loops over the scores of a model: up-sampling, arg max, posteriors.

Scores come at the model's own resolution, (h, w, C), and are extended to the image by bilinear interpolation inside
these loops; full-size scores never exist. The loops are the certified function, not an approximation of it: they
agree with torch's interpolation wherever the two best scores differ by more than 1e-5.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from certiseg.kernels.threads import in_parts, inline, jit

_TOGETHER = 8
"""Pixels whose posteriors are summed side by side: one sum alone waits for each of its additions."""
_ROUNDING = np.float32(4e-6)
"""More than twice what interpolation in 32 bits can be wrong by, relative to the largest score."""
_LN2 = np.float32(np.log(2.0))
_INVERSE_LN2 = np.float32(1 / np.log(2.0))

# Scores are finite, and +0 and -0 are alike: then a maximum runs on whole vectors.
_jit_of_finite = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})

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


@inline
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


@_jit_of_finite
def _largest(values: Any) -> Any:
    largest = values[0]
    for k in range(1, values.size):
        largest = max(largest, values[k])
    return largest


@jit
def _first_largest(values: Any) -> Any:
    largest, k = _largest(values), 0
    while values[k] != largest:
        k += 1
    return k


@_jit_of_finite
def _contenders(scores: Any, top: Any, bottom: Any, left: Any, right: Any, highest: Any, contenders: Any) -> Any:
    """The classes, rising, that can be largest somewhere in a cell; returns how many.

    One that stays everywhere below what another exceeds everywhere cannot, rounding included.
    """
    floor, reach = np.float32(-np.inf), np.float32(0)
    for k in range(scores.shape[2]):
        a, b, c, d = scores[top, left, k], scores[top, right, k], scores[bottom, left, k], scores[bottom, right, k]
        low, high = min(min(a, b), min(c, d)), max(max(a, b), max(c, d))
        highest[k] = high
        floor, reach = max(floor, low), max(reach, max(high, -low))
    floor -= _ROUNDING * reach
    count = 0
    for k in range(scores.shape[2]):
        contenders[count] = k
        count += highest[k] >= floor
    return count


@inline
def same_until(places: Any, start: Any, last: Any) -> Any:
    """The end of the run of equal places that begins at `start`, `last` at most."""
    end = start + 1
    while end < last and places[end] == places[start]:
        end += 1
    return end


@jit
def _labels_of_scores(first: Any, last: Any, scores: Any, places: Any, labels: Any) -> None:
    """`labels_of_scores` for the rows first .. last-1.

    Interpolation is a convex combination, so a class that is largest at all four corners of a cell is largest
    everywhere inside it: only cells whose corners disagree are interpolated, and in them only the contenders.
    """
    rows, row_weights, columns, column_weights = places
    h, w, num_classes = scores.shape
    best = np.empty((h, w), np.int32)
    for i in range(rows[first], min(rows[last - 1] + 2, h)):
        for j in range(w):
            best[i, j] = _first_largest(scores[i, j])
    highest, contenders = np.empty(num_classes, np.float32), np.empty(num_classes + 1, np.int32)
    one, first_row = np.float32(1), first
    while first_row < last:
        end_row = same_until(rows, first_row, last)
        top, bottom = rows[first_row], min(rows[first_row] + 1, h - 1)
        first_column = 0
        while first_column < labels.shape[1]:
            end_column = same_until(columns, first_column, labels.shape[1])
            left, right = columns[first_column], min(columns[first_column] + 1, w - 1)
            label = best[top, left]
            if best[top, right] == label and best[bottom, left] == label and best[bottom, right] == label:
                for i in range(first_row, end_row):
                    for j in range(first_column, end_column):
                        labels[i, j] = label
            else:
                count = _contenders(scores, top, bottom, left, right, highest, contenders)
                for i in range(first_row, end_row):
                    for j in range(first_column, end_column):
                        y, x = row_weights[i], column_weights[j]
                        a, b, c, d = (one - y) * (one - x), (one - y) * x, y * (one - x), y * x
                        winner, largest = 0, np.float32(-np.inf)
                        for contender in contenders[:count]:
                            value = (
                                a * scores[top, left, contender]
                                + b * scores[top, right, contender]
                                + c * scores[bottom, left, contender]
                                + (d * scores[bottom, right, contender])
                            )
                            if value > largest:
                                winner, largest = contender, value
                        labels[i, j] = winner
            first_column = end_column
        first_row = end_row


def labels_of_scores(scores: NDArray[np.float32], places: Interpolation, labels: NDArray[np.unsignedinteger]) -> None:
    """labels[H, W] = arg max over classes of the up-sampled scores (h, w, C); ties go to the lowest class."""
    height, width = labels.shape
    in_parts(_labels_of_scores, height, width, scores, places, labels)


@inline
def _exp(x: Any) -> Any:
    """exp of a float32 in [-87, 0], by 2^k times the series of exp on [-ln 2 / 2, ln 2 / 2]."""
    x = max(x, np.float32(-87))
    k = np.float32(np.int32(x * _INVERSE_LN2 - np.float32(0.5)))
    r = x - k * _LN2
    series = np.float32(1 / 120) + r * np.float32(1 / 720)
    series = np.float32(1 / 2) + r * (np.float32(1 / 6) + r * (np.float32(1 / 24) + r * series))
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * (np.float32(1) + r * (np.float32(1) + r * series))


@inline
def _whole(x: Any) -> Any:
    """The whole part of a float64 in [0, 2^32), by adding 2^52: unlike a conversion, it runs on whole vectors."""
    shift = np.float64(2.0**52)
    nearest = (x + shift) - shift
    below = nearest - np.float64(1) if nearest > x else nearest
    return np.uint32(np.float64(below + shift).view(np.uint64))


@jit
def _add_posteriors(
    first: Any, last: Any, scores: Any, places: Any, inverse_temperature: Any, unit: Any, sums: Any
) -> None:
    """`add_posteriors` for the rows first .. last-1."""
    rows, row_weights, columns, column_weights = places
    h, w, num_classes = scores.shape
    mixed, totals = np.zeros((_TOGETHER, num_classes), np.float32), np.empty(_TOGETHER, np.float32)
    flat = mixed.reshape(-1)  # of whole vectors, unlike the classes of one pixel
    for i in range(first, last):
        top, bottom = rows[i], min(rows[i] + 1, h - 1)
        for start in range(0, sums.shape[1], _TOGETHER):
            pixels = min(_TOGETHER, sums.shape[1] - start)
            for p in range(pixels):
                left, right = columns[start + p], min(columns[start + p] + 1, w - 1)
                _interpolate(scores, top, bottom, left, right, row_weights[i], column_weights[start + p], mixed[p])
                if inverse_temperature > 0:
                    largest = _largest(mixed[p])
                    for k in range(num_classes):
                        mixed[p, k] = (mixed[p, k] - largest) * inverse_temperature
            if inverse_temperature > 0:
                for k in range(flat.size):
                    flat[k] = _exp(flat[k])
            totals[:] = 0
            for k in range(num_classes):
                for p in range(_TOGETHER):
                    totals[p] += mixed[p, k]
            for p in range(pixels):
                factor = np.float64(unit) / np.float64(totals[p]) if totals[p] > 0 else np.float64(0)
                for k in range(num_classes):
                    sums[i, start + p, k] += _whole(np.float64(mixed[p, k]) * factor)


def add_posteriors(
    scores: NDArray[np.float32],
    places: Interpolation,
    inverse_temperature: np.float32,
    unit: np.uint32,
    sums: NDArray[np.uint32],
) -> None:
    """sums[H, W, C] += the posterior of every pixel in fixed point (`unit` is one), so that sums have no order.

    inverse_temperature > 0: scores are logits and the posterior is their softmax; 0: they are probabilities.
    """
    height, width = sums.shape[:2]
    in_parts(_add_posteriors, height, width, scores, places, inverse_temperature, unit, sums)


@jit
def add_label_posteriors(labels: Any, unit: Any, sums: Any) -> None:
    """sums[H, W, C] += unit at the label of every pixel: the posterior of a model that only gives labels."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[i, j, labels[i, j]] += np.uint32(unit)
