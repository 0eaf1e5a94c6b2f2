"""Cross-entropy over labelled pixels, optionally weighted by class and restricted to the hardest pixels (OHEM)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from certiseg.hierarchy import VOID

if TYPE_CHECKING:
    from certiseg.datasets.base import Sample

WEIGHT_RANGE = (0.4, 4.0)


def segmentation_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    ohem: float = 1.0,
    at: str = "image",
    sets: Sequence[tuple[int, ...]] = (),
) -> Tensor:
    """Mean cross-entropy of (B, C, h, w) logits against (B, H, W) labels.

    at="image" enlarges the logits to the labels' size; at="logits" takes the label under the centre of each logit,
    which costs a fraction and, with random windows, sees every pixel in time. ohem=0.3 keeps the hardest 30 %.
    A label C + k means "one of sets[k]" and costs -log of the probability of that set.
    """
    if at == "image":
        logits = F.interpolate(logits, size=labels.shape[-2:], mode="bilinear", align_corners=False)
    else:
        labels = labels_at(labels, logits.shape[-2:])
    scores, weights = _scores(logits, weights, sets)
    if ohem >= 1:
        return _weighted_mean(scores, labels, weights)
    losses = F.nll_loss(scores, labels, weight=weights, ignore_index=VOID, reduction="none")
    losses = losses[labels != VOID]
    if losses.numel() == 0:
        return logits.sum() * 0
    kept = max(1, round(ohem * losses.numel()))
    return losses.topk(kept).values.mean()


def _scores(logits: Tensor, weights: Tensor | None, sets: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor | None]:
    """Log-probabilities of the classes and, behind them, of the sets, which weigh 1."""
    scores = F.log_softmax(logits, 1)
    if not sets:
        return scores, weights
    of_sets = [torch.logsumexp(scores[:, list(members)], 1, keepdim=True) for members in sets]
    if weights is not None:
        weights = torch.cat([weights, weights.new_ones(len(sets))])
    return torch.cat([scores, *of_sets], 1), weights


def _weighted_mean(scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    # A batch of void alone has no loss, not 0/0.
    total = F.nll_loss(scores, labels, weight=weights, ignore_index=VOID, reduction="sum")
    labelled = labels != VOID
    norm = labelled.sum() if weights is None else weights[labels[labelled]].sum()
    return total / norm.clamp_min(1e-6)


def labels_at(labels: Tensor, size: tuple[int, ...] | torch.Size) -> Tensor:
    """The label under the centre of each cell of a coarser grid."""
    if labels.shape[-2:] == torch.Size(size):
        return labels
    rows = ((torch.arange(size[0]) + 0.5) * (labels.shape[-2] / size[0])).long()
    columns = ((torch.arange(size[1]) + 0.5) * (labels.shape[-1] / size[1])).long()
    return labels[:, rows[:, None], columns[None, :]]


def class_weights(samples: Iterable[Sample], *, num_classes: int, power: float) -> Tensor | None:
    """Weights proportional to frequency^-power with mean 1 over the pixels, kept in [0.4, 4]; None for power 0.

    power 0.5 is one over the square root of the frequency. Classes that never occur get 1.
    """
    if power == 0:
        return None
    counts = np.zeros(num_classes + 1, np.int64)
    for sample in samples:
        assert sample.label is not None
        ids = np.where(sample.label == VOID, num_classes, sample.label)
        counts += np.bincount(ids.ravel(), minlength=num_classes + 1)
    share = counts[:num_classes] / max(1, counts[:num_classes].sum())
    weights = np.ones(num_classes)
    occurs = share > 0
    weights[occurs] = share[occurs] ** -power
    weights[occurs] /= (weights * share)[occurs].sum()
    return torch.tensor(np.clip(weights, *WEIGHT_RANGE), dtype=torch.float32)
