"""Any folder of images with label maps: `images/`, `labels/` with matching names, and a class list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from certiseg.datasets.base import Dataset, list_entries
from certiseg.datasets.layout import choose_split, folders, read_classes, require_folder
from certiseg.errors import InputError
from certiseg.hierarchy import PRESETS, load_hierarchy


class Folder(Dataset):
    """A plain folder; class names are given, or stand in `ROOT/classes.txt`, one per line.

    With `ROOT/SPLIT/images` instead of `ROOT/images` a split is chosen: test, else val, unless one is named.
    """

    def __init__(
        self,
        root: str | Path,
        split: str | None = None,
        *,
        classes: Sequence[str] | None = None,
        labelled: bool = True,
    ) -> None:
        root = require_folder(Path(root))
        if split is not None or not (root / "images").is_dir():
            split = _find_split(root, split)
            root = root / split
        if classes is None:
            classes = find_classes(root)
        images, labels = root / "images", root / "labels"
        if labelled and not labels.is_dir():
            raise InputError(f"{root} must hold a folder labels/, got none; labels are needed here")
        entries = list_entries(images, labels if labelled else None)
        super().__init__("folder", classes, entries, split=split, hierarchy=matching_preset(classes))


def _find_split(root: Path, split: str | None) -> str:
    available = [name for name in folders(root) if (root / name / "images").is_dir()]
    if not available:
        require_folder(root, "images")
        raise InputError(f"split must be left out, got {split!r}; {root} has no splits")
    return choose_split(split, available, next((name for name in ("test", "val") if name in available), available[0]))


def find_classes(root: Path) -> tuple[str, ...]:
    """The class list of a folder, which may also lie one level up, beside several splits."""
    for place in (root, root.parent):
        if (place / "classes.txt").is_file():
            return read_classes(place / "classes.txt")
    raise InputError(f"{root} must hold classes.txt, got none; write one class name per line or give the names")


def matching_preset(classes: Sequence[str]) -> str | None:
    """The preset over exactly these classes in this order, if there is one."""
    return next((name for name in PRESETS if load_hierarchy(name).classes == tuple(classes)), None)
