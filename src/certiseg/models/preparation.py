"""What happens between the pixels in [0, 1] and the model's own input; all of it is part of the certified function."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from certiseg.errors import InputError
from certiseg.images import MAX_PIXELS
from certiseg.models.settings import ModelSettings, Size


def prepare(images: Tensor, settings: ModelSettings) -> tuple[Tensor, Size]:
    """The model's own input, and the size in pixels of the image that its output covers.

    Resizing, rounding, normalisation, channel order and padding (right and below), in this order.
    """
    height, width = int(images.shape[2]), int(images.shape[3])
    target = resized_size((height, width), settings)
    bottom, right = -target[0] % settings.divisible_by, -target[1] % settings.divisible_by
    _require_size(target[0] + bottom, target[1] + right)
    images = _normalised(_resized(images, target, settings), settings)
    if bottom or right:
        images = F.pad(images, (0, right, 0, bottom))
    if target == (height, width):
        return images, (height + bottom, width + right)
    # Padding in the model's pixels covers a share of the image's: exact where resized sides need none.
    return images, (round(height * (1 + bottom / target[0])), round(width * (1 + right / target[1])))


def resized_size(size: Size, settings: ModelSettings) -> Size:
    """Height and width that an image is resized to, before padding."""
    if settings.input_size is None:
        return size
    if isinstance(settings.input_size, tuple):
        return settings.input_size
    height, width = (max(1, settings.input_size * side // min(size)) for side in size)
    return height, width


def _resized(images: Tensor, size: Size, settings: ModelSettings) -> Tensor:
    if tuple(images.shape[2:]) == size:
        return images
    mode = "bicubic" if settings.resize == "bicubic" else "bilinear"
    return F.interpolate(images, size=size, mode=mode, align_corners=False, antialias=settings.resize != "bilinear")


def _normalised(images: Tensor, settings: ModelSettings) -> Tensor:
    if settings.integer_input:
        images = (images * 255).round().clamp(0, 255).to(torch.uint8)
    if settings.mean is not None:
        images = images - torch.tensor(settings.mean, device=images.device).view(1, -1, 1, 1)
    if settings.std is not None:
        images = images / torch.tensor(settings.std, device=images.device).view(1, -1, 1, 1)
    return images.flip(1) if settings.bgr else images


def _require_size(height: int, width: int) -> None:
    """Refuse what a file or a slip of the hand may ask for, before memory is taken for it."""
    if height * width > MAX_PIXELS:
        raise InputError(
            f"input_size and divisible_by must give the model at most {MAX_PIXELS:,} pixels, got {height}x{width}"
        )


def describe(settings: ModelSettings) -> str:
    """What is done to the image inside the certified function, in words; empty where nothing notable is."""
    parts = []
    if settings.window is not None:
        height, width = settings.window
        parts.append(f"cut into {height}x{width} windows that share {settings.overlap} pixels where it is larger")
    if settings.input_size is not None:
        size = settings.input_size
        target = f"{size[0]}x{size[1]}" if isinstance(size, tuple) else f"a shorter side of {size}"
        parts.append(f"resized to {target} ({settings.resize}) and the scores back")
    if settings.integer_input:
        parts.append("rounded and clamped to 0..255")
    if settings.divisible_by > 1:
        parts.append(f"padded to a multiple of {settings.divisible_by}")
    return ", ".join(parts)


def windows(side: int, window: int, overlap: int) -> list[tuple[int, slice]]:
    """Where windows begin along a side, and the part of the side that each answers for.

    As few windows as overlap by so many pixels, evenly spread; the part of a window ends in the middle of an overlap.
    """
    if side <= window:
        return [(0, slice(0, side))]
    count = -(-(side - overlap) // (window - overlap))
    starts = [index * (side - window) // (count - 1) for index in range(count)]
    cuts = [0, *((later + earlier + window) // 2 for earlier, later in pairwise(starts)), side]
    return [(start, slice(low, high)) for start, (low, high) in zip(starts, pairwise(cuts), strict=True)]
