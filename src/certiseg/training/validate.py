"""How good a network is on clean and on noisy images: loss, pixel accuracy, mean accuracy, mIoU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from certiseg.hierarchy import VOID
from certiseg.models.outputs import tensor_of
from certiseg.scores import pooled_scores, sums_of_confusion
from certiseg.training.augment import add_noise
from certiseg.training.batches import stream
from certiseg.training.losses import segmentation_loss

if TYPE_CHECKING:
    from certiseg.datasets.base import Sample

VALIDATION = 4  # stream of the seed, apart from the training noise


@dataclass(frozen=True)
class ValidationScores:
    """Scores over all labelled pixels, as in `certiseg.scores`."""

    loss: float
    pixel_accuracy: float
    mean_accuracy: float
    """Over the classes that occur in the ground truth."""
    miou: float
    """Over the classes that occur in the ground truth or in the prediction."""


def validate(
    network: nn.Module,
    samples: Sequence[Sample],
    *,
    num_classes: int,
    sigma: float,
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
) -> ValidationScores:
    """Scores at full size under noise of that sigma; image i always gets the same noise."""
    confusion = torch.zeros(num_classes, num_classes, dtype=torch.int64)
    loss = torch.zeros(2, dtype=torch.float64)
    network.eval()
    for index in range(rank, len(samples), world):
        logits, label = _predict(network, samples[index], index, sigma=sigma, seed=seed)
        loss += torch.tensor([float(segmentation_loss(logits, label, at="logits")), 1.0], dtype=torch.float64)
        enlarged = F.interpolate(logits, size=label.shape[-2:], mode="bilinear", align_corners=False)
        confusion += count_pairs(label, enlarged.argmax(1), num_classes=num_classes)
    if world > 1:
        torch.distributed.all_reduce(confusion)
        torch.distributed.all_reduce(loss)
    return scores_of(confusion.numpy(), loss=float(loss[0] / loss[1]))


@torch.inference_mode()
def _predict(network: nn.Module, sample: Sample, index: int, *, sigma: float, seed: int) -> tuple[Tensor, Tensor]:
    image = sample.image.astype(np.float32) / np.float32(255)
    noisy = add_noise(image, stream(seed, VALIDATION, index), sigma=sigma)
    assert sample.label is not None
    logits = tensor_of(network(torch.from_numpy(noisy)[None].permute(0, 3, 1, 2)))
    return logits, torch.from_numpy(sample.label.astype(np.int64))[None]


def count_pairs(label: Tensor, predicted: Tensor, *, num_classes: int) -> Tensor:
    """Confusion matrix: rows are the truth, columns the prediction; void is left out."""
    labelled = label != VOID
    pairs = label[labelled] * num_classes + predicted[labelled]
    return torch.bincount(pairs, minlength=num_classes**2).view(num_classes, num_classes)


def scores_of(confusion: NDArray[np.int64], *, loss: float) -> ValidationScores:
    """The scores of a confusion matrix (classes, classes)."""
    found = pooled_scores(sums_of_confusion(confusion))  # where all is certified, cCIG is the mean accuracy
    return ValidationScores(loss, *(float(found[name]) for name in ("accuracy", "ccig", "miou")))
