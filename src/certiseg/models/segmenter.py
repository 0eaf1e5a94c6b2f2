"""The contract of a base model f: an image in [0, 1] in, class scores per pixel out, as it is deployed.

Everything between the pixels and the arg max happens inside the segmenter - normalisation, padding, resizing, tiling,
rounding - so sigma and R are always in [0, 1] pixel units, and all of it is part of the certified function. Noisy
inputs leave [0, 1]; nobody clips them outside the segmenter.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.errors import InputError
from certiseg.models.outputs import (
    ScoreKind,
    Scores,
    check_values,
    look_like_probabilities,
    tensor_of,
    tensor_of_array,
)
from certiseg.models.preparation import Preparation, Resize, window_starts

Arrays = Literal["torch", "numpy"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Segmenter:
    """A base model as it is deployed. Wraps any torch.nn.Module or callable.

    model: called with a float tensor (B, 3, H, W); with arrays="numpy" with a float32 array (B, H, W, 3). It returns
        scores (B, C, h, w) ((B, h, w, C) for numpy) or labels (B, h, w), at any resolution; a dict with `out` or
        `logits`, or an object with `.logits`, is looked into.
    scores: what it returns: "logits", "probabilities" or "labels" (labels need num_classes).
    mean, std: per channel, subtracted from and divided into the [0, 1] image.
    bgr: the model wants blue first.
    divisible_by: sides are padded (with zeros, after the normalisation) to a multiple, and the scores cropped.
    input_size: (height, width) the model insists on, or its shorter side; the image is resized to it, the scores back.
    resize: how: "bilinear", "antialiased" or "bicubic" (the last two average where the image shrinks, as Pillow does).
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
        bgr: bool = False,
        align_corners: bool = False,
        divisible_by: int = 1,
        input_size: tuple[int, int] | int | None = None,
        resize: Resize = "bilinear",
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
        self.model = model
        self.class_names, self.num_classes = _classes(class_names, num_classes, scores)
        self.kind: ScoreKind = scores
        self.arrays: Arrays = arrays
        self.align_corners = align_corners
        self.prepare = Preparation(
            mean=mean,
            std=std,
            bgr=bgr,
            divisible_by=divisible_by,
            input_size=input_size,
            resize=resize,
            integer_input=integer_input,
            window=window,
        )
        self.hierarchy = hierarchy
        self.name = name or type(model).__name__
        self.backend = backend
        self._seen = False
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

    def adjusted(self, **changes: Any) -> Segmenter:
        """The same model with some of the settings of the constructor (or `model` itself) changed, checked again."""
        twin = copy.copy(self)
        inner = self.__dict__.get("inner")
        if isinstance(inner, Segmenter):  # something stands in front of the segmenter that has the settings
            twin.__dict__["inner"] = inner.adjusted(**changes)
            return twin
        steps = asdict(self.prepare)
        same = {name: getattr(self, name) for name in ("num_classes", "class_names", "arrays", "align_corners")}
        same |= {name: getattr(self, name) for name in ("hierarchy", "name", "backend")}
        settings: dict[str, Any] = {"model": self.model, "scores": self.kind, **same, **steps, **changes}
        if "class_names" in changes and "num_classes" not in changes:
            settings["num_classes"] = None
        Segmenter.__init__(twin, settings.pop("model"), **settings)
        return twin

    def fingerprint(self) -> str:
        """A hash of the model's parameters and of the preparation around it, to tell two models apart."""
        if isinstance(self.model, torch.nn.Module):
            return fingerprint_of("", self.model.state_dict(), self.preparation())
        if hasattr(self.model, "fingerprint"):
            return fingerprint_of(self.model.fingerprint(), {}, self.preparation())
        name = getattr(self.model, "__qualname__", type(self.model).__qualname__)
        return fingerprint_of(name, {}, self.preparation())

    def preparation(self) -> dict[str, Any]:
        """What happens around the model, as recorded with every vote."""
        around = {name: getattr(self, name) for name in ("kind", "arrays", "align_corners", "backend")}
        return {**around, **asdict(self.prepare)}

    def _needs_tiling(self, images: Tensor) -> bool:
        window = self.prepare.window
        return window is not None and (images.shape[2] > window[0] or images.shape[3] > window[1])

    def _whole(self, images: Tensor) -> Scores:
        size = (int(images.shape[2]), int(images.shape[3]))
        prepared, full = self.prepare(images)
        return Scores(self._run(prepared), self.kind, full, size, self.align_corners)

    def _run(self, images: Tensor) -> Tensor:
        """Call the model and bring what it returns into (B, C, h, w) float32 or (B, h, w) integers."""
        try:
            if self.arrays == "numpy":
                output = tensor_of_array(self.model(images.permute(0, 2, 3, 1).cpu().numpy()))
                values = output.movedim(-1, 1) if output.ndim == 4 else output
            else:
                values = tensor_of(self.model(images))
        except InputError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
            raise InputError(
                f"model {self.name} must accept {images.dtype} images of shape {tuple(images.shape)}, got: {reason}; "
                "if sides must be multiples or fixed, set divisible_by or input_size"
            ) from error
        return self._checked_shape(values, len(images))

    def _checked_shape(self, values: Tensor, batch: int) -> Tensor:
        if self.kind == "labels" and values.ndim == 4 and values.shape[1] == 1:
            values = values[:, 0]
        expected = 3 if self.kind == "labels" else 4
        if values.ndim != expected or len(values) != batch or values.numel() == 0:
            wanted = "(B, h, w)" if expected == 3 else "(B, C, h, w)"
            raise InputError(
                f"model must return {self.kind} of shape {wanted} for a batch of {batch}, "
                f"got {tuple(values.shape)}; set scores= to what it returns"
            )
        if self.kind != "labels":
            return values.float()
        labels = values.long()
        if values.is_floating_point() and not bool((labels == values).all()):
            raise InputError("model must return whole numbers as labels, got fractions; set scores= to what it returns")
        return labels

    def _tiled(self, images: Tensor) -> Scores:
        """Scores averaged over half overlapping windows; the noise was drawn for the whole image before."""
        window = self.prepare.window
        assert window is not None
        if self.kind == "labels":
            raise InputError("window must not be set for a model that returns labels: they cannot be averaged")
        height, width = (int(side) for side in images.shape[2:])
        total: Tensor | None = None
        times = torch.zeros(height, width, device=images.device)
        for top in window_starts(height, window[0]):
            for left in window_starts(width, window[1]):
                part = (..., slice(top, top + window[0]), slice(left, left + window[1]))
                values = self._whole(images[part]).at_full_size()
                if total is None:
                    total = torch.zeros(len(images), values.shape[1], height, width, device=images.device)
                total[part] += values
                times[part] += 1
        assert total is not None
        return Scores(total / times, self.kind, (height, width), (height, width), self.align_corners)

    def _check(self, scores: Scores) -> None:
        check_values(scores.values, scores.kind, self.num_classes)
        if not self._seen and scores.kind == "logits" and look_like_probabilities(scores.values):
            raise InputError(
                f"model {self.name} must return logits as set, got scores that add up to 1 at every pixel; "
                "set scores='probabilities' (--scores probabilities)"
            )
        self._seen = True
        if self.num_classes is None:
            self.num_classes = int(scores.values.shape[1])


def as_segmenter(model: Any) -> Segmenter:
    """The model itself if it is a Segmenter, otherwise a Segmenter around it that takes its output for logits."""
    return model if isinstance(model, Segmenter) else Segmenter(model)


def as_batch(pixels: NDArray[np.float32]) -> Tensor:
    """(B, H, W, 3) pixels as a (B, 3, H, W) tensor in channels-last memory, without a copy."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)


def fingerprint_of(identity: str, state: Mapping[str, Tensor], preparation: Mapping[str, Any]) -> str:
    """SHA-256 of a model: what it is called or hashes to, its tensors by name, and what happens around it."""
    hashed = hashlib.sha256(repr((identity, sorted(preparation.items()))).encode())
    for name, tensor in sorted(state.items()):
        hashed.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        hashed.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()


def _classes(
    names: Sequence[str] | None, count: int | None, kind: ScoreKind
) -> tuple[tuple[str, ...] | None, int | None]:
    """Checked class names and class count, as far as they are known."""
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise InputError(f"class_names must be a sequence of names, got {names!r}")
    if names is not None and count is not None and len(names) != count:
        raise InputError(f"class_names must name the {count} classes, got {len(names)} names")
    known = len(names) if names is not None else count
    if known is not None and known < 2:
        raise InputError(f"num_classes must be at least 2, got {known}")
    if kind == "labels" and known is None:
        raise InputError("num_classes must be given for a model that returns labels; a hierarchy gives it, too")
    return None if names is None else tuple(names), known


def _require_one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{what} must be one of {', '.join(allowed)}, got {value!r}")
