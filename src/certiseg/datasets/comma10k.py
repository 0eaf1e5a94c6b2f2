"""comma10k (comma.ai, MIT licence): dash-camera frames with 5 classes, used to pre-train encoders."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, list_entries
from certiseg.errors import InputError

SPLITS = ("train", "val", "all")
CLASSES = ("road", "lane markings", "undrivable", "movable", "my car")


class Comma10k(Dataset):
    """Frames in `ROOT/images`, `ROOT/labels`; every tenth one, in name order, is the validation split."""

    def __init__(self, root: str | Path, split: str = "all") -> None:
        if split not in SPLITS:
            raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}; choose one of them")
        root = Path(root)
        super().__init__("comma10k", CLASSES, list_entries(root / "images", root / "labels"))
        if split != "all":
            train, val = self.held_out()
            self.entries = (train if split == "train" else val).entries
