"""Images and maps of ids in: a path, bytes, a PIL image or an array becomes checked pixels, or one clear sentence."""

from __future__ import annotations

import glob
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from certiseg.errors import InputError
from certiseg.images.raster import ARRAYS, is_array, is_tiff, read_array, read_tiff
from certiseg.images.values import BYTES, MAX_PIXELS, Picture, as_values, require_size, scaled, with_channels

ImageLike: TypeAlias = str | Path | Image.Image | ArrayLike | Picture
"""What is taken as an image: a file, a PIL image, or an array (H, W, channels) of bytes, 16 bits or floats."""
IdMap: TypeAlias = NDArray[np.integer[Any]]

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", *ARRAYS)
"""Endings of the files that are taken for images in a folder."""
SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I;16N")
DEEP_MODES = ("I", "F", *SIXTEEN_BITS)
ID_MODES = ("P", "L", "1", "I", "I;16", "I;16B", "I;16L")
LOSSY = ("JPEG", "MPO", "JPEG2000", "WEBP", "AVIF")


def read_image(
    image: ImageLike, *, values: Sequence[Any] | None = None, channels: int | None = None
) -> NDArray[np.float32]:
    """The pixels of an image, (H, W, channels) float32 in [0, 1]; see `open_image`."""
    return open_image(image, values=values, channels=channels).pixels


def open_image(image: ImageLike, *, values: Sequence[Any] | None = None, channels: int | None = None) -> Picture:
    """The pixels of an image in [0, 1], and the numbers that 0 and 1 stand for.

    values: (low, high), or one such pair per channel. Without it 8 bits stand for 0..255, 16 bits for 0..65535, and
        floats must lie in [0, 1].
    channels: how many the model takes; grey that was stored as RGB may become one channel.
    Files are turned by their EXIF orientation; 8-bit grey, palette and CMYK become RGB; transparency is refused.
    """
    what = str(image) if isinstance(image, str | Path) else "image"
    if isinstance(image, Picture):
        return with_channels(image, channels, what)
    return with_channels(scaled(_stored(image), as_values(values), what), channels, what)


def _stored(image: ImageLike) -> NDArray[Any]:
    """The numbers of an image as they are stored."""
    if isinstance(image, str | Path):
        return read_stored(image)
    if isinstance(image, Image.Image):
        return _deep(image) if image.mode in SIXTEEN_BITS else _rgb(image, "image")
    try:
        array = np.asarray(image)
    except Exception:
        array = np.empty(0, object)
    if array.dtype == object:
        raise InputError(f"image must be an array, a PIL image or a path, got {type(image).__name__}; convert it")
    return array


def read_stored(
    source: str | Path | bytes, what: str = "", *, formats: tuple[str, ...] | None = None, most: int | None = None
) -> NDArray[Any]:
    """The numbers of an image file: RGB bytes, or (H, W, channels) of the type that the file has.

    formats: of Pillow, which are allowed beside arrays and the further kinds of TIFF; most: pixels, by the header.
    """
    what = what or str(source)
    if not isinstance(source, bytes):
        require_file(source, kind="image")
    if is_array(source):
        return read_array(source, what, most=most)
    if is_tiff(source) and (found := read_tiff(source, what, most=most)) is not None:
        return found
    opened = decode(source, what, kind="image", formats=formats, most=most)
    return _deep(opened) if _has_16_bits(opened) else _rgb(opened, what)


def read_pixels(source: str | Path | bytes, what: str = "") -> NDArray[np.uint8]:
    """The RGB pixels of an 8-bit image file, (H, W, 3) uint8, under the rules of `open_image`."""
    return _rgb(decode(source, what, kind="image"), what or str(source))


def find_images(given: Sequence[str]) -> list[Path]:
    """The files that are meant: files themselves, the images of folders, and those that a pattern matches."""
    found: list[Path] = []
    for text in given:
        path = Path(text)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
        else:
            inside = [path] if path.exists() or not any(sign in text for sign in "*?[") else _matching(text)
        if not inside:
            raise InputError(
                f"IMAGE must be a file, a folder or a pattern of images, got {text!r}, where there is none"
            )
        found += inside
    return found


def _matching(pattern: str) -> list[Path]:
    return sorted(path for path in map(Path, glob.glob(pattern, recursive=True)) if path.is_file())


def shown(picture: Picture, channels: Sequence[int] = ()) -> NDArray[np.uint8]:
    """(H, W, 3): how an image is shown: three channels (from 1) as red, green and blue, or a single one as grey.

    By default the first three, or the first where there are fewer.
    """
    count = picture.pixels.shape[2]
    chosen = tuple(channels) or ((1, 2, 3) if count >= 3 else (1,))
    if len(chosen) not in (1, 3) or not all(1 <= channel <= count for channel in chosen):
        raise InputError(f"channels to show must be one or three of 1..{count}, got {','.join(map(str, chosen))}")
    places = [channel - 1 for channel in (chosen if len(chosen) == 3 else chosen * 3)]
    return to_bytes(picture.pixels[..., places])


def shown_words(count: int, channels: Sequence[int] = ()) -> str:
    """What pictures of an image with so many channels show."""
    chosen = tuple(channels) or ((1, 2, 3) if count >= 3 else (1,))
    if len(chosen) == 1:
        return f"channel {chosen[0]} of {count} as grey"
    return f"channels {', '.join(map(str, chosen))} of {count} as red, green and blue"


def read_ids(source: str | Path | bytes, what: str = "") -> IdMap:
    """The ids stored in a label map (H, W): palette indices, grey values of 8 or 16 bits; colours are refused."""
    opened = decode(source, what, kind="label")
    require_mode(opened, ID_MODES, what or str(source), "a one-channel label map", "save the class ids as 8-bit PNG")
    stored = np.array(opened)
    return stored.astype(np.uint8) if stored.dtype == bool else stored


def decode(
    source: str | Path | bytes,
    what: str = "",
    *,
    kind: str,
    formats: tuple[str, ...] | None = None,
    most: int | None = None,
) -> Image.Image:
    """A decoded file of one frame with at most `most` pixels; Pillow's many errors become one sentence.

    what: the file in words, for messages (default: its path); kind: "image", which is turned by its EXIF orientation,
    or "label", which is not.
    """
    what = what or str(source)
    if not isinstance(source, bytes):
        require_file(source, kind=kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit is ours
            opened = Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=formats)
            with opened:
                require_size(opened.height, opened.width, what, most=most)
                _require_one_frame(opened, what)
                _require_whole_colours(opened, what)
                opened.load()
                return ImageOps.exif_transpose(opened) if kind == "image" else opened
    except InputError:
        raise
    except Image.DecompressionBombError:
        raise InputError(f"{what} must have at most {most or MAX_PIXELS:,} pixels, got more; make it smaller") from None
    except UnidentifiedImageError:
        rule = f"a {', '.join(formats[:-1])} or {formats[-1]} image" if formats else "a readable image"
        raise InputError(f"{what} must be {rule}, got another format; replace it") from None
    except Exception as error:  # Pillow raises many types on damaged files
        raise InputError(f"{what} must be a readable image, got: {reason(error)}; replace it") from None


def require_file(path: str | Path, *, kind: str) -> None:
    """Refuse a path that leads to no file."""
    if not Path(path).is_file():
        raise InputError(f"{kind} must be a file, got {str(path)!r}, which is not there; check the path")


def require_mode(opened: Image.Image, modes: Sequence[str], what: str, rule: str, advice: str) -> None:
    """Refuse a label map of another mode, and one whose format loses what was stored."""
    if opened.format in LOSSY:
        raise InputError(f"{what} must be stored without loss, got {opened.format}; save the label map as PNG")
    if opened.mode not in modes:
        raise InputError(f"{what} must be {rule}, got mode {opened.mode}; {advice}")


def to_bytes(pixels: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Pixels in [0, 1] as the nearest of 256 levels."""
    levels: NDArray[np.uint8] = np.rint(pixels * np.float32(255)).astype(np.uint8)
    return levels


def reason(error: Exception) -> str:
    """The first line of an error, or its type where it says nothing."""
    text = str(error).strip()
    return text.splitlines()[0].removesuffix(".") if text else type(error).__name__


def _has_16_bits(image: Image.Image) -> bool:
    """Whether one channel of 16 bits was decoded; older versions of Pillow widen that of a PNG to 32."""
    return image.mode in SIXTEEN_BITS or (image.mode == "I" and image.format == "PNG")


def _deep(image: Image.Image) -> NDArray[np.uint16]:
    return np.array(image).astype(np.uint16)[..., None]


def _rgb(image: Image.Image, what: str) -> NDArray[np.uint8]:
    _require_one_frame(image, what)
    if image.mode in DEEP_MODES:
        raise InputError(f"{what} must have 8 or 16 bits per channel, got mode {image.mode}; save it as TIFF or .npy")
    if image.has_transparency_data:
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
        if alpha.min(initial=255) < 255:
            raise InputError(f"{what} must have no transparent pixels, got some; flatten it onto a background first")
    return np.array(image.convert("RGB"))


def _require_one_frame(image: Image.Image, what: str) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # MPO: photos with an appended preview
        raise InputError(f"{what} must be a single image, got {frames} frames; keep one")


def _require_whole_colours(image: Image.Image, what: str) -> None:
    """Refuse colours of 16 bits in a PNG, of which Pillow keeps 8 without a word."""
    tiles = getattr(image, "tile", None) if image.format == "PNG" else None
    raw = tiles[0][3] if tiles else None
    if isinstance(raw, str) and raw.endswith(";16B") and image.mode not in DEEP_MODES:
        raise InputError(f"{what} must have 8 bits per channel, or one channel, as PNG, got 16-bit colours; use TIFF")


__all__ = [
    "BYTES",
    "MAX_PIXELS",
    "IdMap",
    "ImageLike",
    "Picture",
    "decode",
    "find_images",
    "open_image",
    "read_ids",
    "read_image",
    "read_pixels",
    "read_stored",
    "reason",
    "require_file",
    "require_mode",
    "require_size",
    "shown",
    "shown_words",
    "to_bytes",
]
