"""Any folder of images with label maps: `images/`, `labels/` with matching names, and a class list."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, list_files, matching_preset
from certiseg.datasets.coding import plain_ids
from certiseg.datasets.layout import choose_split, folders, read_classes, require_folder
from certiseg.errors import InputError


def open_folder(root: Path, split: str | None, *, name: str = "folder") -> Dataset:
    """A plain folder; class names stand in `ROOT/classes.txt`, one per line.

    With `ROOT/SPLIT/images` instead of `ROOT/images` a split is chosen: test, else val, unless one is named.
    """
    if split is not None or not (root / "images").is_dir():
        split = _find_split(root, split)
        root = root / split
    classes = _find_classes(root)
    if not (root / "labels").is_dir():
        raise InputError(f"{root} must hold a folder labels/, got none; labels are needed here")
    entries = list_files(root / "images", root / "labels", plain_ids(len(classes)))
    return Dataset(name, entries, classes=classes, split=split, hierarchy=matching_preset(classes))


def _find_split(root: Path, split: str | None) -> str:
    available = [name for name in folders(root) if (root / name / "images").is_dir()]
    if not available:
        require_folder(root, "images")
        raise InputError(f"split must be left out, got {split!r}; {root} has no splits")
    return choose_split(split, available, next((name for name in ("test", "val") if name in available), available[0]))


def _find_classes(root: Path) -> tuple[str, ...]:
    """The class list of a folder, which may also lie one level up, beside several splits."""
    for place in (root, root.parent):
        if (place / "classes.txt").is_file():
            return read_classes(place / "classes.txt")
    raise InputError(f"{root} must hold classes.txt, got none; write one class name per line")
