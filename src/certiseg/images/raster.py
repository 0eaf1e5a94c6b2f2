"""Images that are more than 8-bit RGB: TIFF with any number of channels and bits, .npy and .npz.

Headers are read first: what is too large, or no single image, is refused before memory is taken for it.
"""

from __future__ import annotations

import io
import logging
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.images.values import require_shape

ARRAYS = (".npy", ".npz")
TIFFS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_CHANNEL_AXES = {"YX": None, "YXS": 2, "YXC": 2, "SYX": 0, "CYX": 0}
_PALETTE, _ALPHA = 3, (1, 2)
logging.getLogger("tifffile").addHandler(logging.NullHandler())  # our sentence tells what it remarks on damaged files


def is_array(source: str | Path | bytes) -> bool:
    """Whether a file is one of NumPy's: by its name, or by its first bytes where there is no name."""
    if isinstance(source, bytes):
        return source[:6] == b"\x93NUMPY" or source[:4] == b"PK\3\4"
    return Path(source).suffix.lower() in ARRAYS


def is_tiff(source: str | Path | bytes) -> bool:
    """Whether a file begins like a TIFF."""
    if isinstance(source, bytes):
        return source[:4] in TIFFS
    with Path(source).open("rb") as file:
        return file.read(4) in TIFFS


def read_tiff(source: str | Path | bytes, what: str, *, most: int | None = None) -> NDArray[Any] | None:
    """The numbers of a TIFF (H, W, channels) as they are stored; None for 8-bit grey and RGB, which Pillow reads."""
    import tifffile

    try:
        with tifffile.TiffFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            page: Any = file.pages[0]
            series = file.series[0]
            if page.photometric == _PALETTE:
                raise InputError(f"{what} must hold colours or measured values, got a palette TIFF; convert it to RGB")
            if len(file.series) == 1 and _is_plain(page, series):
                return None
            if len(file.series) > 1 or series.axes not in _CHANNEL_AXES:
                raise InputError(
                    f"{what} must be a single image, got {len(file.series)} of shape {series.shape} (axes "
                    f"{series.axes}); keep one, its channels as samples of each pixel"
                )
            if (turned := page.tags.get("Orientation")) is not None and turned.value != 1:
                raise InputError(f"{what} must have the orientation 1, got {turned.value}; turn its pixels instead")
            axis = _CHANNEL_AXES[series.axes]
            shape = series.shape if axis != 0 else (*series.shape[1:], series.shape[0])
            require_shape(shape, what, most=most)
            array = series.asarray()
    except InputError:
        raise
    except Exception as error:  # tifffile raises many types on damaged files
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
        raise InputError(f"{what} must be a readable TIFF, got: {text}; replace it") from None
    return np.moveaxis(array, 0, -1) if axis == 0 else array


def _is_plain(page: Any, series: Any) -> bool:
    """8-bit (or bilevel) grey or colour, perhaps with transparency, in one page."""
    if page.dtype not in (np.uint8, np.bool_) or len(series.pages) > 1 or series.axes not in ("YX", "YXS", "SYX"):
        return False
    alpha = any(int(kind) in _ALPHA for kind in page.extrasamples)
    return page.samplesperpixel in (1, 3) or (page.samplesperpixel == 4 and (alpha or not page.extrasamples))


def read_array(source: str | Path | bytes, what: str, *, most: int | None = None) -> NDArray[Any]:
    """The array of a .npy file, or the only one (or the one called `image`) of a .npz file."""
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb") as whole:
            if whole.read(6) == b"\x93NUMPY":
                whole.seek(0)
                _require_numbers(whole, what, most)
                whole.seek(0)
                return np.asarray(np.lib.format.read_array(whole, allow_pickle=False))
            return _of_archive(whole, what, most)
    except InputError:
        raise
    except Exception as error:  # damaged files raise many types
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
        raise InputError(f"{what} must be a readable array of numbers, got: {text}; replace it") from None


def _of_archive(file: Any, what: str, most: int | None) -> NDArray[Any]:
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        names = ["image.npy"] if "image.npy" in names else names
        if len(names) != 1:
            raise InputError(f"{what} must hold one array, or one called image, got {len(names)}; keep one")
        with archive.open(names[0]) as inside:
            _require_numbers(inside, what, most)
        with archive.open(names[0]) as inside:
            return np.asarray(np.lib.format.read_array(inside, allow_pickle=False))


def _require_numbers(file: Any, what: str, most: int | None) -> None:
    """Refuse by its header what is no image, or holds something else than numbers."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    require_shape(shape, what, most=most)
    if dtype.kind not in "biuf":
        raise InputError(f"{what} must hold whole or real numbers, got {dtype}; convert it")
