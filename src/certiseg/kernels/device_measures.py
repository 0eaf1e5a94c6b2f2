"""The loops of `kernels.measures` as torch operations, which run where the label maps are, to the same numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def region_hits(labels: Tensor, pixels: Tensor, parts: Tensor, members: Tensor) -> Tensor:
    """(P,) int64: how many pixels of each region have a label that is a member.

    labels (N,); pixels and parts: every pixel of every region, and the region it belongs to; members (P, C), 0 or 1.
    """
    hits = torch.zeros(len(members), dtype=torch.int64, device=labels.device)
    return hits.index_add_(0, parts, members[parts, labels[pixels]])


def target_matches(labels: Tensor, targets: Tensor, table: Tensor) -> Tensor:
    """() int64: pixels with table[target, label]; labels and targets (N,), table (T, C), 0 or 1."""
    return table[targets, labels].sum()
