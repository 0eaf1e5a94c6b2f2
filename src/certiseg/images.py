"""Images in: a path, a PIL image or an array becomes float32 (H, W, 3) in [0, 1], or one clear sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 100_000_000


def read_image(image: Any) -> NDArray[np.float32]:
    """The decoded pixels of an image: uint8 or float in [0, 1], (H, W, 3); PIL image; or path of a file.

    Files are turned by their EXIF orientation; grey, palette and CMYK become RGB; transparency is refused.
    """
    if isinstance(image, str | Path):
        return _from_file(Path(image))
    if isinstance(image, np.ndarray):
        return _from_array(image, "image")
    if hasattr(image, "convert") and hasattr(image, "size"):
        return _from_pil(image, "image")
    try:
        array = np.asarray(image)
    except Exception:
        array = np.empty(0, object)
    if array.dtype == object:
        raise InputError(f"image must be an array, a PIL image or a path, got {type(image).__name__}")
    return _from_array(array, "image")


def _from_file(path: Path) -> NDArray[np.float32]:
    from PIL import Image, ImageOps

    if not path.is_file():
        raise InputError(f"image must be a file, got {str(path)!r}, which is not there")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as opened:
                if opened.size[0] * opened.size[1] > MAX_PIXELS:
                    raise InputError(f"{path}: must have at most {MAX_PIXELS:,} pixels, got {opened.size}")
                if opened.format != "MPO":  # photos with an appended preview; turning them below drops the count
                    _require_one_frame(opened, str(path))
                return _from_pil(ImageOps.exif_transpose(opened), str(path))
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: must fit into memory") from None
    except Exception as error:  # Pillow raises many types on damaged files
        reason = f"{error}".strip().splitlines()[0] if f"{error}".strip() else type(error).__name__
        raise InputError(f"{path}: must be a readable image, got: {reason.removesuffix('.')}") from None


def _from_pil(image: Image, what: str) -> NDArray[np.float32]:
    if getattr(image, "format", None) != "MPO":
        _require_one_frame(image, what)
    if image.mode in ("I", "F", "I;16", "I;16B", "I;16L"):
        raise InputError(f"{what}: must have 8 bits per channel, got mode {image.mode}; convert it to RGB first")
    if image.has_transparency_data:
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
        if alpha.min(initial=255) < 255:
            raise InputError(f"{what}: must have no transparent pixels; flatten it onto a background first")
    return _from_array(np.asarray(image.convert("RGB")), what)


def _require_one_frame(image: Image, what: str) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise InputError(f"{what}: must be a single image, got {frames} frames")


def _from_array(array: NDArray[Any], what: str) -> NDArray[np.float32]:
    if array.ndim != 3 or array.shape[2] != 3:
        raise InputError(f"{what} must have the shape (H, W, 3), got {array.shape}")
    if array.size == 0:
        raise InputError(f"{what} must have at least one pixel, got shape {array.shape}")
    if array.dtype == np.uint8:
        return array.astype(np.float32) / np.float32(255)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{what} must be uint8 or float in [0, 1], got {array.dtype}")
    with np.errstate(over="ignore"):
        pixels = array.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise InputError(f"{what} must be finite, got NaN or infinity")
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        raise InputError(f"{what} must lie in [0, 1], got [{low:g}, {high:g}]; divide 8-bit values by 255")
    return pixels
