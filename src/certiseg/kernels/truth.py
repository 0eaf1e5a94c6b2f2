"""Loops over the posteriors of a pixel: how much comes before a class, on the way from the best class to all.

Each runs over the pixels first .. last-1 of flat arrays, for `threads.over_pixels`. Posteriors are whole numbers whose
sum over the classes fits 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels.threads import jit


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
