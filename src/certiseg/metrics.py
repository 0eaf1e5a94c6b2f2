"""The scores as torchmetrics: thin state over `certiseg.scores`, for people who log and reduce with torchmetrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torchmetrics import Metric

from certiseg.errors import InputError
from certiseg.scores import BY_CLASS, BY_LEVEL, PixelSums, Scores, scores_of, sum_pixels


class CertifiedMetric(Metric):
    """Sums over pixels; `update(certificate, label)` once per image, any number of processes."""

    not_flat: torch.Tensor
    level_wrong: torch.Tensor
    full_state_update = False
    higher_is_better = True
    score = "cig"

    def __init__(self, *, num_classes: int, num_levels: int, **options: Any) -> None:
        super().__init__(**options)
        for name in BY_CLASS + BY_LEVEL:
            size = (num_classes,) if name in BY_CLASS else (num_classes, num_levels)
            kind = torch.float64 if name == "gain" else torch.int64
            self.add_state(name, default=torch.zeros(size, dtype=kind), dist_reduce_fx="sum")
        self.add_state("not_flat", default=torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, certificate: Any, label: Any) -> None:
        sums = sum_pixels(certificate, np.asarray(label))
        if tuple(self.level_wrong.shape) != sums.level_wrong.shape:
            raise InputError(
                f"certificate must be over the metric's classes and levels, {tuple(self.level_wrong.shape)}, "
                f"got {sums.level_wrong.shape}"
            )
        for name in BY_CLASS + BY_LEVEL:
            state = getattr(self, name)
            state += torch.from_numpy(np.ascontiguousarray(getattr(sums, name))).to(state)
        self.not_flat = self.not_flat + int(not sums.flat)

    def scores(self) -> Scores:
        """All scores of what was seen so far."""
        arrays = {name: getattr(self, name).cpu().numpy() for name in BY_CLASS + BY_LEVEL}
        return scores_of(PixelSums(**arrays, flat=not int(self.not_flat)))

    def compute(self) -> torch.Tensor:
        value = getattr(self.scores(), self.score)
        return torch.tensor(float("nan") if value is None else value, dtype=torch.float64)


class CertifiedInformationGain(CertifiedMetric):
    """CIG."""


class ClassCertifiedInformationGain(CertifiedMetric):
    """cCIG."""

    score = "ccig"


class AbstainRate(CertifiedMetric):
    """Share of pixels without a certificate."""

    score = "abstain"
    higher_is_better = False


class CertifiedAccuracy(CertifiedMetric):
    """Share of pixels that are certified and right."""

    score = "accuracy"


class CertifiedMeanIoU(CertifiedMetric):
    """Mean IoU of flat methods, an abstention being a miss; NaN for the others."""

    score = "miou"
