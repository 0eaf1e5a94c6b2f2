"""comma10k (comma.ai, MIT licence): dash-camera frames with 5 classes, used to pre-train encoders."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, list_entries
from certiseg.datasets.layout import choose_split, require_folder

SPLITS = ("train", "val", "all")
CLASSES = ("road", "lane markings", "undrivable", "movable", "my car")


class Comma10k(Dataset):
    """Frames in `ROOT/images`, `ROOT/labels`; every tenth one, in name order, is the validation split."""

    def __init__(self, root: str | Path, split: str | None = "all") -> None:
        split = choose_split(split, SPLITS, "val")
        images, labels = require_folder(Path(root), "images"), require_folder(Path(root), "labels")
        super().__init__("comma10k", CLASSES, list_entries(images, labels), split=split)
        if split != "all":
            train, val = self.held_out()
            self.entries = (train if split == "train" else val).entries
