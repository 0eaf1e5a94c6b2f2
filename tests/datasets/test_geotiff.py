"""Rasters in tiles: every pixel once, bands as chosen, no data as void, labels on the same grid or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from certiseg.datasets import open_dataset
from certiseg.errors import InputError

rasterio = pytest.importorskip("rasterio", reason="needs certiseg[geo]")


def write(path: Path, array: NDArray[Any], *, corner: float = 500_000.0, **options: Any) -> Path:
    """Bands first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    grid = {"crs": "EPSG:32632", "transform": rasterio.transform.from_origin(corner, 5_000_000.0, 10.0, 10.0)}
    count, height, width = array.shape
    shape = {"count": count, "height": height, "width": width, "dtype": array.dtype}
    with rasterio.open(path, "w", driver="GTiff", **{**shape, **grid, **options}) as file:
        file.write(array)
    return path


def scene(seed: int = 0) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 10_000, (4, 50, 70)).astype(np.uint16), rng.integers(0, 3, (1, 50, 70)).astype(np.uint8)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    image, label = scene()
    write(tmp_path / "images/a.tif", image)
    write(tmp_path / "labels/a.tif", label)
    (tmp_path / "classes.txt").write_text("water\nwood\nfield\n")
    return tmp_path


def test_tiles_cover_every_pixel_once(home: Path) -> None:
    data = open_dataset("geotiff:32", home)
    assert data.name == "geotiff:32"
    assert data.names == tuple(f"a/{row:06d}_{column:06d}" for row in (0, 25) for column in (0, 23, 46))
    image, label = scene()
    again, truth = np.zeros((50, 70, 4), np.uint16), np.full((50, 70), 9, np.uint8)
    for sample in data:
        row, column = (int(part) for part in sample.name.split("/")[1].split("_"))
        place = np.s_[row : row + sample.image.shape[0], column : column + sample.image.shape[1]]
        assert (truth[place] == 9).all()
        again[place], truth[place] = sample.image, sample.label
    np.testing.assert_array_equal(again, np.moveaxis(image, 0, -1))
    np.testing.assert_array_equal(truth, label[0])
    assert len(open_dataset("geotiff", home)) == 1
    assert open_dataset("geotiff", home, classes=("x",)).classes == ("water", "wood", "field")


def test_bands_are_taken_in_the_order_that_is_asked_for(home: Path) -> None:
    (sample,) = open_dataset("geotiff:128:3,1", home)
    np.testing.assert_array_equal(sample.image, np.moveaxis(scene()[0][[2, 0]], 0, -1))
    with pytest.raises(InputError, match="must have the bands that were chosen, got 4 and the choice of 5"):
        open_dataset("geotiff:128:1,5", home)


def test_transparency_is_no_band_but_means_no_data(home: Path) -> None:
    image = np.full((4, 50, 70), 200, np.uint8)
    image[3, :, :10] = 0
    write(home / "images/a.tif", image, photometric="RGB", alpha="YES")
    (sample,) = open_dataset("geotiff", home)
    assert sample.image.shape == (50, 70, 3)
    assert sample.label is not None
    assert (sample.label[:, :10] == 255).all()
    assert (sample.label[:, 10:] != 255).all()


@pytest.mark.parametrize("nodata", [-9999.0, np.nan])
def test_no_data_is_void_and_stays_inside_the_range_of_the_band(home: Path, nodata: float) -> None:
    image = scene()[0].astype(np.float32)
    image[1, 5, 7] = nodata
    image[:, 20:] = nodata
    write(home / "images/a.tif", image, nodata=nodata)
    write(home / "labels/a.tif", np.where(scene()[1] == 2, 0, scene()[1] + 1).astype(np.int16), nodata=0)
    first, *rest = open_dataset("geotiff:25", home).subset([0, 1, 2])
    assert first.label is not None
    known, truth = first.label != 255, scene()[1][0, :25, :23]
    np.testing.assert_array_equal(known[:20], (truth[:20] != 2) & (np.indices((20, 23)) != [[[5]], [[7]]]).any(axis=0))
    np.testing.assert_array_equal(first.label[:20][known[:20]], truth[:20][known[:20]] + 1)
    assert not known[20:].any()
    valid = np.delete(image[1, :20, :23].ravel(), 5 * 23 + 7)
    assert first.image[5, 7, 1] == first.image[24, 0, 1] == valid.min()
    assert np.isfinite(first.image).all()
    assert len(rest) == 2
    with pytest.raises(InputError, match="tile a/000025_000000 must hold data, got none"):
        open_dataset("geotiff:25", home)[3]


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        (scene()[1], {"corner": 500_005.0}, "70x50 pixels of 10 by -10 from 500000, 5000000 .EPSG:32632., got 70x50"),
        (scene()[1], {"crs": "EPSG:32633"}, "must lie on the grid of its image"),
        (scene()[1][:, :40], {}, "must lie on the grid of its image.*got 70x40"),
        (scene()[0][:2], {}, "must have one band of class ids, got 2"),
    ],
)
def test_labels_on_another_grid_are_refused_when_opened(home: Path, array, options, words: str) -> None:
    write(home / "labels/a.tif", array, **options)
    with pytest.raises(InputError, match=words):
        open_dataset("geotiff", home)


def test_what_else_cannot_be(home: Path, refuse, monkeypatch) -> None:
    for text in ("geotiff:8", "geotiff:x", "geotiff:512:0", "geotiff:512:red", "geotiff:512:1:2", "geotiff:-5"):
        refuse(lambda text=text: open_dataset(text, home), "dataset must be geotiff[:TILE[:BAND,BAND,...]]", repr(text))
    refuse(lambda: open_dataset("camvid:512", home), "dataset must be one of", "got 'camvid:512'")
    write(home / "labels/a.tif", np.full((1, 50, 70), 7, np.uint8))
    refuse(lambda: open_dataset("geotiff", home)[0], "must hold ids 0 to 2 or 255 for void, got 7")
    write(home / "labels/a.tif", np.full((1, 50, 70), 0.5, np.float32))
    refuse(lambda: open_dataset("geotiff", home)[0], "must hold whole numbers, got fractions")
    (home / "labels/a.tif").unlink()
    refuse(lambda: open_dataset("geotiff", home), "the label raster of", "must be a file")
    (home / "labels/a.tif").write_bytes(b"II*\0 and nothing else")
    refuse(lambda: open_dataset("geotiff", home), home / "labels/a.tif", "must be a readable GeoTIFF, got: ")
    band = "<VRTRasterBand dataType='Byte' band='1'/>"
    vrt = f"<VRTDataset rasterXSize='70' rasterYSize='50'>{band}</VRTDataset>".encode()
    (home / "labels/a.tif").write_bytes(vrt)
    refuse(lambda: open_dataset("geotiff", home), "must be a readable GeoTIFF, got: ")
    (home / "images/a.tif").unlink()
    refuse(lambda: open_dataset("geotiff", home), "must hold GeoTIFF files, got none")
    monkeypatch.setitem(__import__("sys").modules, "rasterio", None)
    refuse(
        lambda: open_dataset("geotiff", home), "must have the package rasterio, got none; pip install 'certiseg[geo]'"
    )


def test_a_palette_is_refused_as_image(home: Path, refuse) -> None:
    path = write(home / "images/a.tif", scene()[1], photometric="palette")
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {0: (255, 0, 0, 255), 1: (0, 0, 255, 255)})
    refuse(lambda: open_dataset("geotiff", home), "must hold colours or measured values, got a palette")
