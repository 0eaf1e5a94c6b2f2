"""PASCAL-Context as one JSON file: `trainval_merged.json` of PASCAL in Detail, masks of segments as run lengths.

Its `images` have image_id, file_name and phase (train or val), its `annos_segmentation` image_id, category_id and a
mask. Category ids are those of the original label maps. Parts, boundaries, occlusion and key points are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.datasets.base import Sample, checked, number_instances
from certiseg.datasets.coding import Ids
from certiseg.datasets.layout import choose_split, read_object, require_inside
from certiseg.datasets.run_lengths import decode_runs
from certiseg.errors import InputError
from certiseg.images import read_stored

FILE = "trainval_merged.json"
PHASES = {"train": ("train",), "val": ("val",), "trainval": ("train", "val")}


@dataclass(frozen=True)
class Segment:
    """A mask with the id of its class."""

    category: int
    runs: Mapping[str, Any]
    marked: bool
    """Whether it is one object."""


@dataclass(frozen=True)
class Detailed:
    """An image with its masks; where they overlap, the later one counts, as in the published code."""

    name: str
    image: Path
    coding: Ids
    source: str
    """The JSON file."""
    segments: list[Segment] = field(default_factory=list)

    def read(self) -> Sample:
        image, what = read_stored(self.image), f"{self.source}, {self.name}"
        size = image.shape[0], image.shape[1]
        ids, marked = np.zeros(size, np.int32), np.zeros(size, np.int32)
        for number, segment in enumerate(self.segments, 1):
            try:
                mask = decode_runs(segment.runs, size, what)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{what}: a mask must be run lengths of COCO, got: {error}; replace it") from None
            ids[mask], marked[mask] = segment.category, number if segment.marked else 0
        return checked(Sample(self.name, image, self.coding.decode(ids, what), number_instances(marked, 1, what)), what)


def list_detailed(path: Path, images: Path, split: str | None, coding: Ids) -> tuple[str, list[Detailed]]:
    """The split, by default val, and its images in name order."""
    content, what = read_object(path), str(path)
    try:
        phases = {str(image["phase"]) for image in content["images"]}
        known = [name for name, parts in PHASES.items() if set(parts) <= phases]
        split = choose_split(split, known, "val")
        found: dict[Any, Detailed] = {}
        for image in content["images"]:
            if image["phase"] in PHASES[split]:
                file = require_inside(image["file_name"], what)
                found[image["image_id"]] = Detailed(Path(file).stem, images / file, coding, what)
        whole = {category["category_id"] for category in content["categories"] if category.get("onlysemantic")}
        for each in content["annos_segmentation"]:
            if each["image_id"] in found:
                category = int(each["category_id"])
                marked = category not in whole and not each.get("iscrowd", 0)
                found[each["image_id"]].segments.append(Segment(category, each["segmentation"], marked))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{path} must be the file of PASCAL in Detail with images, categories and annos_segmentation, got: {said}; "
            "use the published file"
        ) from None
    return split, sorted(found.values(), key=lambda entry: entry.name)
