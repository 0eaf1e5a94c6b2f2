"""One file in, one checked array out: pixels, stored ids or colours, or one sentence that names the file."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from certiseg import images
from certiseg.errors import InputError

ID_MODES = ("P", "L", "1", "I", "I;16", "I;16B", "I;16L")
COLOUR_MODES = ("RGB", "P")
LOSSY = ("JPEG", "MPO", "JPEG2000", "WEBP", "AVIF")


def read_image(path: str | Path) -> NDArray[np.uint8]:
    """The decoded RGB pixels of a file, (H, W, 3) uint8, under the rules of `certiseg.images`."""
    return _to_bytes(images.read_image(Path(path)))


def decode_image(data: bytes, what: str) -> NDArray[np.uint8]:
    """The same for a file that lies in memory."""
    opened = _decode(io.BytesIO(data), what, upright=True)
    try:
        return _to_bytes(images.read_image(opened))
    except InputError as error:
        raise InputError(f"{what} {str(error).removeprefix('image').lstrip(': ')}") from None


def read_ids(path: Path) -> NDArray[Any]:
    """The ids stored in a label map (H, W): palette indices, grey values of 8 or 16 bits; colours are refused."""
    _require_file(path)
    return decode_ids(path, str(path))


def decode_ids(source: Path | io.BytesIO, what: str) -> NDArray[Any]:
    """The same for a source that was opened before."""
    opened = _decode(source, what)
    _require_mode(opened, ID_MODES, what, "a one-channel label map", "save the class ids as 8-bit PNG")
    stored = np.asarray(opened)
    return stored.astype(np.uint8) if stored.dtype == bool else stored


def read_colours(path: Path) -> NDArray[np.uint8]:
    """The colours stored in a colour-coded label map, (H, W, 3)."""
    _require_file(path)
    opened = _decode(path, str(path))
    _require_mode(opened, COLOUR_MODES, str(path), "an RGB colour-coded label map", "save it as RGB PNG")
    return np.asarray(opened.convert("RGB"))


def read_mat(path: Path, *, variable: str) -> NDArray[Any]:
    """The ids (H, W) in one variable of a MATLAB file of version 4 to 7; nothing else in it is read."""
    from scipy.io import loadmat, whosmat

    _require_file(path)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(str(path), appendmat=False)}
        if variable in shapes:
            _require_map_shape(shapes[variable], path, variable)
            stored = loadmat(str(path), appendmat=False, variable_names=[variable])[variable]
    except InputError:
        raise
    except NotImplementedError:
        raise InputError(f"{path} must be a MATLAB file up to version 7, got version 7.3; save it with -v7") from None
    except Exception as error:  # SciPy raises many types on damaged files
        reason = _reason(error)
        raise InputError(f"{path} must be a readable MATLAB file, got: {reason}; download it again") from None
    if variable not in shapes:
        found = ", ".join(sorted(shapes)[:8]) or "none"
        raise InputError(f"{path} must hold the variable {variable}, got {found}; check which data set it belongs to")
    return as_ids(stored, f"{path}, variable {variable},")


def as_ids(stored: Any, what: str) -> NDArray[Any]:
    """An array (H, W) of whole numbers, refused if it is anything else."""
    array = stored if isinstance(stored, np.ndarray) else np.asarray(stored, dtype=object)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "uifb":
        raise InputError(f"{what} must be a matrix of ids, got {array.dtype} of shape {array.shape}; replace it")
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if not np.array_equal(whole, array):
            raise InputError(f"{what} must hold whole numbers, got fractions or NaN; replace it")
        return whole
    return array


def require_size(height: int, width: int, what: str) -> None:
    """Refuse sizes that no image may have here (`certiseg.images.MAX_PIXELS`)."""
    if height * width > images.MAX_PIXELS:
        raise InputError(
            f"{what} must have at most {images.MAX_PIXELS:,} pixels, got {width}x{height}; make it smaller"
        )


def _decode(source: Path | io.BytesIO, what: str, *, upright: bool = False) -> Image.Image:
    """A decoded image of one frame and of a size that is allowed; Pillow's many errors become one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(source) as opened:
                require_size(opened.height, opened.width, what)
                frames = getattr(opened, "n_frames", 1)
                if frames > 1 and opened.format != "MPO":  # MPO: photos with an appended preview
                    raise InputError(f"{what} must be a single image, got {frames} frames; keep one")
                opened.load()
                return ImageOps.exif_transpose(opened) if upright else opened
    except InputError:
        raise
    except Exception as error:  # Pillow raises many types on damaged files
        raise InputError(f"{what} must be a readable image, got: {_reason(error)}; replace it") from None


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} must be a label file, got nothing there; add it or leave its image out")


def _require_mode(opened: Image.Image, modes: tuple[str, ...], what: str, rule: str, advice: str) -> None:
    if opened.format in LOSSY:
        raise InputError(f"{what} must be stored without loss, got {opened.format}; save the label map as PNG")
    if opened.mode not in modes:
        raise InputError(f"{what} must be {rule}, got mode {opened.mode}; {advice}")


def _require_map_shape(shape: tuple[int, ...], path: Path, variable: str) -> None:
    if len(shape) != 2 or min(shape) < 1:
        raise InputError(f"{path}, variable {variable}, must be a matrix of ids, got shape {shape}; replace it")
    require_size(shape[0], shape[1], f"{path}, variable {variable},")


def _to_bytes(pixels: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(pixels * np.float32(255)).astype(np.uint8)


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0].removesuffix(".") if text else type(error).__name__
