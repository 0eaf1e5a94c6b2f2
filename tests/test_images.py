"""Images in: every form of the same picture gives the same pixels, and bad ones one sentence."""

from __future__ import annotations

import logging
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image

import certiseg as cs
from certiseg.images import find_images, open_image, read_image
from certiseg.noise import image_key

BYTES = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
PIXELS = BYTES.astype(np.float32) / np.float32(255)


def test_every_form_of_one_picture_has_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(BYTES).save(path)
    forms = [
        BYTES,
        PIXELS,
        PIXELS.astype(np.float64),
        Image.fromarray(BYTES),
        path,
        str(path),
        torch.from_numpy(PIXELS),
    ]
    for form in forms:
        pixels = read_image(form)
        assert pixels.dtype == np.float32
        np.testing.assert_array_equal(pixels, PIXELS)
    assert len({image_key(read_image(form)) for form in forms}) == 1


def test_reading_never_hands_out_the_callers_array() -> None:
    mine = PIXELS.copy()
    read_image(mine)[:] = 0
    np.testing.assert_array_equal(mine, PIXELS)


def test_grey_palette_and_cmyk_become_rgb(tmp_path: Path) -> None:
    for mode in ("L", "P", "1", "CMYK", "YCbCr"):
        image = Image.fromarray(BYTES).convert(mode)
        expected = np.asarray(image.convert("RGB"), np.float32) / np.float32(255)
        np.testing.assert_array_equal(read_image(image), expected)
    Image.fromarray(BYTES).convert("L").save(tmp_path / "grey.png")
    assert read_image(tmp_path / "grey.png").shape == (7, 5, 3)


def test_photos_are_turned_as_their_camera_says(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise
    Image.fromarray(BYTES).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), np.rot90(PIXELS, k=-1))


def test_transparent_pixels_are_refused_and_an_opaque_alpha_is_not(tmp_path: Path) -> None:
    alpha = np.full((7, 5, 1), 255, np.uint8)
    Image.fromarray(np.concatenate([BYTES, alpha], axis=-1)).save(tmp_path / "opaque.png")
    np.testing.assert_array_equal(read_image(tmp_path / "opaque.png"), PIXELS)
    alpha[3, 2] = 254
    Image.fromarray(np.concatenate([BYTES, alpha], axis=-1)).save(tmp_path / "holes.png")
    with pytest.raises(cs.InputError, match=r"holes\.png must have no transparent pixels"):
        read_image(tmp_path / "holes.png")


def test_animations_are_refused_as_files_and_as_pil_images(tmp_path: Path) -> None:
    path = tmp_path / "moving.gif"
    Image.fromarray(BYTES).save(path, save_all=True, append_images=[Image.new("RGB", (5, 7), (255, 0, 0))])
    with pytest.raises(cs.InputError, match=r"moving\.gif must be a single image, got 2 frames"):
        read_image(path)
    with Image.open(path) as opened, pytest.raises(cs.InputError, match="must be a single image"):
        read_image(opened)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.where(np.arange(105).reshape(7, 5, 3) == 50, np.nan, PIXELS), "image must be finite"),
        (np.where(np.arange(105).reshape(7, 5, 3) == 50, np.inf, PIXELS), "image must be finite"),
        (np.full((2, 2, 3), 1e300), "image must be finite"),
        (PIXELS * 255, r"image must lie in \[0, 1\].*divide 8-bit values by 255"),
        (PIXELS - 0.1, r"image must lie in \[0, 1\]"),
        (np.full((2, 2, 3), np.nextafter(np.float32(1), np.float32(2))), r"image must lie in \[0, 1\]"),
        (BYTES[None], r"image must have the shape \(H, W, channels\)"),
        (BYTES.transpose(2, 0, 1), r"got \(3, 7, 5\), which looks like channels first; permute it"),
        (np.zeros((12, 99, 98), np.uint8), "looks like channels first; permute it"),
        (np.zeros((100, 99, 98), np.uint8), "image must have 1 to 64 channels"),
        (np.zeros((0, 4, 3)), "image must have at least one pixel"),
        (BYTES.astype(np.int32), "image must be uint8, uint16 or float"),
        (BYTES > 3, "image must be uint8, uint16 or float"),
        (BYTES.astype(np.complex64), "image must be uint8, uint16 or float"),
        (object(), "image must be an array, a PIL image or a path, got object"),
        (None, "image must be an array, a PIL image or a path"),
        ([[1, 2], [3]], "image must be"),
    ],
)
def test_bad_arrays_are_one_sentence(array: Any, words: str) -> None:
    with pytest.raises(cs.InputError, match=words) as caught:
        read_image(array)
    assert "\n" not in str(caught.value)


def test_missing_unreadable_and_cut_off_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="image must be a file"):
        read_image(tmp_path / "missing.png")
    with pytest.raises(cs.InputError, match="image must be a file"):
        read_image(tmp_path)
    text = tmp_path / "text.png"
    text.write_text("this is no picture")
    cut = tmp_path / "cut.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (60, 60, 3)).astype(np.uint8)).save(cut)
    cut.write_bytes(cut.read_bytes()[:500])
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    for path in (text, cut, empty):
        with pytest.raises(cs.InputError, match=f"{path.name} must be a readable image") as caught:
            read_image(path)
        assert "\n" not in str(caught.value)


def test_sixteen_bits_stand_for_65535_and_are_never_cut(tmp_path: Path) -> None:
    grey = np.random.default_rng(2).integers(0, 65536, (4, 6)).astype(np.uint16)
    Image.fromarray(grey).save(tmp_path / "deep.png")
    picture = open_image(tmp_path / "deep.png")
    assert picture.values == ((0.0, 65535.0),)
    np.testing.assert_array_equal(picture.pixels, grey[..., None].astype(np.float32) / np.float32(65535))
    (tmp_path / "colours.png").write_bytes(sixteen_bit_png(np.stack([grey] * 3, axis=-1)))
    with pytest.raises(cs.InputError, match=r"colours\.png must have 8 bits per channel.*got 16-bit colours; use TIFF"):
        read_image(tmp_path / "colours.png")
    with pytest.raises(cs.InputError, match="must have 8 or 16 bits per channel"):
        read_image(Image.new("F", (4, 4)))


def sixteen_bit_png(rgb: NDArray[np.uint16]) -> bytes:
    """A PNG as other programs write it; Pillow cannot."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rgb)
    header = struct.pack(">IIBBBBB", rgb.shape[1], rgb.shape[0], 16, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


TIFFS: dict[str, tuple[NDArray[Any], dict[str, Any]]] = {
    "grey16": (np.arange(24, dtype=np.uint16).reshape(4, 6), {}),
    "tiled": (np.arange(40 * 50, dtype=np.uint16).reshape(40, 50), {"tile": (16, 16), "compression": "zlib"}),
    "bytes4": (np.arange(96, dtype=np.uint8).reshape(4, 6, 4), {"photometric": "rgb", "extrasamples": [0]}),
    "bands7": (
        np.arange(1400, dtype=np.uint16).reshape(10, 20, 7),
        {"photometric": "minisblack", "planarconfig": "contig"},
    ),
    "planes": (
        np.arange(96, dtype=np.uint16).reshape(4, 4, 6),
        {"photometric": "minisblack", "planarconfig": "separate"},
    ),
}


@pytest.mark.parametrize("name", sorted(TIFFS))
def test_tiffs_of_any_bits_and_channels_are_read_as_they_are_stored(tmp_path: Path, name: str) -> None:
    stored, how = TIFFS[name]
    tifffile.imwrite(tmp_path / "a.tif", stored, **how)
    shown = np.moveaxis(stored, 0, -1) if name == "planes" else stored.reshape(*stored.shape[:2], -1)
    most = 255 if stored.dtype == np.uint8 else 65535
    picture = open_image(tmp_path / "a.tif")
    assert picture.values == ((0.0, float(most)),)
    np.testing.assert_array_equal(picture.pixels, shown.astype(np.float32) / np.float32(most))


def test_an_eight_bit_rgb_tiff_is_read_as_before(tmp_path: Path) -> None:
    Image.fromarray(BYTES).save(tmp_path / "a.tif")
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif"), PIXELS)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_read_with_the_range_that_is_stated(tmp_path: Path, suffix: str) -> None:
    array = np.random.default_rng(3).uniform(-50, 450, (5, 6, 4)).astype(np.float32)
    (np.save if suffix == ".npy" else np.savez)(tmp_path / "a", array)
    path = tmp_path / f"a{suffix}"
    with pytest.raises(cs.InputError, match=r"a\.np[yz] must lie in \[0, 1\].*--values LOW:HIGH"):
        read_image(path)
    np.testing.assert_allclose(read_image(path, values=(-50, 450)), (array + 50) / 500, atol=1e-7)
    ranges = ((-50, 450), (-100, 500), (-50, 450), (-50, 900))
    found = open_image(path, values=ranges)
    assert found.values == ranges
    np.testing.assert_allclose(found.pixels[..., 3], (array[..., 3] + 50) / 950, atol=1e-7)
    with pytest.raises(cs.InputError, match=r"its stated range 0:450, got -.* in channel 1; widen"):
        read_image(path, values=(0, 450))
    with pytest.raises(cs.InputError, match=r"one for each of the 4 channels of .*, got 2"):
        read_image(path, values=ranges[:2])
    with pytest.raises(cs.InputError, match="must have 3 channels as the model takes, got 4"):
        read_image(path, values=(-50, 450), channels=3)
    array[1, 2, 3] = np.nan
    with pytest.raises(cs.InputError, match="image must be finite"):
        read_image(array, values=(-50, 450))


def test_grey_stored_as_rgb_becomes_one_channel_where_a_model_takes_one() -> None:
    grey = np.repeat(BYTES[..., :1], 3, axis=-1)
    np.testing.assert_array_equal(read_image(grey, channels=1), PIXELS[..., :1])
    with pytest.raises(cs.InputError, match="image must have 1 channel as the model takes, got 3"):
        read_image(BYTES, channels=1)


def test_no_header_takes_memory_and_no_stack_or_palette_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a command: remarks of a library would go to stderr
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (200000, 250000, 1), }".ljust(117) + "\n"
    (tmp_path / "huge.npy").write_bytes(header + text.encode() + bytes(64))
    tifffile.imwrite(tmp_path / "stack.tif", np.zeros((5, 20, 20), np.uint16), photometric="minisblack")
    Image.fromarray(BYTES).quantize(8).save(tmp_path / "palette.tif")
    (tmp_path / "cut.tif").write_bytes(b"II*\0" + bytes(20))
    _write_huge_tiff(tmp_path / "huge.tif")
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("a.npy", header + text.encode())
    for name, words in {
        "huge.npy": "must have at most 100,000,000 pixels",
        "huge.tif": "must have at most 100,000,000 pixels",
        "huge.npz": "must have at most 100,000,000 pixels",
        "stack.tif": "must be a single image, got 1 of shape",
        "palette.tif": "got a palette TIFF; convert it to RGB",
        "cut.tif": "must be a readable TIFF",
    }.items():
        with pytest.raises(cs.InputError, match=f"{name} {words}|{name} must.*{words}") as caught:
            read_image(tmp_path / name)
        assert "\n" not in str(caught.value)
    assert capsys.readouterr().err == ""


def _write_huge_tiff(path: Path) -> None:
    """A small file whose header speaks of 180 GB."""
    tifffile.imwrite(path, np.zeros((20, 20), np.uint16))
    with tifffile.TiffFile(path, mode="r+b") as file:
        page: Any = file.pages[0]
        for name in ("ImageWidth", "ImageLength"):
            page.tags[name].overwrite(300_000)


def test_folders_and_patterns_are_images(tmp_path: Path) -> None:
    for name in ("b.png", "a.tif", ".hidden.png"):
        Image.fromarray(BYTES).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    assert [path.name for path in find_images([str(tmp_path)])] == ["a.tif", "b.png"]
    assert [path.name for path in find_images([str(tmp_path / "*.png"), str(tmp_path / "a.tif")])] == ["b.png", "a.tif"]
    with pytest.raises(cs.InputError, match=r"IMAGE must be a file, a folder or a pattern of images, got '.*\*\.jpg'"):
        find_images([str(tmp_path / "*.jpg")])


def test_absurd_sizes_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(BYTES).save(tmp_path / "a.png")
    monkeypatch.setattr("certiseg.images.values.MAX_PIXELS", 34)
    with pytest.raises(cs.InputError, match=r"a\.png must have at most 34 pixels"):
        read_image(tmp_path / "a.png")
