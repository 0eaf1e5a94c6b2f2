"""The contract of a base model f: an image in [0, 1] in, class scores per pixel out, as it is deployed.

Everything between the pixels and the arg max happens inside the segmenter - denoising, normalisation, padding,
resizing, tiling, rounding - so sigma and R are always in [0, 1] pixel units, and all of it is part of the certified
function. Noisy inputs leave [0, 1]; nobody clips them outside the segmenter.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import ImageLike, read_image
from certiseg.models.denoiser import WEIGHTS, Denoising, load_denoiser
from certiseg.models.outputs import (
    Answers,
    Tile,
    check_values,
    look_like_probabilities,
    tensor_of,
    tensor_of_array,
    two_classes,
)
from certiseg.models.preparation import describe, prepare, windows
from certiseg.models.settings import ModelSettings, ScoreKind, Size
from certiseg.settings import require_one_of, takes

FAR = 1.5
"""Images whose sides are more than so many times those that a model was trained for, or fewer, are pointed out."""
Arrays = Literal["torch", "numpy"]

BESIDE = ("channels", "num_classes", "class_names", "hierarchy", "trained_size", "insist")
"""Settings that change nothing about the certified function; all others are part of its fingerprint."""
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Segmenter:
    """A base model as it is deployed. Wraps any torch.nn.Module or callable.

    model: called with a float tensor (B, channels, H, W); with arrays="numpy" with a float32 array (B, H, W, channels).
        It returns scores (B, C, h, w) ((B, h, w, C) for numpy) or labels (B, h, w), at any resolution; a dict with
        `out` or `logits`, or an object with `.logits`, is looked into. A single score per pixel is that of the second
        of two classes: a logit for a sigmoid, or a probability.
    settings: those of ModelSettings: what the model returns, its classes, and how its input is prepared.
    """

    @takes(ModelSettings)
    def __init__(
        self,
        model: Callable[..., Any],
        *,
        arrays: Arrays = "torch",
        name: str | None = None,
        backend: str = "torch",
        denoising: Denoising | None = None,
        **settings: Any,
    ) -> None:
        if not callable(model):
            raise InputError(f"model must be a torch module or a callable, got {type(model).__name__}")
        require_one_of("arrays", arrays, get_args(Arrays))
        self.model = model
        self.arrays: Arrays = arrays
        self.name = name or type(model).__name__
        self.backend = backend
        self.denoising = denoising
        self.settings = ModelSettings(**settings)
        self.num_classes = self.settings.num_classes
        self._seen = False
        if isinstance(model, torch.nn.Module):
            model.eval()

    def __repr__(self) -> str:
        classes = "classes not known yet" if self.num_classes is None else f"{self.num_classes} classes"
        denoised = "" if self.denoising is None else f", denoised at sigma = {self.denoising.sigma:g}"
        steps = describe(self.settings)
        return f"Segmenter({self.name}: {classes}, {self.kind}, {self.backend}{denoised}{steps and f'; image {steps}'})"

    @property
    def kind(self) -> ScoreKind:
        """What the model returns."""
        return self.settings.scores

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of its classes, where they are known."""
        return self.settings.class_names

    @property
    def hierarchy(self) -> str | None:
        """The hierarchy over its classes, where there is one: the name of a preset, or a file."""
        return self.settings.hierarchy

    @property
    def device(self) -> torch.device:
        """Where the model lives: taken from its parameters, the CPU where it has none."""
        if not isinstance(self.model, torch.nn.Module):
            return torch.device("cpu")
        first = next(itertools.chain(self.model.parameters(), self.model.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def arithmetic(self) -> str | None:
        """What a runtime says of products of fewer than 32 bits."""
        found: str | None = getattr(self.model, "arithmetic", None)
        return found

    @property
    def reentrant(self) -> bool:
        """Whether several threads may ask at once: models say so that keep nothing between calls.

        A torch module must say so itself, not by what it is derived from, and without hooks, which may keep anything.
        """
        if not isinstance(self.model, torch.nn.Module):
            return bool(getattr(self.model, "reentrant", False))
        said = vars(self.model).get("reentrant", vars(type(self.model)).get("reentrant", False))
        return bool(said) and not any(part._forward_hooks or part._forward_pre_hooks for part in self.model.modules())

    def __call__(self, images: Tensor) -> Answers:
        """Scores of a batch of images (B, channels, H, W) around [0, 1]; checked to be finite, or known labels."""
        with torch.inference_mode():
            scores = self.scores(images)
        self._check(scores)
        return scores

    def scores(self, images: Tensor) -> Answers:
        """The same without the check, and with gradients where torch records them."""
        images = images.to(self.device)
        if self.denoising is not None:
            images = self.denoising(images)
        window = self.settings.window
        if window is not None and (images.shape[2] > window[0] or images.shape[3] > window[1]):
            return Answers(tuple(self._tiles(images, window)))
        return Answers((self._tile(images),))

    def predict(self, image: ImageLike, *, values: Sequence[Any] | None = None) -> NDArray[np.integer[Any]]:
        """(H, W): the labels of one image, without noise and without any certificate; values: as for `cs.sample`."""
        pixels = read_image(image, values=values, channels=self.settings.channels)
        labels: NDArray[np.integer[Any]] = self(as_batch(pixels[None])).labels()[0]
        return labels

    def notes(self, hierarchy: Hierarchy | None, size: Size | None = None) -> list[str]:
        """What a reader of the certificate should know about the certified function, in a sentence each.

        size: height and width of the (first) image.
        """
        notes = []
        trained = self.settings.trained_size
        if size is not None and trained is not None and self.settings.input_size is None:
            scale = math.sqrt(size[0] * size[1] / (trained[0] * trained[1]))
            if not 1 / FAR <= scale <= FAR:
                notes.append(
                    f"{self.name} was trained for images of about {trained[0]}x{trained[1]} pixels, this one has "
                    f"{size[0]}x{size[1]}: input_size (--input-size {min(trained)}) resizes it inside the certified "
                    "function"
                )
        if hierarchy is not None and self.class_names is None:
            first = ", ".join(hierarchy.classes[:3])
            notes.append(
                f"{self.name} does not name its classes; they are taken in the order of {hierarchy.name}: {first}, ..."
            )
        steps = describe(self.settings)
        return [*notes, f"inside the certified function the image is {steps}"] if steps else notes

    def adjusted(
        self,
        *,
        model: Callable[..., Any] | None = None,
        backend: str | None = None,
        denoising: Denoising | None = None,
        **changes: Any,
    ) -> Segmenter:
        """The same segmenter with another model, backend, denoiser or other settings, checked again."""
        changes = {"num_classes": None if "class_names" in changes else self.num_classes, **changes}
        twin = copy.copy(self)
        twin.model, twin.backend = model or self.model, backend or self.backend
        twin.denoising = denoising or self.denoising
        twin.settings, twin._seen = replace(self.settings, **changes), False
        twin.num_classes = twin.settings.num_classes
        if isinstance(model, torch.nn.Module):
            model.eval()
        return twin

    def denoised(self, *, sigma: float, path: str | Path = WEIGHTS) -> Segmenter:
        """The segmenter with a denoiser in front of it, told that the noise has this sigma."""
        if not sigma > 0:
            raise InputError(f"sigma must be a positive number, got {sigma}")
        return self.adjusted(denoising=Denoising(load_denoiser(path).to(self.device), sigma))

    def fingerprint(self) -> str:
        """A hash of the model's parameters and of the preparation around it, to tell two models apart."""
        around = self._around()
        if isinstance(self.model, torch.nn.Module):
            found = fingerprint_of("", self.model.state_dict(), around)
        elif hasattr(self.model, "fingerprint"):
            found = fingerprint_of(self.model.fingerprint(), {}, around)
        else:
            found = fingerprint_of(getattr(self.model, "__qualname__", type(self.model).__qualname__), {}, around)
        return found if self.denoising is None else self.denoising.fingerprint(found)

    def preparation(self) -> dict[str, Any]:
        """What happens around the model, as recorded with every vote."""
        denoised = {} if self.denoising is None else {"denoiser_sigma": self.denoising.sigma}
        return {**self._around(), **denoised}

    def _around(self) -> dict[str, Any]:
        settings = asdict(self.settings)
        unused = ("overlap",) if self.settings.window is None else ()
        for name in (*BESIDE, *unused):
            del settings[name]
        return {"kind": settings.pop("scores"), "arrays": self.arrays, "backend": self.backend, **settings}

    def _tile(self, images: Tensor) -> Tile:
        size = (int(images.shape[2]), int(images.shape[3]))
        prepared, full = prepare(images, self.settings)
        return Tile(self._run(prepared), self.kind, full, size, self.settings.align_corners)

    def _tiles(self, images: Tensor, window: Size) -> Iterator[Tile]:
        """One window after the other; each answers for its part of the image. The noise was drawn before."""
        sides = zip(images.shape[2:], window, strict=True)
        rows, columns = (windows(int(side), length, self.settings.overlap or 0) for side, length in sides)
        for top, part in rows:
            for left, beside in columns:
                tile = self._tile(images[:, :, top : top + window[0], left : left + window[1]])
                start, place = (part.start - top, beside.start - left), (part.start, beside.start)
                size = (part.stop - part.start, beside.stop - beside.start)
                yield replace(tile, size=size, start=start, place=place)

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
                "if sides must be multiples or fixed, set divisible_by or input_size; if it takes other channels, set "
                "channels"
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
            return two_classes(values.float(), self.kind) if values.shape[1] == 1 else values.float()
        labels = values.long()
        if values.is_floating_point() and not bool((labels == values).all()):
            raise InputError("model must return whole numbers as labels, got fractions; set scores= to what it returns")
        return labels

    def _check(self, scores: Answers) -> None:
        for tile in scores.tiles:
            check_values(tile.values, scores.kind, self.num_classes)
        if not self._seen and scores.kind == "logits" and look_like_probabilities(scores.tiles[0].values):
            raise InputError(
                f"model {self.name} must return logits as set, got scores that add up to 1 at every pixel; "
                "set scores='probabilities' (--scores probabilities)"
            )
        self._seen = True
        if self.num_classes is None:
            self.num_classes = int(scores.tiles[0].values.shape[1])


ModelLike: TypeAlias = "Segmenter | Callable[..., Any]"
"""A segmenter, or what one can be wrapped around."""


def as_segmenter(model: ModelLike) -> Segmenter:
    """The model itself if it is a Segmenter, otherwise a Segmenter around it that takes its output for logits."""
    return model if isinstance(model, Segmenter) else Segmenter(model)


def as_batch(pixels: NDArray[np.float32]) -> Tensor:
    """(B, H, W, channels) pixels as a (B, channels, H, W) tensor in channels-last memory, without a copy."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)


def fingerprint_of(identity: str, state: Mapping[str, Tensor], preparation: Mapping[str, Any]) -> str:
    """SHA-256 of a model: what it is called or hashes to, its tensors by name, and what happens around it."""
    hashed = hashlib.sha256(repr((identity, sorted(preparation.items()))).encode())
    for name, tensor in sorted(state.items()):
        hashed.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        hashed.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()
