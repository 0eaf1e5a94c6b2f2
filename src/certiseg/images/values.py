"""What stored numbers stand for: an array of any type becomes pixels in [0, 1], by a range of values that is stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

MAX_PIXELS = 100_000_000
MAX_VALUES = 400_000_000
"""Numbers in an image: pixels times channels."""
MAX_CHANNELS = 64
Values: TypeAlias = tuple[tuple[float, float], ...]
"""The numbers that 0 and 1 stand for: (low, high) for all channels, or one such pair per channel."""
BYTES: Values = ((0.0, 255.0),)
RANGES: dict[Any, Values] = {np.dtype(np.uint8): BYTES, np.dtype(np.uint16): ((0.0, 65535.0),)}
"""What whole numbers of 8 and 16 bits stand for where nothing is stated."""
STATE = "state the range of its values with values=(low, high) (--values LOW:HIGH)"
_COLOURS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class Picture:
    """An image that was read: its pixels, and the numbers that 0 and 1 stand for in its file."""

    pixels: NDArray[np.float32]
    """(H, W, channels) in [0, 1]."""
    values: Values = BYTES


def as_values(values: Sequence[Any] | None) -> Values | None:
    """(low, high), or one such pair per channel, checked; None and () stand for not stated."""
    if values is None or not len(values):
        return None
    pairs = [values] if np.ndim(values[0]) == 0 else values
    try:
        found = tuple((float(low), float(high)) for low, high in pairs)
    except (TypeError, ValueError):
        found = ()
    if not found or not all(np.isfinite(pair).all() and pair[0] < pair[1] for pair in found):
        raise InputError(f"values must be (low, high) with low < high, or one such pair per channel, got {values!r}")
    return found


def parse_values(text: str) -> Values:
    """LOW:HIGH, or one per channel, separated by commas."""
    found = as_values([part.split(":") for part in text.split(",")])
    assert found is not None, "a text has at least one part"
    return found


def values_words(values: Values) -> str:
    """A range of values as one types it."""
    return ",".join(f"{low:.10g}:{high:.10g}" for low, high in values)


def require_size(height: int, width: int, what: str, *, most: int | None = None) -> None:
    """Refuse more pixels than an image may have here."""
    most = MAX_PIXELS if most is None else most
    if height * width > most:
        raise InputError(f"{what} must have at most {most:,} pixels, got {width}x{height}; make it smaller")


def require_shape(shape: Sequence[int], what: str, *, most: int | None = None) -> None:
    """Refuse what is no image (H, W) or (H, W, channels) of at most `most` pixels, before memory is taken for it."""
    if len(shape) not in (2, 3):
        raise InputError(f"{what} must have the shape (H, W, channels), got {tuple(shape)}; convert it")
    if 0 in shape:
        raise InputError(f"{what} must have at least one pixel, got shape {tuple(shape)}; replace it")
    if len(shape) == 3 and _looks_channels_first(shape):
        raise InputError(
            f"{what} must have the shape (H, W, channels), got {tuple(shape)}, which looks like channels first; "
            "permute it: .permute(1, 2, 0) of a tensor, .transpose(1, 2, 0) of an array"
        )
    if len(shape) == 3 and shape[2] > MAX_CHANNELS:
        raise InputError(f"{what} must have 1 to {MAX_CHANNELS} channels, got shape {tuple(shape)}; choose some")
    require_size(shape[0], shape[1], what, most=most)
    if int(np.prod(shape, dtype=object)) > MAX_VALUES:
        raise InputError(f"{what} must hold at most {MAX_VALUES:,} values, got shape {tuple(shape)}; make it smaller")


def _looks_channels_first(shape: Sequence[int]) -> bool:
    first, height, last = shape
    if last in _COLOURS or first > MAX_CHANNELS or first >= min(height, last):
        return False
    return last > MAX_CHANNELS or first in _COLOURS or height == last


def scaled(array: NDArray[Any], values: Values | None, what: str) -> Picture:
    """Stored numbers as pixels in [0, 1]; refused where their range is not known, or they leave it."""
    require_shape(array.shape, what)
    array = array if array.ndim == 3 else array[..., None]
    if values is None or (values == BYTES and array.dtype == np.uint8):
        return _by_type(array, what)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{what} must hold whole or real numbers, got {array.dtype}; convert it")
    if len(values) not in (1, array.shape[2]):
        raise InputError(
            f"values must be one range, or one for each of the {array.shape[2]} channels of {what}, got {len(values)}"
        )
    low, high = (np.array(ends, np.float64) for ends in zip(*values, strict=True))
    _require_finite(array, what)
    pixels = ((array - low) / (high - low)).astype(np.float32)
    _require_inside(pixels, array, values, what)
    return Picture(pixels, values)


def _by_type(array: NDArray[Any], what: str) -> Picture:
    if (values := RANGES.get(array.dtype)) is not None:
        return Picture(array.astype(np.float32) / np.float32(values[0][1]), values)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{what} must be uint8, uint16 or float in [0, 1], got {array.dtype}; {STATE}")
    with np.errstate(over="ignore"):
        pixels = array.astype(np.float32)
    _require_finite(pixels, what)
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        raise InputError(f"{what} must lie in [0, 1], got [{low:g}, {high:g}]; divide 8-bit values by 255, or {STATE}")
    return Picture(pixels)


def _require_finite(array: NDArray[Any], what: str) -> None:
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite, got NaN or infinity; replace those values")


def _require_inside(pixels: NDArray[np.float32], array: NDArray[Any], values: Values, what: str) -> None:
    outside = ((pixels < 0) | (pixels > 1)).any(axis=(0, 1))
    if outside.any():
        channel = int(np.flatnonzero(outside)[0])
        low, high = values[channel if len(values) > 1 else 0]
        found = array[..., channel]
        raise InputError(
            f"{what} must lie in its stated range {low:g}:{high:g}, got {found.min():g} to {found.max():g} in channel "
            f"{channel + 1}; widen the range, or clip the values"
        )


def with_channels(picture: Picture, channels: int | None, what: str) -> Picture:
    """The picture with as many channels as a model takes; grey that was stored as RGB may become one channel."""
    found = picture.pixels.shape[2]
    if channels in (None, found):
        return picture
    if channels == 1 and found == 3 and (picture.pixels == picture.pixels[..., :1]).all():
        return Picture(np.ascontiguousarray(picture.pixels[..., :1]), picture.values)
    raise InputError(
        f"{what} must have {channels} channel{'s' if channels != 1 else ''} as the model takes, got {found}; convert it"
    )
