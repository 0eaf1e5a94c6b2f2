"""One training sample: a random window of an image at a random scale, in random light, with or without noise.

Every choice comes from the generator that is passed in, so a sample is a function of (seed, position) alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from certiseg.hierarchy import VOID

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Augmentation:
    """What may happen to a sample: window size (height, width), scale range, aspect, flip, strength of colour."""

    crop: tuple[int, int]
    scale: tuple[float, float] = (0.5, 2.0)
    aspect: float = 1.15
    flip: bool = True
    colour: float = 1.0

    def __call__(self, image: Bytes, label: Bytes, rng: np.random.Generator) -> tuple[Floats, Bytes]:
        """Image (h, w, 3) float32 in [0, 1] and label (h, w) uint8 of the window size."""
        pixels, ids = cut_window(image, label, self, rng)
        if self.flip and rng.random() < 0.5:
            pixels, ids = pixels[:, ::-1], ids[:, ::-1]
        return shift_colours(pixels, rng, strength=self.colour), np.ascontiguousarray(ids)


def cut_window(image: Bytes, label: Bytes, augmentation: Augmentation, rng: np.random.Generator) -> tuple[Bytes, Bytes]:
    """A window of a random place and scale; what the image does not cover is grey and void."""
    height, width = augmentation.crop
    low, high = augmentation.scale
    factor = math.exp(rng.uniform(math.log(low), math.log(high)))
    stretch = math.exp(rng.uniform(-1, 1) * math.log(augmentation.aspect) / 2)
    full_height, full_width = image.shape[:2]
    box_height, box_width = height / (factor * stretch), width / (factor / stretch)
    top, covered_height, rows = _place(full_height, box_height, height, rng)
    left, covered_width, columns = _place(full_width, box_width, width, rng)
    box = (left, top, left + covered_width, top + covered_height)
    size = (columns.stop - columns.start, rows.stop - rows.start)
    pixels = np.full((height, width, 3), 110, np.uint8)
    ids = np.full((height, width), VOID, np.uint8)
    pixels[rows, columns] = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR, box=box))
    ids[rows, columns] = np.asarray(Image.fromarray(label).resize(size, Image.Resampling.NEAREST, box=box))
    return pixels, ids


def _place(full: int, box: float, target: int, rng: np.random.Generator) -> tuple[float, float, slice]:
    """Where a box starts in the image along one axis, how much it covers, and the target cells it fills."""
    where = rng.random()
    if box <= full:
        return where * (full - box), box, slice(0, target)
    filled = max(1, round(target * full / box))
    start = int(where * (target - filled + 1))
    return 0.0, float(full), slice(start, start + filled)


def shift_colours(pixels: Bytes, rng: np.random.Generator, *, strength: float) -> Floats:
    """Other light: exposure, contrast, gamma, tint and saturation, as float32 in [0, 1]."""
    exposure, contrast, gamma, saturation = np.exp(rng.uniform(-1, 1, 4) * np.array([0.35, 0.3, 0.35, 0.5]) * strength)
    tint = np.exp(rng.uniform(-1, 1, 3) * 0.12 * strength)
    # One table of 256 values per channel does exposure, contrast, gamma and tint at once.
    grey = (np.arange(256) / 255.0) ** gamma
    table = (((grey - 0.45) * contrast + 0.45)[:, None] * (exposure * tint)).astype(np.float32)
    result = np.empty(pixels.shape, np.float32)
    for channel in range(3):
        result[..., channel] = table[pixels[..., channel], channel]
    mean = result.mean(-1, keepdims=True)
    shifted: Floats = np.clip(mean + (result - mean) * np.float32(saturation), 0, 1)
    return shifted


def take_colours(pixels: Bytes, other: Bytes, *, share: float) -> Bytes:
    """The image on its way to the histograms of another one: its light, its camera, its hour; share 1 arrives there."""
    tables = []
    for channel in range(3):
        own, wanted = (np.bincount(image[..., channel].ravel(), minlength=256) for image in (pixels, other))
        below = (np.cumsum(own) - own / 2) / own.sum()
        matched = np.interp(below, np.cumsum(wanted) / wanted.sum(), np.arange(256))
        tables.append(np.rint((1 - share) * np.arange(256) + share * matched).astype(np.uint8))
    return np.stack([table[pixels[..., channel]] for channel, table in enumerate(tables)], -1)


def paste_classes(
    image: Floats, label: Bytes, other: Floats, other_label: Bytes, rng: np.random.Generator
) -> tuple[Floats, Bytes]:
    """The image with half of the classes of another one pasted into it: things in places where they never stood."""
    present = np.setdiff1d(other_label, VOID)
    chosen = rng.permutation(present)[: (len(present) + 1) // 2]
    pasted = np.isin(other_label, chosen)
    return np.where(pasted[..., None], other, image), np.where(pasted, other_label, label)


def add_noise(image: Floats, rng: np.random.Generator, *, sigma: float) -> Floats:
    """The image plus independent Gaussian noise; values may leave [0, 1]."""
    if sigma == 0:
        return image
    noise = rng.standard_normal(image.shape, np.float32)
    return image + noise * np.float32(sigma)
