"""Regions that people bring: masks, polygons and named shapes, and objects as PNG ids, COCO JSON or Cityscapes ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from certiseg.archive import parse_json
from certiseg.datasets.cityscapes import LEAST_INSTANCE
from certiseg.datasets.coding import published_ids
from certiseg.datasets.run_lengths import decode_runs
from certiseg.errors import InputError
from certiseg.hierarchy import VOID, Hierarchy, load_hierarchy
from certiseg.images import read_ids, read_pixels, require_file
from certiseg.measures.questions import MARGIN, MOST_OBJECTS, Question, free, overlap, share
from certiseg.measures.region import checked_mask

Size = tuple[int, int]
MOST_BYTES = 64 << 20
SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "image": ((0, 0), (1, 0), (1, 1), (0, 1)),
    "lane": ((0.3, 1), (0.47, 0.6), (0.53, 0.6), (0.7, 1)),
}
"""Named shapes, corners x, y as parts of width and height. lane: what a camera in the middle of a car sees ahead."""


@dataclass(frozen=True, eq=False)
class Instance:
    """An object that somebody has marked in an image."""

    name: str
    label: str
    mask: NDArray[np.bool_]

    def questions(self, *, margin: int = MARGIN) -> list[Question]:
        """Share and overlap, as of the objects that are found in the candidate map."""
        asked = self.mask, self.label
        return [share(*asked, name=self.name), overlap(*asked, margin=margin, name=self.name)]


def split_label(text: str, option: str) -> tuple[str, list[str]]:
    """FILE:LABEL or FILE:LABEL,LABEL as what the file and the labels are called."""
    source, colon, labels = text.rpartition(":")
    names = [name.strip() for name in labels.split(",") if name.strip()]
    if not colon or not source or not names:
        raise InputError(f"{option} must be FILE:LABEL, for example lane.png:human, got {text!r}")
    return source, names


def area_question(text: str, size: Size, option: str = "--area") -> Question:
    """How free of a label an area stays; text: FILE:LABEL, the file a mask, a polygon in JSON or a named shape."""
    source, labels = split_label(text, option)
    name = source if source in SHAPES else Path(source).stem
    return free(read_area(source, size), labels, name=f"the area {name}")


def read_area(source: str, size: Size) -> NDArray[np.bool_]:
    """The mask (H, W) of an area: a named shape, a polygon [[x, y], ...] in JSON, or a picture of two colours."""
    height, width = size
    if source in SHAPES:
        return polygon_mask([[(x * width, y * height) for x, y in SHAPES[source]]], size, source)
    require_file(source, kind=f"area ({', '.join(SHAPES)}, or a file)")
    if Path(source).suffix.lower() == ".json":
        return polygon_mask([_corners(_read_json(source), source)], size, source)
    pixels = read_pixels(source)
    colours = np.unique(pixels.reshape(-1, 3) @ np.array([1, 256, 65536]))
    if len(colours) > 2 or (len(colours) == 2 and colours[0] != 0):
        rule = "black and one other colour" if len(colours) == 2 else f"at most two colours, got {len(colours)}"
        raise InputError(f"{source}: a mask must have {rule}; black is outside")
    return checked_mask(pixels.any(axis=-1), size, f"{source}: the mask")


def read_instances(text: str, size: Size, hierarchy: Hierarchy, *, image: str = "") -> list[Instance]:
    """The objects of a file: COCO JSON, Cityscapes instanceIds, or FILE:LABEL with an id for each object, 0 for none.

    image: the name of the picture, for a file that holds objects of several.
    """
    if text.lower().endswith(".json"):
        found = list(_from_coco(_read_json(text), size, hierarchy, text, image))
    elif text.lower().endswith(".png"):
        found = list(_from_cityscapes(read_ids(text), size, hierarchy, text))
    else:
        source, labels = split_label(text, "--instances")
        found = list(_from_ids(read_ids(source), size, labels[0], source))
    if not 1 <= len(found) <= MOST_OBJECTS:
        raise InputError(f"{text}: objects must be 1..{MOST_OBJECTS:,}, got {len(found):,}")
    return found


def _from_ids(ids: NDArray[Any], size: Size, label: str, source: str) -> Iterator[Instance]:
    _require_size(ids, size, source)
    for number in _few(np.unique(ids[ids > 0]).tolist(), source):
        yield Instance(f"{label} {number}", label, ids == number)


def _from_cityscapes(ids: NDArray[Any], size: Size, hierarchy: Hierarchy, source: str) -> Iterator[Instance]:
    _require_size(ids, size, source)
    classes, classes_of = load_hierarchy("cityscapes").classes, published_ids("cityscapes")
    marked = _few(np.unique(ids[ids >= LEAST_INSTANCE]).tolist(), source)
    if not marked:
        raise InputError(f"{source}: must be a map of Cityscapes instanceIds, got no id above 1000; or say FILE:LABEL")
    for number in marked:
        of_class = classes_of.get(number // LEAST_INSTANCE, VOID)
        if of_class != VOID:
            label = _known(classes[of_class], hierarchy, source)
            yield Instance(f"{label} {number % LEAST_INSTANCE + 1}", label, ids == number)


def _from_coco(content: Any, size: Size, hierarchy: Hierarchy, source: str, image: str) -> Iterator[Instance]:
    try:
        names = {category["id"]: category["name"] for category in content["categories"]}
        pictures = content["images"]
        chosen = [each["id"] for each in pictures if len(pictures) == 1 or Path(each["file_name"]).stem == image]
        marked = [each for each in content["annotations"] if each["image_id"] in chosen]
        numbers: dict[str, int] = {}
        for each in _few(marked, source):
            label = _known(str(names[each["category_id"]]), hierarchy, source)
            numbers[label] = numbers.get(label, 0) + 1
            mask = _coco_mask(each["segmentation"], size, source)
            yield Instance(f"{label} {numbers[label]}", label, checked_mask(mask, size, f"{source}: an object"))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{source}: must be COCO JSON with images, annotations and categories, got: {error}") from None


def _coco_mask(segmentation: Any, size: Size, source: str) -> NDArray[np.bool_]:
    """Polygons [[x, y, x, y, ...], ...], or run lengths down the columns, as numbers or as COCO's text."""
    if isinstance(segmentation, list):
        return polygon_mask([list(zip(flat[::2], flat[1::2], strict=True)) for flat in segmentation], size, source)
    return decode_runs(segmentation, size, source)


def polygon_mask(polygons: Iterable[Sequence[tuple[float, float]]], size: Size, source: str) -> NDArray[np.bool_]:
    """The pixels of the image inside or on the edge of polygons of corners x, y."""
    picture = Image.new("1", (size[1], size[0]))
    for corners in polygons:
        if len(corners) < 3:
            raise InputError(f"{source}: a polygon must have at least three corners, got {len(corners)}")
        ImageDraw.Draw(picture).polygon([(float(x), float(y)) for x, y in corners], fill=1)
    return checked_mask(np.array(picture), size, f"{source}: the polygon")


def _corners(content: Any, source: str) -> list[tuple[float, float]]:
    corners: Any = content.get("polygon") if isinstance(content, Mapping) else content
    try:
        found = [(float(x), float(y)) for x, y in corners]
    except (TypeError, ValueError):
        raise InputError(f"{source}: must hold the corners of a polygon, [[x, y], ...], got others") from None
    if not np.isfinite(found).all():
        raise InputError(f"{source}: corners must be finite numbers, got others")
    return found


def _read_json(source: str) -> Any:
    require_file(source, kind="region")
    if Path(source).stat().st_size > MOST_BYTES:
        raise InputError(f"{source}: must be at most 64 MiB, got more; keep the objects of one image")
    try:
        return parse_json(Path(source).read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: must be readable JSON, got: {error}") from None


def _known(label: str, hierarchy: Hierarchy, source: str) -> str:
    """A label as the hierarchy spells it."""
    spelt = {name.casefold(): name for name in hierarchy.vertices}
    if label.casefold() not in spelt:
        raise InputError(f"{source}: objects must be of a class or vertex of {hierarchy.name}, got {label!r}")
    return spelt[label.casefold()]


def _few(found: list[Any], source: str) -> list[Any]:
    if len(found) > MOST_OBJECTS:
        raise InputError(f"{source}: objects must be at most {MOST_OBJECTS:,}, got {len(found):,}")
    return found


def _require_size(ids: NDArray[Any], size: Size, source: str) -> None:
    if ids.shape != size:
        raise InputError(f"{source}: the map must have the size of the image, {size}, got {ids.shape}")
