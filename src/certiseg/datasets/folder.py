"""Any folder of images with label maps: `images/`, `labels/` with matching names, and a class list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from certiseg.datasets.base import Dataset, list_entries, read_classes
from certiseg.errors import InputError


class Folder(Dataset):
    """A plain folder; class names are given, or stand in `ROOT/classes.txt`, one per line."""

    def __init__(
        self,
        root: str | Path,
        *,
        classes: Sequence[str] | None = None,
        labelled: bool = True,
    ) -> None:
        root = Path(root)
        if classes is None:
            classes = find_classes(root)
        images, labels = root / "images", root / "labels"
        if labelled and not labels.is_dir():
            raise InputError(f"{root} must hold a folder labels/, got none; labels are needed here")
        super().__init__("folder", classes, list_entries(images, labels if labelled else None))


def find_classes(root: Path) -> tuple[str, ...]:
    """The class list of a folder, which may also lie one level up, beside several splits."""
    for place in (root, root.parent):
        if (place / "classes.txt").is_file():
            return read_classes(place / "classes.txt")
    raise InputError(f"{root} must hold classes.txt, got none; write one class name per line or give the names")
