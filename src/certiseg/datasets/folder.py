"""Any folder of images with label maps: `images/`, `labels/` with matching names, and a class list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from certiseg.datasets.base import Dataset, list_files, matching_preset
from certiseg.datasets.coding import plain_ids
from certiseg.datasets.layout import find_classes, find_split
from certiseg.errors import InputError


def open_folder(
    root: Path, split: str | None, classes: Sequence[str] | None = None, *, name: str = "folder"
) -> Dataset:
    """A plain folder; class names stand in `ROOT/classes.txt`, one per line.

    `ROOT/instances/NAME.png`, where it is there, holds an id for each object of an image, 0 for none.
    With `ROOT/SPLIT/images` instead of `ROOT/images` a split is chosen: test, else val, unless one is named.
    """
    split, root = find_split(root, split)
    classes = find_classes(root, classes)
    if not (root / "labels").is_dir():
        raise InputError(f"{root} must hold a folder labels/, got none; labels are needed here")
    entries = list_files(root / "images", root / "labels", plain_ids(len(classes)), root / "instances")
    return Dataset(name, entries, classes=classes, split=split, hierarchy=matching_preset(classes))
