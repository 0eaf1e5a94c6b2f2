"""Cityscapes (Cordts et al. 2016): 19 street classes, `leftImg8bit/SPLIT/CITY` and `gtFine/SPLIT/CITY`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Files, preset_dataset, require_files
from certiseg.datasets.coding import Coding, Ids, plain_ids, published_ids
from certiseg.datasets.layout import choose_split, folders, require_folder, visible
from certiseg.hierarchy import VOID

LEAST_INSTANCE = 1000
"""An instance id is 1000 times the label id of an object, and its number; below, groups and what has no instances."""


def open_cityscapes(root: Path, split: str | None) -> Dataset:
    """One split; a sample is named CITY/STEM. Labels are `*_labelIds.png` or, without these, `*_labelTrainIds.png`."""
    images, labels = require_folder(root, "leftImg8bit"), require_folder(root, "gtFine")
    split = choose_split(split, folders(images), "val", where=images)
    images, labels = images / split, require_folder(labels, split)
    entries = list_frames(images, labels, "_leftImg8bit.png", "_gtFine")
    return preset_dataset("cityscapes", require_files(entries, images, labels), split)


def list_frames(images: Path, labels: Path, ending: str, kind: str, group: str | None = None) -> list[Files]:
    """The frames `IMAGES/FOLDER/STEM<ending>` with their labels `LABELS/FOLDER/STEM<kind>_*.png`.

    A frame is named GROUP/STEM, or FOLDER/STEM without a group.
    """
    entries = []
    for path in (path for folder in folders(images) for path in visible(images / folder)):
        if path.name.endswith(ending):
            folder, stem = path.parent.name, path.name.removesuffix(ending)
            label, coding = _find_label(labels / folder, f"{stem}{kind}")
            marked = labels / folder / f"{stem}{kind}_instanceIds.png"
            instances = marked if marked.is_file() else None
            entries.append(Files(f"{group or folder}/{stem}", path, label, coding, instances, LEAST_INSTANCE))
    return sorted(entries, key=lambda entry: entry.name)


def _find_label(folder: Path, stem: str) -> tuple[Path, Coding]:
    """The label map of an image with its coding: label ids as published, or train ids where only those are there."""
    published, converted = folder / f"{stem}_labelIds.png", folder / f"{stem}_labelTrainIds.png"
    if converted.is_file() and not published.is_file():
        return converted, plain_ids(19)
    return published, label_ids()


@cache
def label_ids() -> Ids:
    """Label ids 0 to 33; -1 (licence plate), which 8 bits show as 255, is void."""
    return Ids(published_ids("cityscapes") | {-1: VOID, VOID: VOID}, f"label ids 0 to 33, or -1 or {VOID} for void")
