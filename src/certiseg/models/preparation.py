"""What happens between the pixels in [0, 1] and the model's own input; all of it is part of the certified function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from certiseg.errors import InputError
from certiseg.images import MAX_PIXELS

Resize = Literal["bilinear", "antialiased", "bicubic"]


@dataclass(frozen=True)
class Preparation:
    """Resizing, rounding, normalisation, channel order and padding, in this order."""

    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    bgr: bool = False
    """The model wants blue first; mean and std are still given red first."""
    divisible_by: int = 1
    """Sides are padded (with zeros, right and below, after the normalisation) to a multiple."""
    input_size: tuple[int, int] | int | None = None
    """(height, width) the model insists on, or its shorter side; the image is resized to it, the scores back."""
    resize: Resize = "bilinear"
    """How: plain bilinear (OpenCV), bilinear or bicubic with averaging where the image shrinks (Pillow)."""
    integer_input: bool = False
    """The model takes uint8: values are rounded and clamped to 0..255."""
    window: tuple[int, int] | None = None
    """(height, width) of half overlapping windows over larger images."""

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, _per_channel(name, getattr(self, name)))
        if self.std is not None and min(self.std) <= 0:
            raise InputError(f"std must be positive, got {self.std}")
        if self.integer_input and (self.mean is not None or self.std is not None):
            raise InputError("mean and std must not be given for a model that takes whole numbers 0..255")
        if not _is_whole(self.divisible_by):
            raise InputError(f"divisible_by must be a whole number >= 1, got {self.divisible_by!r}")
        for name in ("input_size", "window"):
            if not (name == "input_size" and _is_whole(self.input_size)):
                object.__setattr__(self, name, _size(name, getattr(self, name)))
        if self.resize not in get_args(Resize):
            raise InputError(f"resize must be one of {', '.join(get_args(Resize))}, got {self.resize!r}")

    def __call__(self, images: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """The model's own input, and the size in pixels of the image that its output covers."""
        height, width = int(images.shape[2]), int(images.shape[3])
        target = self.size_of(height, width)
        bottom, right = -target[0] % self.divisible_by, -target[1] % self.divisible_by
        _require_size(target[0] + bottom, target[1] + right)
        images = self._resized(images, target)
        if self.integer_input:
            images = (images * 255).round().clamp(0, 255).to(torch.uint8)
        if self.mean is not None:
            images = images - torch.tensor(self.mean, device=images.device).view(1, 3, 1, 1)
        if self.std is not None:
            images = images / torch.tensor(self.std, device=images.device).view(1, 3, 1, 1)
        if self.bgr:
            images = images.flip(1)
        if bottom or right:
            images = F.pad(images, (0, right, 0, bottom))
        if target == (height, width):
            return images, (height + bottom, width + right)
        # Padding in the model's pixels covers a share of the image's: exact where resized sides need none.
        return images, (round(height * (1 + bottom / target[0])), round(width * (1 + right / target[1])))

    def size_of(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that an image is resized to, before padding."""
        if self.input_size is None:
            return height, width
        if isinstance(self.input_size, tuple):
            return self.input_size
        short = min(height, width)
        return max(1, self.input_size * height // short), max(1, self.input_size * width // short)

    def describe(self) -> str:
        """What is done to the image inside the certified function, in words; empty where nothing notable is."""
        parts = []
        if self.window is not None:
            parts.append(f"cut into windows of {self.window[0]}x{self.window[1]} where it is larger")
        if self.input_size is not None:
            size = self.input_size
            target = f"{size[0]}x{size[1]}" if isinstance(size, tuple) else f"a shorter side of {size}"
            parts.append(f"resized to {target} ({self.resize}) and the scores back")
        if self.integer_input:
            parts.append("rounded and clamped to 0..255")
        if self.divisible_by > 1:
            parts.append(f"padded to a multiple of {self.divisible_by}")
        return ", ".join(parts)

    def _resized(self, images: Tensor, size: tuple[int, int]) -> Tensor:
        if tuple(images.shape[2:]) == size:
            return images
        mode = "bicubic" if self.resize == "bicubic" else "bilinear"
        return F.interpolate(images, size=size, mode=mode, align_corners=False, antialias=self.resize != "bilinear")


def window_starts(side: int, window: int) -> list[int]:
    """Where windows begin along a side: every half window, the last one flush with the end."""
    last = max(side - window, 0)
    return sorted({*range(0, last, max(window // 2, 1)), last})


def _per_channel(what: str, values: Sequence[float] | None) -> tuple[float, ...] | None:
    if values is None:
        return None
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 3 or not all(np.isfinite(numbers)):
        raise InputError(f"{what} must be three numbers, one per channel, got {values!r}")
    return numbers


def _size(what: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or len(value) != 2 or not all(_is_whole(side) for side in value):
        raise InputError(f"{what} must be (height, width) in pixels, got {value!r}")
    return int(value[0]), int(value[1])


def _require_size(height: int, width: int) -> None:
    """Refuse what a file or a slip of the hand may ask for, before memory is taken for it."""
    if height * width > MAX_PIXELS:
        raise InputError(
            f"input_size and divisible_by must give the model at most {MAX_PIXELS:,} pixels, got {height}x{width}"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
