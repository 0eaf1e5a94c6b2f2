"""Images in: every form of the same picture gives the same pixels, and bad ones one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import certiseg as cs
from certiseg.images import read_image
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
    with pytest.raises(cs.InputError, match=r"holes\.png: must have no transparent pixels"):
        read_image(tmp_path / "holes.png")


def test_animations_are_refused_as_files_and_as_pil_images(tmp_path: Path) -> None:
    path = tmp_path / "moving.gif"
    Image.fromarray(BYTES).save(path, save_all=True, append_images=[Image.new("RGB", (5, 7), (255, 0, 0))])
    with pytest.raises(cs.InputError, match=r"moving\.gif: must be a single image, got 2 frames"):
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
        (BYTES[..., :1], r"image must have the shape \(H, W, 3\)"),
        (BYTES[..., [0, 1, 2, 2]], r"image must have the shape \(H, W, 3\)"),
        (BYTES[..., 0], r"image must have the shape \(H, W, 3\)"),
        (BYTES.transpose(2, 0, 1), r"image must have the shape \(H, W, 3\)"),
        (BYTES[None], r"image must have the shape \(H, W, 3\)"),
        (np.zeros((0, 4, 3)), "image must have at least one pixel"),
        (BYTES.astype(np.int32), "image must be uint8 or float"),
        (BYTES > 3, "image must be uint8 or float"),
        (BYTES.astype(np.complex64), "image must be uint8 or float"),
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
        with pytest.raises(cs.InputError, match=f"{path.name}: must be a readable image") as caught:
            read_image(path)
        assert "\n" not in str(caught.value)


def test_more_than_eight_bits_are_refused_not_cut(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(cs.InputError, match="must have 8 bits per channel"):
        read_image(tmp_path / "deep.png")
    with pytest.raises(cs.InputError, match="must have 8 bits per channel"):
        read_image(Image.new("F", (4, 4)))


def test_absurd_sizes_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(BYTES).save(tmp_path / "a.png")
    monkeypatch.setattr("certiseg.images.MAX_PIXELS", 34)
    with pytest.raises(cs.InputError, match=r"a\.png: must have at most 34 pixels"):
        read_image(tmp_path / "a.png")
