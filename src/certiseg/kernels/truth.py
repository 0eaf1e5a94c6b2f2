"""Loops over posteriors: how they extend from the model's resolution to the pixels, and how much comes before a class.

Posteriors are whole numbers whose sum over the classes fits 32 bits. At a pixel they are the bilinear mean of four,
rounded; so one that is at least q at all four corners of a cell is at least q everywhere inside it, and most cells need
no interpolation to say which classes reach q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels.scores import same_until
from certiseg.kernels.threads import inline, jit


@jit
def sum_before(first: Any, last: Any, posterior: Any, before: Any) -> None:
    """before[i, c] = the posteriors of the classes that rank before c at pixel i; ties go to the lower class."""
    posterior, before = posterior[first:last], before[first:last]
    for i in range(posterior.shape[0]):
        row = posterior[i]
        for c in range(row.size):
            own, total = row[c], np.uint32(0)
            for k in range(c):
                total += row[k] if row[k] >= own else np.uint32(0)
            for k in range(c + 1, row.size):
                total += row[k] if row[k] > own else np.uint32(0)
            before[i, c] = total


@jit
def vertex_before(first: Any, last: Any, posterior: Any, masks: Any, agreement: Any, before: Any) -> None:
    """before[i, c] = the posterior of the largest vertex on the path of the best class of pixel i that leaves c out.

    masks (C, L, C): which leaves are under K(y, l); agreement (C, C): the first level of K(y, l) that holds a class.
    """
    posterior, before = posterior[first:last], before[first:last]
    on_path = np.empty(masks.shape[1] + 1, np.uint32)
    on_path[0] = 0
    for i in range(posterior.shape[0]):
        row = posterior[i]
        best = 0
        for c in range(1, row.size):
            best = c if row[c] > row[best] else best
        for level in range(masks.shape[1]):
            total = np.uint32(0)
            for c in range(row.size):
                total += row[c] if masks[best, level, c] else np.uint32(0)
            on_path[level + 1] = total
        for c in range(row.size):
            before[i, c] = on_path[agreement[best, c]]


@inline
def _mean(corners: Any, y: Any, x: Any) -> Any:
    """The bilinear mean of four corners at weights (y, x), plus one half: its whole part is the rounded mean."""
    y, x, one = np.float64(y), np.float64(x), np.float64(1)
    upper = (one - x) * corners[0] + x * corners[1]
    lower = (one - x) * corners[2] + x * corners[3]
    return (one - y) * upper + y * lower + np.float64(0.5)


@inline
def _corners(coarse: Any, top: Any, bottom: Any, left: Any, right: Any, c: Any) -> Any:
    """A class at the upper left, upper right, lower left and lower right of a cell."""
    one, two = np.float64(coarse[top, left, c]), np.float64(coarse[top, right, c])
    return one, two, np.float64(coarse[bottom, left, c]), np.float64(coarse[bottom, right, c])


@jit
def enlarge(first: Any, last: Any, coarse: Any, places: Any, fine: Any) -> None:
    """fine[i, j, c] for the rows first .. last-1, from coarse (h, w, C)."""
    rows, row_weights, columns, column_weights = places
    h, w, num_classes = coarse.shape
    for i in range(first, last):
        top, bottom = rows[i], min(rows[i] + 1, h - 1)
        for j in range(fine.shape[1]):
            left, right = columns[j], min(columns[j] + 1, w - 1)
            for c in range(num_classes):
                corners = _corners(coarse, top, bottom, left, right, c)
                fine[i, j, c] = np.uint32(_mean(corners, row_weights[i], column_weights[j]))


@jit
def enlarge_one(first: Any, last: Any, coarse: Any, places: Any, label: Any, fine: Any) -> None:
    """fine[i, j] of the class label[i, j] alone, for the rows first .. last-1; 0 where that is negative."""
    rows, row_weights, columns, column_weights = places
    h, w, _ = coarse.shape
    for i in range(first, last):
        top, bottom = rows[i], min(rows[i] + 1, h - 1)
        for j in range(fine.shape[1]):
            left, right, c = columns[j], min(columns[j] + 1, w - 1), label[i, j]
            fine[i, j] = 0
            if c >= 0:
                corners = _corners(coarse, top, bottom, left, right, c)
                fine[i, j] = np.uint32(_mean(corners, row_weights[i], column_weights[j]))


@jit
def reaching(first: Any, last: Any, coarse: Any, reached: Any, places: Any, least: Any, packed: Any) -> None:
    """The bits of packed[i, j]: the classes whose enlarged coarse[..., c] is at least least[c]; rows first .. last-1.

    reached (h, w, bytes): the same of coarse itself. Class c is bit 7 - c % 8 of byte c // 8, as np.packbits has it.
    """
    rows, row_weights, columns, column_weights = places
    h, w = coarse.shape[:2]
    first_row = first
    while first_row < last:
        end_row = same_until(rows, first_row, last)
        top, bottom = rows[first_row], min(rows[first_row] + 1, h - 1)
        first_column = 0
        while first_column < packed.shape[1]:
            end_column = same_until(columns, first_column, packed.shape[1])
            left, right = columns[first_column], min(columns[first_column] + 1, w - 1)
            for b in range(packed.shape[2]):
                one, two = reached[top, left, b], reached[top, right, b]
                three, four = reached[bottom, left, b], reached[bottom, right, b]
                everywhere = one & two & three & four
                packed[first_row:end_row, first_column:end_column, b] = everywhere
                mixed, c = np.int64(one | two | three | four) - np.int64(everywhere), 8 * b
                while mixed:
                    if mixed & 128:
                        corners, bound = _corners(coarse, top, bottom, left, right, c), np.float64(least[c])
                        bit = np.uint8(128 >> (c - 8 * b))
                        for j in range(first_column, end_column):
                            for i in range(first_row, end_row):
                                inside = _mean(corners, row_weights[i], column_weights[j]) >= bound
                                packed[i, j, b] |= bit if inside else np.uint8(0)
                    mixed, c = (mixed << 1) & 255, c + 1
            first_column = end_column
        first_row = end_row
