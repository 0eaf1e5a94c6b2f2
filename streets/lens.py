"""From linear light to the bytes of a camera: pixels, glow, exposure, tone, tint, blur and sensor noise."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streets.draws import Draws
from streets.light import Colour

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Lens:
    """The habits of one camera on one day."""

    exposure: float
    contrast: float
    tint: Colour
    glow: float
    blur: float
    noise: float
    vignette: float


def develop(light: Array, lens: Lens, rng: Draws) -> npt.NDArray[np.uint8]:
    """A picture (H, W, 3) of bytes from three planes of linear light at twice the size."""
    image = (light[:, 0::2, 0::2] + light[:, 1::2, 0::2] + light[:, 0::2, 1::2] + light[:, 1::2, 1::2]) * np.float32(
        0.25
    )
    rows, columns = image.shape[1:]
    image = image + np.float32(lens.glow) * (_haze(np.minimum(image, np.float32(1.3))) - image)
    y = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, columns, dtype=np.float32)[None, :]
    fall = 1 - np.float32(lens.vignette) * (x * x + y * y) * np.float32(0.5)
    image *= fall
    image *= np.array(lens.tint, dtype=np.float32).reshape(3, 1, 1) * np.float32(lens.exposure)
    shown = np.sqrt(np.clip(image, 0, 1))
    shown = shown + np.float32(lens.contrast) * shown * (1 - shown) * (2 * shown - 1)
    passes = max(1, round(columns / 480))
    for _ in range(passes):
        shown = shown + np.float32(lens.blur) * (_tap(_tap(shown, 1), 2) - shown)
    coarse = rng.random(shown.shape, dtype=np.float32) + rng.random(shown.shape, dtype=np.float32) - 1
    grey = rng.random((rows, columns), dtype=np.float32) + rng.random((rows, columns), dtype=np.float32) - 1
    shown = shown + np.float32(lens.noise) * (np.float32(0.6) * coarse + grey)
    codes = (np.clip(shown, 0, 1) * np.float32(255.0) + np.float32(0.5)).astype(np.uint8)
    return np.ascontiguousarray(codes.transpose(1, 2, 0))


def _tap(image: Array, axis: int) -> Array:
    """The 1-2-1 blur along one axis; the borders stay."""
    blurred = image.copy()
    if axis == 1:
        blurred[:, 1:-1] += (image[:, :-2] + image[:, 2:]) * np.float32(0.5)
        blurred[:, 1:-1] *= np.float32(0.5)
    else:
        blurred[:, :, 1:-1] += (image[:, :, :-2] + image[:, :, 2:]) * np.float32(0.5)
        blurred[:, :, 1:-1] *= np.float32(0.5)
    return blurred


def _haze(image: Array) -> Array:
    """A wide blur: the picture shrunk eight times, blurred, and stretched again without steps."""
    rows, columns = image.shape[1:]
    high, wide = -(-rows // 8), -(-columns // 8)
    padded = np.pad(image, ((0, 0), (0, high * 8 - rows), (0, wide * 8 - columns)), mode="edge")
    small = np.zeros((3, high, wide), dtype=np.float32)
    for i in range(0, 8, 2):
        for j in range(0, 8, 2):
            small += padded[:, i::8, j::8]
    small *= np.float32(1 / 16)
    for _ in range(3):
        small = _tap(_tap(small, 1), 2)
    return _stretch(_stretch(small, 1, rows), 2, columns)


def _stretch(image: Array, axis: int, size: int) -> Array:
    """Stretch one axis eight times by linear interpolation and cut it to size."""
    at = np.clip((np.arange(size, dtype=np.float32) - np.float32(3.5)) / 8, 0, image.shape[axis] - 1)
    low = np.floor(at).astype(np.int32)
    share = (at - low).reshape([-1 if k == axis else 1 for k in range(3)])
    first, second = np.take(image, low, axis), np.take(image, np.minimum(low + 1, image.shape[axis] - 1), axis)
    stretched: Array = first + (second - first) * share
    return stretched
