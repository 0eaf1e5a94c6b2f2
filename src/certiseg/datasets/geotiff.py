"""`geotiff`: large rasters with label rasters on the same grid, cut into tiles that rasterio reads one at a time."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.datasets.base import Dataset, Sample, checked, matching_preset
from certiseg.datasets.coding import Ids, as_ids, plain_ids
from certiseg.datasets.layout import by_stem, find_classes, find_split, require_folder
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.images import reason, require_file

TILE = 512
_LEAST, _MOST = 16, 8192
ENDINGS = (".tif", ".tiff")


@dataclass(frozen=True)
class Tiling:
    """How rasters are cut: tiles of at most `tile` pixels a side, of some bands (from 1) or of all but transparency."""

    tile: int = TILE
    bands: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"geotiff:{self.tile}" + (f":{','.join(map(str, self.bands))}" if self.bands else "")


def parse_tiling(text: str) -> Tiling:
    """What stands after the name: TILE or TILE:BAND,BAND,... or nothing."""
    tile, _, bands = text.partition(":")
    try:
        found = Tiling(int(tile) if tile else TILE, tuple(int(band) for band in bands.split(",")) if bands else ())
    except ValueError:
        found = Tiling(0)
    if not _LEAST <= found.tile <= _MOST or min(found.bands, default=1) < 1:
        raise InputError(
            f"dataset must be geotiff[:TILE[:BAND,BAND,...]] with tiles of {_LEAST} to {_MOST} pixels and bands from "
            f"1, got {'geotiff:' + text!r}; for example geotiff:512:4,3,2"
        )
    return found


@dataclass(frozen=True)
class Tile:
    """A window of a raster. Where a band has no data the label is void and the band has its least value in the tile."""

    name: str
    image: Path
    label: Path
    rows: tuple[int, int]
    columns: tuple[int, int]
    bands: tuple[int, ...]
    coding: Ids

    def read(self) -> Sample:
        from rasterio.windows import Window

        window = Window.from_slices(self.rows, self.columns)
        with opened(self.image) as raster:
            found = raster.read(list(self.bands), window=window, masked=True)
        with opened(self.label) as raster:
            stored = raster.read(1, window=window, masked=True)
        label = self._label(stored)
        values, missing = np.array(found.data), np.ma.getmaskarray(found)
        void = missing.any(axis=0)
        if void.all():
            raise InputError(f"{self.image}, tile {self.name} must hold data, got none; it lies outside the scene")
        for band, gone in zip(values, missing, strict=True):
            band[gone] = band[~gone].min()
        label[void] = VOID
        return checked(Sample(self.name, np.ascontiguousarray(np.moveaxis(values, 0, -1)), label), str(self.label))

    def _label(self, stored: Any) -> NDArray[np.uint8]:
        what, missing = f"{self.label}, tile {self.name}", np.ma.getmaskarray(stored)
        ids = np.array(stored.data)
        if missing.any():  # before the type is checked: no data may be NaN
            ids = np.where(missing, VOID, ids.astype(np.float64))
        return self.coding.decode(as_ids(ids, what), what)


def open_geotiff(root: Path, split: str | None, classes: Sequence[str] | None, tiling: Tiling) -> Dataset:
    """The tiles of all rasters `ROOT/images/NAME.tif` (or `ROOT/SPLIT/images`) with `labels/NAME.tif` on the same grid.

    A tile is named NAME/ROW_COLUMN by its first pixel. Class names stand in `classes.txt`.
    """
    split, home = find_split(root, split)
    classes = find_classes(home, classes)
    images, labels = require_folder(home, "images"), require_folder(home, "labels")
    _require_library()
    rasters, known = _rasters(images), _rasters(labels)
    if not rasters:
        raise InputError(f"{images} must hold GeoTIFF files, got none; check the path")
    coding, entries = plain_ids(len(classes)), list[Tile]()
    for name, path in rasters.items():
        entries += _tiles(name, path, known.get(name, labels / path.name), tiling, coding)
    return Dataset(str(tiling), entries, classes=classes, split=split, hierarchy=matching_preset(classes))


def _rasters(folder: Path) -> dict[str, Path]:
    return {name: path for name, path in by_stem(folder).items() if path.suffix.lower() in ENDINGS}


def _tiles(name: str, path: Path, label: Path, tiling: Tiling, coding: Ids) -> Iterator[Tile]:
    """The tiles of a raster, once its header and that of its labels are checked; every pixel is in one tile."""
    require_file(label, kind=f"the label raster of {path}")
    with opened(path) as image, opened(label) as truth:
        bands = _choose_bands(image, tiling.bands, path)
        if truth.count != 1:
            raise InputError(f"{label} must have one band of class ids, got {truth.count}; keep one")
        same = image.shape == truth.shape and image.crs == truth.crs
        if not same or not image.transform.almost_equals(truth.transform):
            raise InputError(
                f"{label} must lie on the grid of its image, {_grid(image)}, got {_grid(truth)}; warp it to that grid "
                "with nearest neighbour"
            )
        rows, columns = (_edges(length, tiling.tile) for length in image.shape)
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            yield Tile(f"{name}/{top:06d}_{left:06d}", path, label, (top, bottom), (left, right), bands, coding)


def _edges(length: int, tile: int) -> list[int]:
    """Where tiles begin and end: as few as possible, of nearly the same length."""
    count = -(-length // tile)
    return [place * length // count for place in range(count + 1)]


def _choose_bands(raster: Any, bands: tuple[int, ...], path: Path) -> tuple[int, ...]:
    from rasterio.enums import ColorInterp

    if ColorInterp.palette in raster.colorinterp:
        raise InputError(f"{path} must hold colours or measured values, got a palette; convert it to RGB")
    kinds = dict(enumerate(raster.colorinterp, 1))
    chosen = bands or tuple(band for band, kind in kinds.items() if kind != ColorInterp.alpha)
    if odd := [band for band in chosen if band not in kinds]:
        raise InputError(f"{path} must have the bands that were chosen, got {raster.count} and the choice of {odd[0]}")
    return chosen


def _grid(raster: Any) -> str:
    """The grid of a raster in a few words."""
    step, corner = raster.transform, raster.transform * (0, 0)
    where = f"{step.a:g} by {step.e:g} from {corner[0]:.10g}, {corner[1]:.10g}"
    return f"{raster.width}x{raster.height} pixels of {where} ({raster.crs or 'no reference system'})"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A raster, open for reading as GeoTIFF and as nothing else; what goes wrong with it is one sentence."""
    import rasterio

    require_file(path, kind="raster")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)  # tiles need no map
            with rasterio.open(path, driver="GTiff") as raster:
                yield raster
    except InputError:
        raise
    except Exception as error:  # GDAL has many
        raise InputError(f"{path} must be a readable GeoTIFF, got: {reason(error)}; replace it") from None


def _require_library() -> None:
    try:
        import rasterio  # noqa: F401
    except ImportError:
        raise InputError(
            "dataset geotiff must have the package rasterio, got none; pip install 'certiseg[geo]'"
        ) from None
