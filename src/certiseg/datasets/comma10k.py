"""comma10k (comma.ai, MIT licence): dash-camera frames with 5 classes, used to pre-train encoders."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, list_files
from certiseg.datasets.coding import plain_ids
from certiseg.datasets.layout import choose_split, require_folder

CLASSES = ("road", "lane markings", "undrivable", "movable", "my car")


def open_comma10k(root: Path, split: str | None) -> Dataset:
    """Frames in `ROOT/images`, `ROOT/labels`; every tenth one, in name order, is the validation split."""
    split = choose_split(split, ("train", "val", "all"), "val")
    images, labels = require_folder(root, "images"), require_folder(root, "labels")
    whole = Dataset("comma10k", list_files(images, labels, plain_ids(len(CLASSES))), classes=CLASSES, split=split)
    if split == "all":
        return whole
    train, val = whole.held_out()
    return train if split == "train" else val
