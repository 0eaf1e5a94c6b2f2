"""The loops of `kernels.scores` and of counting as torch operations, which run where their tensors are.

They give the same bits: every sum is added up in the order of the loops, a tie goes to the lowest class, and a cell
whose four corners agree has their label. An image is handled in bands of rows, so that scores of its full size never
exist.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

_BAND = 1 << 24
"""Scores that are up-sampled together."""
_LN2, _INVERSE_LN2 = float(np.float32(np.log(2.0))), float(np.float32(1 / np.log(2.0)))

Places = tuple[Tensor, Tensor, Tensor, Tensor]
"""`kernels.scores.Interpolation` on a device."""


def labels_of_scores(scores: Tensor, places: Places) -> Tensor:
    """(H, W) int64: the arg max over classes of the up-sampled scores (C, h, w)."""
    best, columns = scores.argmax(0), places[2]
    beside = (columns + 1).clamp(max=scores.shape[2] - 1)
    found = []
    for rows, mixed in _bands(scores, places):
        top, bottom = best[rows], best[(rows + 1).clamp(max=scores.shape[1] - 1)]
        corner = top[:, columns]
        alike = (top[:, beside] == corner) & (bottom[:, columns] == corner) & (bottom[:, beside] == corner)
        found.append(torch.where(alike, corner, mixed.argmax(0)))
    return torch.cat(found)


def add_posteriors(scores: Tensor, places: Places, inverse_temperature: float, unit: int, sums: Tensor) -> None:
    """sums[H, W, C] += the posterior of every pixel in fixed point; sums are int32 that hold the bits of uint32."""
    first = 0
    for rows, mixed in _bands(scores, places):
        if inverse_temperature > 0:
            mixed = _exp((mixed - mixed.amax(0)) * inverse_temperature)
        total = mixed[0].clone()
        for of_class in mixed[1:]:
            total += of_class
        # A number divided by a tensor would be a product with the reciprocal.
        factor = torch.full_like(total, unit, dtype=torch.float64) / total.double()
        factor = torch.where(total > 0, factor, torch.zeros_like(factor))
        whole = (mixed.double() * factor).floor().long()
        sums[first : first + len(rows)] += whole.to(torch.int32).permute(1, 2, 0)
        first += len(rows)


def count_labels(labels: Tensor, counts: Tensor, each: int = 1) -> None:
    """counts[H, W, C] += each at labels[H, W]; no two pixels meet, so no order can matter."""
    rows, columns = (torch.arange(side, device=labels.device) for side in labels.shape)
    counts[rows[:, None], columns, labels] += each


def as_int32(number: int) -> int:
    """The number below 2^32 as the int32 that has its bits."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _bands(scores: Tensor, places: Places) -> Iterator[tuple[Tensor, Tensor]]:
    """For some rows at a time: where they lie in the scores, and the up-sampled scores (C, rows, W)."""
    rows, row_weights, left, x = places
    right = (left + 1).clamp(max=scores.shape[2] - 1)
    at_once = max(1, _BAND // (scores.shape[0] * len(left)))
    for band, weights in zip(torch.split(rows, at_once), torch.split(row_weights, at_once), strict=True):
        upper, lower = scores[:, band], scores[:, (band + 1).clamp(max=scores.shape[1] - 1)]
        y = weights[:, None]
        mixed = (1 - y) * (1 - x) * upper[:, :, left] + (1 - y) * x * upper[:, :, right]
        yield band, mixed + y * (1 - x) * lower[:, :, left] + y * x * lower[:, :, right]


def _exp(x: Tensor) -> Tensor:
    x = x.clamp(min=-87)
    k = (x * _INVERSE_LN2 - 0.5).to(torch.int32)
    r = x - k.float() * _LN2
    series = r * (1 / 720) + 1 / 120
    series = r * (r * (r * series + 1 / 24) + 1 / 6) + 1 / 2
    power = ((k + 127) << 23).view(torch.float32)
    return power * (r * (r * series + 1) + 1)
