"""Data sets by name: each returns samples of one image and one checked label map."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import VOID, Dataset, Entry, Sample
from certiseg.datasets.camvid import CamVid
from certiseg.datasets.comma10k import Comma10k
from certiseg.datasets.folder import Folder
from certiseg.errors import InputError

__all__ = ["NAMES", "VOID", "CamVid", "Comma10k", "Dataset", "Entry", "Folder", "Sample", "open_training_pair"]

NAMES = ("camvid", "comma10k", "folder")


def open_training_pair(name: str, root: str | Path) -> tuple[Dataset, Dataset]:
    """The training and the validation part of a data set.

    `camvid` and `comma10k` know their split. A `folder` is split by its sub-folders `train/` and `val/`; without
    them every tenth image is held out.
    """
    root = Path(root)
    if name not in NAMES:
        raise InputError(f"dataset must be one of {', '.join(NAMES)}, got {name!r}; choose one of them")
    if not root.is_dir():
        raise InputError(f"root must be a folder, got {root}; check the path")
    if name == "camvid":
        return CamVid(root, "train"), CamVid(root, "val")
    if name == "comma10k":
        return Comma10k(root, "train"), Comma10k(root, "val")
    if (root / "train").is_dir():
        train, val = Folder(root / "train"), Folder(root / "val")
        if train.classes != val.classes:
            raise InputError(f"{root} must have one class list for train and val, got two; keep one classes.txt")
        return train, val
    return Folder(root).held_out()
