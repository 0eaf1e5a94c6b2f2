"""The contract of a base model f: an image in [0, 1] in, class scores per pixel out, as it is deployed.

Everything between the pixels and the arg max happens inside the segmenter - normalisation, padding, resizing, tiling,
rounding - so sigma and R are always in [0, 1] pixel units, and all of it is part of the certified function. Noisy
inputs leave [0, 1]; nobody clips them outside the segmenter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from certiseg import kernels
from certiseg.errors import InputError

ScoreKind = Literal["logits", "probabilities", "labels"]
Arrays = Literal["torch", "numpy"]

_PREPARATION = (
    "kind",
    "arrays",
    "mean",
    "std",
    "align_corners",
    "divisible_by",
    "input_size",
    "integer_input",
    "window",
    "backend",
)

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


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
            return self._at_full_size().argmax(1).to(torch.int32).cpu().numpy()
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
            scores = self._at_full_size()
            posterior = (scores / temperature).softmax(1) if self.kind == "logits" else scores / scores.sum(1, True)
            sums += (posterior.double() * unit).long().sum(0).permute(1, 2, 0).cpu().numpy().astype(np.uint32)
        else:
            inverse = np.float32(1 / temperature if self.kind == "logits" else 0)
            for scores in self._channels_last():
                kernels.add_posteriors(scores, self._interpolation(), inverse, np.uint32(unit), sums)

    def _channels_last(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.values.permute(0, 2, 3, 1).numpy())

    def _interpolation(self) -> kernels.Interpolation:
        source = (int(self.values.shape[2]), int(self.values.shape[3]))
        return kernels.interpolation(source, self.full, self.crop, align_corners=self.align_corners)

    def _at_full_size(self) -> Tensor:
        scores = _upsample(self.values, self.full, self.align_corners)
        return scores[:, :, : self.crop[0], : self.crop[1]]


class Segmenter:
    """A base model as it is deployed. Wraps any torch.nn.Module or callable.

    model: called with a float tensor (B, 3, H, W); with arrays="numpy" with a float32 array (B, H, W, 3). It returns
        scores (B, C, h, w) ((B, h, w, C) for numpy) or labels (B, h, w), at any resolution; a dict with `out` or
        `logits`, or an object with `.logits`, is looked into.
    scores: what it returns: "logits", "probabilities" or "labels" (labels need num_classes).
    mean, std: per channel, subtracted from and divided into the [0, 1] image.
    divisible_by: sides are padded (with zeros, after the normalisation) to a multiple, and the scores cropped.
    input_size: (height, width) the model insists on; the image is resized to it, the scores back.
    integer_input: the model takes uint8: values are rounded and clamped to 0..255 (no mean and std then).
    window: (height, width) of sliding windows over larger images, half overlapping; scores are averaged.
    hierarchy: the preset over its classes, where there is one.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        *,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
        scores: ScoreKind = "logits",
        arrays: Arrays = "torch",
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        align_corners: bool = False,
        divisible_by: int = 1,
        input_size: tuple[int, int] | None = None,
        integer_input: bool = False,
        window: tuple[int, int] | None = None,
        hierarchy: str | None = None,
        name: str | None = None,
        backend: str = "torch",
    ) -> None:
        if not callable(model):
            raise InputError(f"model must be a torch module or a callable, got {type(model).__name__}")
        _require_one_of("scores", scores, get_args(ScoreKind))
        _require_one_of("arrays", arrays, get_args(Arrays))
        if class_names is not None and num_classes is not None and len(class_names) != num_classes:
            raise InputError(f"class_names must name the {num_classes} classes, got {len(class_names)} names")
        if scores == "labels" and num_classes is None and class_names is None:
            raise InputError("num_classes must be given for a model that returns labels")
        if integer_input and (mean is not None or std is not None):
            raise InputError("mean and std must not be given for a model that takes whole numbers 0..255")
        if divisible_by < 1:
            raise InputError(f"divisible_by must be at least 1, got {divisible_by}")
        if sum(option is not None for option in (input_size, window)) > 1:
            raise InputError("input_size and window must not both be given")
        self.model = model
        self.class_names = tuple(class_names) if class_names is not None else None
        self.num_classes = len(class_names) if class_names is not None else num_classes
        self.kind: ScoreKind = scores
        self.arrays: Arrays = arrays
        self.mean = _per_channel("mean", mean)
        self.std = _per_channel("std", std)
        if self.std is not None and min(self.std) <= 0:
            raise InputError(f"std must be positive, got {self.std}")
        self.align_corners = align_corners
        self.divisible_by = divisible_by
        self.input_size = input_size
        self.integer_input = integer_input
        self.window = window
        self.hierarchy = hierarchy
        self.name = name or type(model).__name__
        self.backend = backend
        if isinstance(model, torch.nn.Module):
            model.eval()

    @property
    def device(self) -> torch.device:
        """Where the model lives: taken from its parameters, the CPU where it has none."""
        tensors = [*self.model.parameters(), *self.model.buffers()] if isinstance(self.model, torch.nn.Module) else []
        return tensors[0].device if tensors else torch.device("cpu")

    def __call__(self, images: Tensor) -> Scores:
        """Scores of a batch of images (B, 3, H, W) around [0, 1]; checked to be finite, or labels of known classes."""
        with torch.inference_mode():
            images = images.to(self.device)
            scores = self._tiled(images) if self._needs_tiling(images) else self._whole(images)
        self._check(scores)
        return scores

    def predict(self, image: Any) -> NDArray[np.integer]:
        """(H, W): the labels of one image, without noise and without any certificate."""
        from certiseg.images import read_image

        return self(as_batch(read_image(image)[None])).labels()[0]

    def fingerprint(self) -> str:
        """A hash of the model's parameters and of the preparation around it, to tell two models apart."""
        hashed = hashlib.sha256(repr(sorted(self.preparation().items())).encode())
        if isinstance(self.model, torch.nn.Module):
            for name, tensor in sorted(self.model.state_dict().items()):
                hashed.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
                hashed.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        elif hasattr(self.model, "fingerprint"):
            hashed.update(self.model.fingerprint().encode())
        else:
            hashed.update(getattr(self.model, "__qualname__", type(self.model).__qualname__).encode())
        return hashed.hexdigest()

    def preparation(self) -> dict[str, Any]:
        """What happens around the model, as recorded with every vote."""
        return {field: getattr(self, field) for field in _PREPARATION}

    def _needs_tiling(self, images: Tensor) -> bool:
        return self.window is not None and (images.shape[2] > self.window[0] or images.shape[3] > self.window[1])

    def _whole(self, images: Tensor) -> Scores:
        size = (int(images.shape[2]), int(images.shape[3]))
        prepared, full = self._prepare(images)
        return Scores(self._run(prepared), self.kind, full, size, self.align_corners)

    def _prepare(self, images: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """The model's own input, and the size in pixels that its output covers."""
        height, width = images.shape[2:]
        if self.input_size is not None:
            images = _upsample(images, self.input_size, False)
        if self.integer_input:
            images = (images * 255).round().clamp(0, 255).to(torch.uint8)
        if self.mean is not None:
            images = images - torch.tensor(self.mean, device=images.device).view(1, 3, 1, 1)
        if self.std is not None:
            images = images / torch.tensor(self.std, device=images.device).view(1, 3, 1, 1)
        if self.input_size is None and self.divisible_by > 1:
            bottom, right = -height % self.divisible_by, -width % self.divisible_by
            images = F.pad(images, (0, right, 0, bottom))
            return images, (height + bottom, width + right)
        return images, (height, width)

    def _run(self, images: Tensor) -> Tensor:
        """Call the model and bring what it returns into (B, C, h, w) float32 or (B, h, w) integers."""
        if self.arrays == "numpy":
            output = torch.from_numpy(np.ascontiguousarray(self.model(images.permute(0, 2, 3, 1).cpu().numpy())))
            values = output.movedim(-1, 1) if output.ndim == 4 and self.kind != "labels" else output
        else:
            values = _tensor_of(self.model(images))
        if self.kind == "labels" and values.ndim == 4 and values.shape[1] == 1:
            values = values[:, 0]
        expected = 3 if self.kind == "labels" else 4
        if values.ndim != expected or len(values) != len(images):
            wanted = "(B, h, w)" if expected == 3 else "(B, C, h, w)"
            raise InputError(
                f"model must return {self.kind} of shape {wanted} for a batch of {len(images)}, "
                f"got {tuple(values.shape)}; set scores= to what it returns"
            )
        return values.long() if self.kind == "labels" else values.float()

    def _tiled(self, images: Tensor) -> Scores:
        """Scores averaged over half overlapping windows; the noise was drawn for the whole image before."""
        assert self.window is not None
        if self.kind == "labels":
            raise InputError("window must not be set for a model that returns labels: they cannot be averaged")
        height, width = (int(side) for side in images.shape[2:])
        total: Tensor | None = None
        times = torch.zeros(height, width, device=images.device)
        for top in window_starts(height, self.window[0]):
            for left in window_starts(width, self.window[1]):
                part = (..., slice(top, top + self.window[0]), slice(left, left + self.window[1]))
                values = self._whole(images[part])._at_full_size()
                if total is None:
                    total = torch.zeros(len(images), values.shape[1], height, width, device=images.device)
                total[part] += values
                times[part] += 1
        assert total is not None
        return Scores(total / times, self.kind, (height, width), (height, width), self.align_corners)

    def _check(self, scores: Scores) -> None:
        values = scores.values
        if scores.kind == "labels":
            assert self.num_classes is not None
            low, high = int(values.min()), int(values.max())
            if low < 0 or high >= self.num_classes:
                raise InputError(f"model must return labels in 0..{self.num_classes - 1}, got {low}..{high}")
            return
        if not bool(torch.isfinite(values).all()):
            raise InputError("model must return finite scores, got NaN or infinity; nothing is certified from them")
        if scores.kind == "probabilities" and float(values.min()) < 0:
            raise InputError(f"model must return probabilities >= 0, got {float(values.min()):g}; set scores='logits'?")
        if self.num_classes is None:
            self.num_classes = int(values.shape[1])
        if values.shape[1] != self.num_classes:
            raise InputError(f"model must return {self.num_classes} scores per pixel, got {values.shape[1]}")


def as_segmenter(model: Any) -> Segmenter:
    """The model itself if it is a Segmenter, otherwise a Segmenter around it that takes its output for logits."""
    return model if isinstance(model, Segmenter) else Segmenter(model)


def as_batch(pixels: NDArray[np.float32]) -> Tensor:
    """(B, H, W, 3) pixels as a (B, 3, H, W) tensor in channels-last memory, without a copy."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)


def window_starts(side: int, window: int) -> list[int]:
    """Where windows begin along a side: every half window, the last one flush with the end."""
    last = max(side - window, 0)
    return sorted({*range(0, last, max(window // 2, 1)), last})


def _tensor_of(output: Any) -> Tensor:
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
        return torch.from_numpy(np.ascontiguousarray(output))
    raise InputError(
        f"model must return a tensor, a mapping with `out` or `logits`, or an object with .logits, "
        f"got {type(output).__name__}; wrap it in a function that picks the scores"
    )


def _upsample(values: Tensor, size: tuple[int, int], align_corners: bool) -> Tensor:
    if tuple(values.shape[2:]) == tuple(size):
        return values
    return F.interpolate(values, size=tuple(size), mode="bilinear", align_corners=align_corners)


def _nearest(labels: Tensor, full: tuple[int, int], crop: tuple[int, int]) -> Tensor:
    if tuple(labels.shape[1:]) != full:
        rows = (torch.arange(full[0]) * labels.shape[1]) // full[0]
        columns = (torch.arange(full[1]) * labels.shape[2]) // full[1]
        labels = labels[:, rows[:, None], columns[None, :]]
    return labels[:, : crop[0], : crop[1]].to(torch.int32)


def _per_channel(what: str, values: Sequence[float] | None) -> tuple[float, ...] | None:
    if values is None:
        return None
    if len(values) != 3 or not all(np.isfinite(values)):
        raise InputError(f"{what} must be three numbers, one per channel, got {values!r}")
    return tuple(float(value) for value in values)


def _require_one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{what} must be one of {', '.join(allowed)}, got {value!r}")
