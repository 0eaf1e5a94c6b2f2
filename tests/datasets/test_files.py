"""A label file is never trusted: what its values mean depends on its mode, and most modes are refused."""

import struct
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from certiseg import images
from certiseg.datasets.camvid import colours
from certiseg.datasets.coding import as_ids, read_mat
from certiseg.images import read_ids, read_pixels

IDS = np.array([[0, 1, 7], [255, 3, 9]], np.uint8)


def test_pixels_are_those_of_the_file(save) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    pixels[0, :, 0] = np.arange(16) * 17
    path = save("a.png", pixels)
    np.testing.assert_array_equal(read_pixels(path), pixels)
    np.testing.assert_array_equal(read_pixels(path.read_bytes(), "here"), pixels)
    every = np.arange(256, dtype=np.uint8).repeat(3).reshape(16, 16, 3)
    np.testing.assert_array_equal(read_pixels(save("b.png", every)), every)


def test_palette_grey_16_bits_and_bits_are_ids(tmp_path: Path) -> None:
    palette = Image.fromarray(IDS)
    palette.putpalette([10, 20, 30] * 256)
    palette.save(tmp_path / "p.png")
    Image.fromarray(IDS).save(tmp_path / "l.png")
    Image.fromarray(IDS.astype(np.uint16)).save(tmp_path / "deep.png")
    for name in ("p.png", "l.png", "deep.png"):
        np.testing.assert_array_equal(read_ids(tmp_path / name), IDS)
    Image.fromarray(IDS > 3).save(tmp_path / "one.png")
    np.testing.assert_array_equal(read_ids(tmp_path / "one.png"), IDS > 3)


def test_values_above_255_do_not_wrap(save) -> None:
    assert read_ids(save("deep.png", np.array([[256, 511]], np.uint16))).tolist() == [[256, 511]]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
def test_colours_where_ids_are_expected(tmp_path: Path, refuse, mode: str) -> None:
    Image.new(mode, (4, 4)).save(tmp_path / "c.png")
    refuse(lambda: read_ids(tmp_path / "c.png"), tmp_path / "c.png", f"one-channel label map, got mode {mode}")


def test_ids_where_colours_are_expected(save, refuse) -> None:
    path = save("l.png", IDS)
    refuse(lambda: colours()(path), path, "RGB colour-coded label map, got mode L")


def test_lossy_label_maps(save, refuse) -> None:
    path = save("l.jpg", IDS)
    refuse(lambda: read_ids(path), path, "must be stored without loss, got JPEG")


def test_missing_damaged_and_cut_files(tmp_path: Path, save, refuse) -> None:
    good = save("good.png", np.random.default_rng(0).integers(0, 255, (30, 30)).astype(np.uint8))
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:200])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "empty.png").write_bytes(b"")
    for path in (tmp_path / name for name in ("cut.png", "text.png", "empty.png", "none.png")):
        refuse(partial(read_ids, path), path)
        refuse(partial(read_pixels, path), path)


def test_a_huge_picture_is_refused_before_it_is_decoded(tmp_path: Path, refuse) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    path = tmp_path / "huge.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)))
    refuse(lambda: read_ids(path), path)
    refuse(lambda: read_pixels(path), path)


def test_size_limit_is_that_of_images(save, refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images.values, "MAX_PIXELS", 5)
    path = save("l.png", IDS)
    refuse(lambda: read_ids(path), path, "at most 5 pixels, got 3x2")
    savemat(path.with_suffix(".mat"), {"S": IDS})
    refuse(lambda: read_mat(path.with_suffix(".mat"), variable="S"), "at most 5 pixels, got 3x2")


def test_animation(tmp_path: Path, refuse) -> None:
    frames = [Image.fromarray(np.full((4, 4), value, np.uint8)) for value in (1, 2)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    refuse(lambda: read_ids(tmp_path / "a.png"), "must be a single image, got 2 frames")


def test_messages_about_bytes_name_the_row(save, refuse) -> None:
    refuse(lambda: read_pixels(b"none", "table, row 3, image"), "table, row 3, image must be a readable image")
    clear = save("clear.png", np.zeros((2, 2, 4), np.uint8)).read_bytes()
    with pytest.raises(images.InputError, match="table, row 3, image must have no transparent pixels"):
        read_pixels(clear, "table, row 3, image")


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float64])
def test_mat_files(tmp_path: Path, compress: bool, dtype: type) -> None:
    path = tmp_path / "a.mat"
    savemat(path, {"S": IDS.astype(dtype), "names": np.array(["x", "y"], object)}, do_compression=compress)
    np.testing.assert_array_equal(read_mat(path, variable="S"), IDS)


def test_bad_mat_files(tmp_path: Path, refuse) -> None:
    path = tmp_path / "a.mat"
    refuse(lambda: read_mat(path, variable="S"), path, "which is not there")
    for data in (b"", b"no mat file" * 40):
        path.write_bytes(data)
        refuse(lambda: read_mat(path, variable="S"), path, "must be a readable MATLAB file")
    savemat(path, {"LabelMap": IDS, "other": IDS})
    refuse(lambda: read_mat(path, variable="S"), path, "must hold the variable S, got LabelMap, other")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refuse(lambda: read_mat(path, variable="LabelMap"), path)
    for value in (np.zeros((2, 2, 2)), np.array(["x"], object), np.zeros((0, 3)), "text", {"a": 1}):
        savemat(path, {"S": value})
        refuse(lambda: read_mat(path, variable="S"), path, "must be a matrix of ids")
    savemat(path, {"S": IDS + 0.5})
    refuse(lambda: read_mat(path, variable="S"), path, "must hold whole numbers")
    header = b"MATLAB 7.3 MAT-file".ljust(124, b" ") + struct.pack("<H", 0x0200) + b"IM"
    path.write_bytes(header + b"\0" * 400)
    refuse(lambda: read_mat(path, variable="S"), path, "version 7.3")


def test_matrices_of_ids(refuse) -> None:
    assert as_ids(np.array([[True, False]]), "here").tolist() == [[1, 0]]
    refuse(lambda: as_ids(np.array([[1.0, np.nan]]), "here"), "here must hold whole numbers")
    refuse(lambda: as_ids(None, "here"), "here must be a matrix")
