"""Panoptic data sets in COCO's format (Kirillov et al. 2019): a JSON file, and PNGs whose colours number segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certiseg.datasets.base import Dataset, Sample, checked, matching_preset, number_instances
from certiseg.datasets.coding import Ids
from certiseg.datasets.layout import choose_split, contents, read_object, require_inside
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.images import IdMap, decode, read_stored, require_mode

PREFIX = "panoptic_"


class Segment(NamedTuple):
    """What the JSON says about a segment of an image."""

    label: int
    """Train id."""
    marked: bool
    """Whether it is one object: of a class of things, and no crowd."""


@dataclass(frozen=True)
class Panoptic:
    """An image with its segments; the PNG holds their ids as red + 256 green + 65536 blue, 0 = void."""

    name: str
    image: Path
    segmentation: Path
    segments: Mapping[int, Segment]

    def read(self) -> Sample:
        image, ids, what = read_stored(self.image), read_segments(self.segmentation), str(self.segmentation)
        table = {number: segment.label for number, segment in self.segments.items()} | {0: VOID}
        label = Ids(table, "the segments of its annotation, or 0 for void").decode(ids, what)
        marked = [number for number, segment in self.segments.items() if segment.marked]
        return checked(
            Sample(self.name, image, label, number_instances(np.where(np.isin(ids, marked), ids, 0), 1, what)), what
        )


def read_segments(path: Path) -> IdMap:
    """The segment ids (H, W) of a panoptic PNG."""
    opened = decode(path, kind="label")
    require_mode(opened, ("RGB",), str(path), "an RGB map of segments", "use the published PNG")
    ids: IdMap = np.array(opened).astype(np.int32) @ np.array([1, 256, 65536], np.int32)
    return ids


def open_coco_panoptic(root: Path, split: str | None) -> Dataset:
    """One split: `annotations/panoptic_SPLIT.json`, the PNGs in a folder of the same name, the images in `SPLIT/`."""
    found = {path.stem.removeprefix(PREFIX): path for place in (root, root / "annotations") for path in _lists(place)}
    if not found:
        raise InputError(f"{root} must hold annotations/{PREFIX}val2017.json, got {contents(root)}; check the path")
    split = choose_split(split, found, next((name for name in found if name.startswith("val")), min(found)))
    listed = found[split]
    labels = _folder(listed.with_suffix(""), root / listed.stem)
    images = _folder(root / split, root / "images" / split, root / "images")
    classes, entries = _parse(read_object(listed), listed, images, labels)
    if not any(entry.segmentation.is_file() for entry in entries):
        raise InputError(f"{labels} must hold the PNGs of {listed.name}, got {contents(labels)}; unpack them there")
    return Dataset("coco_panoptic", entries, classes=classes, split=split, hierarchy=matching_preset(classes))


def _lists(place: Path) -> list[Path]:
    return sorted(place.glob(f"{PREFIX}*.json")) if place.is_dir() else []


def _folder(*places: Path) -> Path:
    """The first of these that is there."""
    for place in places:
        if place.is_dir():
            return place
    raise InputError(f"{places[0]} must be a folder, got nothing there; unpack the data set")


def _parse(content: dict[str, Any], path: Path, images: Path, labels: Path) -> tuple[tuple[str, ...], list[Panoptic]]:
    """The classes in the order of their ids, and every image in the order of its name."""
    try:
        categories = sorted(content["categories"], key=lambda category: int(category["id"]))
        classes = tuple(str(category["name"]) for category in categories)
        labels_of = {category["id"]: label for label, category in enumerate(categories)}
        things = {category["id"] for category in categories if category["isthing"]}
        files = {image["id"]: require_inside(image["file_name"], str(path)) for image in content["images"]}
        entries = []
        for each in content["annotations"]:
            file, png = files[each["image_id"]], require_inside(each["file_name"], str(path))
            segments = {
                int(s["id"]): Segment(
                    labels_of[s["category_id"]], s["category_id"] in things and not s.get("iscrowd", 0)
                )
                for s in each["segments_info"]
            }
            name = Path(file).with_suffix("").as_posix()
            entries.append(Panoptic(name, images / file, labels / png, segments))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{path} must be COCO panoptic JSON with images, annotations and categories, got: {said}; use the "
            "published file"
        ) from None
    if not entries or len(set(classes)) < len(classes):
        odd = "no annotation" if not entries else "two categories of one name"
        raise InputError(f"{path} must annotate images with categories of different names, got {odd}; replace it")
    return classes, sorted(entries, key=lambda entry: entry.name)
