"""What a base model says: scores or labels at its own resolution, and how they extend to the pixels of the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from certiseg import kernels
from certiseg.errors import InputError

ScoreKind = Literal["logits", "probabilities", "labels"]


@dataclass(frozen=True)
class Scores:
    """What the model says about a batch, at the model's own resolution, and how that extends to the image."""

    values: Tensor
    """(B, C, h, w) float32 scores, or (B, h, w) integer labels."""
    kind: ScoreKind
    full: tuple[int, int]
    """Size to which the values are up-sampled (bilinearly; labels by nearest neighbour)."""
    crop: tuple[int, int]
    """The image's own size: the top left part of `full`."""
    align_corners: bool

    def labels(self) -> NDArray[np.integer]:
        """(B, H, W): the arg max of every pixel, ties to the lowest class."""
        if self.kind == "labels":
            return _nearest(self.values, self.full, self.crop).cpu().numpy()
        if self.values.device.type != "cpu":
            return self.at_full_size().argmax(1).to(torch.int32).cpu().numpy()
        found = np.empty((len(self.values), *self.crop), np.uint8 if self.values.shape[1] <= 256 else np.uint16)
        for scores, label in zip(self._channels_last(), found, strict=True):
            kernels.labels_of_scores(scores, self._interpolation(), label)
        return found

    def add_posteriors(self, sums: NDArray[np.uint32], *, unit: int, temperature: float) -> None:
        """Add the posteriors of every draw to sums (H, W, C) in fixed point, where `unit` stands for one."""
        if self.kind == "labels":
            for label in self.labels():
                kernels.add_label_posteriors(label, np.uint32(unit), sums)
        elif self.values.device.type != "cpu":
            scores = self.at_full_size()
            posterior = (scores / temperature).softmax(1) if self.kind == "logits" else scores / scores.sum(1, True)
            sums += (posterior.double() * unit).long().sum(0).permute(1, 2, 0).cpu().numpy().astype(np.uint32)
        else:
            inverse = np.float32(1 / temperature if self.kind == "logits" else 0)
            for scores in self._channels_last():
                kernels.add_posteriors(scores, self._interpolation(), inverse, np.uint32(unit), sums)

    def at_full_size(self) -> Tensor:
        """(B, C, H, W): the scores of every pixel of the image."""
        scores = enlarge(self.values, self.full, self.align_corners)
        return scores[:, :, : self.crop[0], : self.crop[1]]

    def _channels_last(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.values.permute(0, 2, 3, 1).numpy())

    def _interpolation(self) -> kernels.Interpolation:
        source = (int(self.values.shape[2]), int(self.values.shape[3]))
        return kernels.interpolation(source, self.full, self.crop, align_corners=self.align_corners)


def tensor_of(output: Any) -> Tensor:
    """The score tensor inside what a model returned."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        for key in ("out", "logits"):
            if isinstance(output.get(key), Tensor):
                return output[key]
    if isinstance(getattr(output, "logits", None), Tensor):
        return output.logits
    if isinstance(output, np.ndarray):
        return tensor_of_array(output)
    raise InputError(
        f"model must return a tensor, a mapping with `out` or `logits`, or an object with .logits, "
        f"got {type(output).__name__}; wrap it in a function that picks the scores"
    )


def tensor_of_array(array: Any) -> Tensor:
    """An array as a tensor, without a copy where its memory may be shared."""
    values = np.ascontiguousarray(array)
    if not values.flags.writeable:
        values = values.copy()
    if values.dtype.kind not in "biuf":
        raise InputError(f"model must return an array of numbers, got {values.dtype}")
    return torch.from_numpy(values)


def enlarge(values: Tensor, size: tuple[int, int], align_corners: bool) -> Tensor:
    """(B, C, h, w) -> (B, C, *size), bilinearly."""
    if tuple(values.shape[2:]) == tuple(size):
        return values
    return F.interpolate(values, size=tuple(size), mode="bilinear", align_corners=align_corners)


def _nearest(labels: Tensor, full: tuple[int, int], crop: tuple[int, int]) -> Tensor:
    if tuple(labels.shape[1:]) != tuple(full):
        rows = (torch.arange(full[0]) * labels.shape[1]) // full[0]
        columns = (torch.arange(full[1]) * labels.shape[2]) // full[1]
        labels = labels[:, rows[:, None], columns[None, :]]
    return labels[:, : crop[0], : crop[1]].to(torch.int32)


def check_values(values: Tensor, kind: ScoreKind, num_classes: int | None) -> None:
    """Refuse scores that are not finite, or not of the expected classes; nothing is certified from them."""
    if kind == "labels":
        low, high = int(values.min()), int(values.max())
        if num_classes is not None and (low < 0 or high >= num_classes):
            raise InputError(f"model must return labels in 0..{num_classes - 1}, got {low}..{high}")
        return
    # NaN and infinity never leave a sum finite, and a sum is ten times quicker; finite scores may overflow it, though.
    if not bool(torch.isfinite(values.sum())) and not bool(torch.isfinite(values).all()):
        raise InputError("model must return finite scores, got NaN or infinity; nothing is certified from them")
    if kind == "probabilities" and float(values.min()) < 0:
        raise InputError(f"model must return probabilities >= 0, got {float(values.min()):g}; set scores='logits'?")
    if values.shape[1] < 2:
        raise InputError("model must return scores of at least two classes, got one; give the background its own score")
    if num_classes is not None and values.shape[1] != num_classes:
        raise InputError(f"model must return {num_classes} scores per pixel, got {values.shape[1]}")


def look_like_probabilities(values: Tensor) -> bool:
    """Whether scores are surely no logits: not negative and of sum one everywhere, yet not just zeros and ones."""
    if float(values.min()) < 0 or bool(((values.sum(1) - 1).abs() > 1e-3).any()):
        return False
    return bool(((values > 0) & (values < 1)).any())
