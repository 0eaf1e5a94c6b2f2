"""What a base model says: scores or labels at its own resolution, and how they extend to the pixels of the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from certiseg.errors import InputError
from certiseg.kernels import device_scores
from certiseg.kernels import scores as kernels
from certiseg.models.settings import ScoreKind, Size


@dataclass(frozen=True)
class Tile:
    """What the model says about a part of each image of a batch, at its own resolution."""

    values: Tensor
    """(B, C, h, w) float32 scores, or (B, h, w) integer labels."""
    kind: ScoreKind
    full: Size
    """Size to which the values are up-sampled (bilinearly; labels by nearest neighbour)."""
    size: Size
    """Size of the part of `full` that is used."""
    align_corners: bool
    start: Size = (0, 0)
    """Where that part begins in `full`."""
    place: Size = (0, 0)
    """Where it lies in the image."""

    def labels(self) -> NDArray[np.integer[Any]]:
        """(B, H, W): the arg max of every pixel, ties to the lowest class."""
        if self.kind == "labels" or self.values.device.type != "cpu":
            return self.labels_there().to(torch.int32).cpu().numpy()
        found = np.empty((len(self.values), *self.size), np.uint8 if self.values.shape[1] <= 256 else np.uint16)
        for scores, label in zip(self._channels_last(), found, strict=True):
            kernels.labels_of_scores(scores, self._interpolation(), label)
        return found

    def add_posteriors(self, sums: NDArray[np.uint32], *, unit: int, temperature: float) -> None:
        """Add the posteriors of every draw to sums (H, W, C) in fixed point, where `unit` stands for one."""
        if self.values.device.type != "cpu":
            replace(self, values=self.values.cpu()).add_posteriors(sums, unit=unit, temperature=temperature)
        elif self.kind == "labels":
            for label in self.labels():
                kernels.add_label_posteriors(label, np.uint32(unit), sums)
        else:
            inverse = self._inverse(temperature)
            for scores in self._channels_last():
                kernels.add_posteriors(scores, self._interpolation(), inverse, np.uint32(unit), sums)

    def coarse_posteriors(
        self, num_classes: int, *, unit: int, temperature: float
    ) -> tuple[NDArray[np.uint32], kernels.Interpolation]:
        """(h, w, C): the posteriors of the first image at the model's own resolution, and how they extend to pixels."""
        own = (int(self.values.shape[-2]), int(self.values.shape[-1]))
        alone = replace(self, values=self.values[:1], full=own, size=own, start=(0, 0))
        found = np.zeros((*own, num_classes), np.uint32)
        alone.add_posteriors(found, unit=unit, temperature=temperature)
        places = _interpolation(own, self.full, self.start, self.size, self.align_corners)
        if self.kind == "labels":
            rows, columns = (part.numpy() for part in _nearest_places(own, self.full, torch.device("cpu")))
            down, across = self._box()
            places = rows[down], np.zeros_like(places[1]), columns[across], np.zeros_like(places[3])
        return found, places

    def labels_there(self) -> Tensor:
        """`labels` as a tensor where the scores are, bit for bit."""
        if self.kind == "labels":
            return _nearest(self.values, self.full)[:, *self._box()]
        places = self._places_there()
        return torch.stack([device_scores.labels_of_scores(scores, places) for scores in self.values])

    def add_posteriors_there(self, sums: Tensor, *, unit: int, temperature: float) -> None:
        """`add_posteriors` where the scores are, bit for bit; sums: int32 with the bits of uint32."""
        if self.kind == "labels":
            for label in self.labels_there():
                device_scores.count_labels(label, sums, device_scores.as_int32(unit))
            return
        inverse, places = float(self._inverse(temperature)), self._places_there()
        for scores in self.values:
            device_scores.add_posteriors(scores, places, inverse, unit, sums)

    def _inverse(self, temperature: float) -> np.float32:
        return np.float32(1 / temperature if self.kind == "logits" else 0)

    def _places_there(self) -> device_scores.Places:
        source = (int(self.values.shape[2]), int(self.values.shape[3]))
        return _places_on(self.values.device, source, self.full, self.start, self.size, self.align_corners)

    def at_full_size(self) -> Tensor:
        """(B, C, H, W): the scores of every pixel of the part."""
        return enlarge(self.values, self.full, self.align_corners)[:, :, *self._box()]

    def _box(self) -> tuple[slice, slice]:
        (top, left), (height, width) = self.start, self.size
        return slice(top, top + height), slice(left, left + width)

    def _channels_last(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.values.permute(0, 2, 3, 1).numpy())

    def _interpolation(self) -> kernels.Interpolation:
        source = (int(self.values.shape[2]), int(self.values.shape[3]))
        return _interpolation(source, self.full, self.start, self.size, self.align_corners)


def _interpolation(source: Size, full: Size, start: Size, size: Size, align_corners: bool) -> kernels.Interpolation:
    """How a part of an image is mixed from scores of size `source`."""
    (top, left), (height, width) = start, size
    upto = (top + height, left + width)
    y, y_weight, x, x_weight = kernels.interpolation(source, full, upto, align_corners=align_corners)
    return y[top:], y_weight[top:], x[left:], x_weight[left:]


@lru_cache(maxsize=64)
def _places_on(
    device: torch.device, source: Size, full: Size, start: Size, size: Size, align_corners: bool
) -> device_scores.Places:
    """The same on a device, where it stays for the next draw."""
    y, y_weight, x, x_weight = _interpolation(source, full, start, size, align_corners)
    rows, row_weights = torch.from_numpy(y).to(device), torch.from_numpy(y_weight).to(device)
    return rows, row_weights, torch.from_numpy(x).to(device), torch.from_numpy(x_weight).to(device)


@dataclass(frozen=True)
class Answers:
    """What the model says about a batch: one tile for the whole image, or tiles side by side, row by row."""

    tiles: tuple[Tile, ...]

    @property
    def kind(self) -> ScoreKind:
        """Logits, probabilities or labels."""
        return self.tiles[0].kind

    @property
    def size(self) -> Size:
        """Height and width of the image."""
        (top, left), (height, width) = self.tiles[-1].place, self.tiles[-1].size
        return top + height, left + width

    @property
    def values(self) -> Tensor:
        """(B, ...): all that the model returned, per image."""
        if len(self.tiles) == 1:
            return self.tiles[0].values
        return torch.cat([tile.values.flatten(-2) for tile in self.tiles], -1)

    def take(self, count: int) -> Answers:
        """The scores of the first so many images."""
        return Answers(tuple(replace(tile, values=tile.values[:count]) for tile in self.tiles))

    def copied(self) -> Answers:
        """The same scores in memory of their own."""
        return Answers(tuple(replace(tile, values=tile.values.clone()) for tile in self.tiles))

    def labels(self) -> NDArray[np.integer[Any]]:
        """(B, H, W): the arg max of every pixel, ties to the lowest class."""
        if len(self.tiles) == 1:
            return self.tiles[0].labels()
        found: NDArray[np.integer[Any]] | None = None
        for tile in self.tiles:
            labels = tile.labels()
            found = np.empty((len(labels), *self.size), labels.dtype) if found is None else found
            found[:, *inside(tile)] = labels
        assert found is not None
        return found

    def add_posteriors(self, sums: NDArray[np.uint32], *, unit: int, temperature: float) -> None:
        """Add the posteriors of every draw to sums (H, W, C) in fixed point, where `unit` stands for one."""
        if len(self.tiles) == 1:
            return self.tiles[0].add_posteriors(sums, unit=unit, temperature=temperature)
        for tile in self.tiles:
            part = np.zeros((*tile.size, sums.shape[2]), np.uint32)
            tile.add_posteriors(part, unit=unit, temperature=temperature)
            sums[inside(tile)] += part

    def labels_there(self) -> Tensor:
        """`labels` as a tensor where the scores are."""
        if len(self.tiles) == 1:
            return self.tiles[0].labels_there()
        values = self.tiles[0].values
        found = torch.empty((len(values), *self.size), dtype=torch.int64, device=values.device)
        for tile in self.tiles:
            found[:, *inside(tile)] = tile.labels_there()
        return found

    def add_posteriors_there(self, sums: Tensor, *, unit: int, temperature: float) -> None:
        """`add_posteriors` where the scores are; sums: int32 with the bits of uint32."""
        for tile in self.tiles:
            tile.add_posteriors_there(sums[inside(tile)], unit=unit, temperature=temperature)

    def at_full_size(self) -> Tensor:
        """(B, C, H, W): the scores of every pixel of the image."""
        rows: dict[int, list[Tensor]] = {}
        for tile in self.tiles:
            rows.setdefault(tile.place[0], []).append(tile.at_full_size())
        return torch.cat([torch.cat(row, 3) for row in rows.values()], 2)


def inside(tile: Tile) -> tuple[slice, slice]:
    """Where a tile lies in the image."""
    (top, left), (height, width) = tile.place, tile.size
    return slice(top, top + height), slice(left, left + width)


def tensor_of(output: object) -> Tensor:
    """The score tensor inside what a model returned."""
    inside = [output.get(key) for key in ("out", "logits")] if isinstance(output, Mapping) else []
    for found in (output, *inside, getattr(output, "logits", None)):
        if isinstance(found, Tensor):
            return found
    if isinstance(output, np.ndarray):
        return tensor_of_array(output)
    raise InputError(
        f"model must return a tensor, a mapping with `out` or `logits`, or an object with .logits, "
        f"got {type(output).__name__}; wrap it in a function that picks the scores"
    )


def tensor_of_array(array: ArrayLike) -> Tensor:
    """An array as a tensor, without a copy where its memory may be shared."""
    values = np.ascontiguousarray(array)
    if not values.flags.writeable:
        values = values.copy()
    if values.dtype.kind not in "biuf":
        raise InputError(f"model must return an array of numbers, got {values.dtype}")
    return torch.from_numpy(values)


def enlarge(values: Tensor, size: Size, align_corners: bool) -> Tensor:
    """(B, C, h, w) -> (B, C, *size), bilinearly."""
    if tuple(values.shape[2:]) == tuple(size):
        return values
    return F.interpolate(values, size=tuple(size), mode="bilinear", align_corners=align_corners)


def _nearest(labels: Tensor, full: Size) -> Tensor:
    if tuple(labels.shape[1:]) != tuple(full):
        rows, columns = _nearest_places((labels.shape[1], labels.shape[2]), full, labels.device)
        labels = labels[:, rows[:, None], columns[None, :]]
    return labels


def _nearest_places(source: Size, full: Size, device: torch.device) -> tuple[Tensor, Tensor]:
    """For the rows and columns of an image: the nearest of the model's own."""
    rows, columns = ((torch.arange(f, device=device) * s) // f for s, f in zip(source, full, strict=True))
    return rows, columns


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
    if num_classes is not None and values.shape[1] != num_classes:
        raise InputError(f"model must return {num_classes} scores per pixel, got {values.shape[1]}")


def two_classes(values: Tensor, kind: ScoreKind) -> Tensor:
    """(B, 1, h, w) -> (B, 2, h, w): a single score is that of the second class, as a sigmoid takes it."""
    if kind == "logits":
        return torch.cat([torch.zeros_like(values), values], 1)
    if float(values.max()) > 1:
        raise InputError(
            f"model must return a probability in [0, 1], got {float(values.max()):g}; set scores='logits'?"
        )
    return torch.cat([1 - values, values], 1)


def look_like_probabilities(values: Tensor) -> bool:
    """Whether scores are surely no logits: not negative and of sum one everywhere, yet not just zeros and ones."""
    if float(values.min()) < 0 or bool(((values.sum(1) - 1).abs() > 1e-3).any()):
        return False
    return bool(((values > 0) & (values < 1)).any())
