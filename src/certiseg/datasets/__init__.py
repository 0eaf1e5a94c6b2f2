"""Data sets by name, in the layouts in which they are published: images with label maps, checked one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from certiseg.datasets.acdc import ACDC
from certiseg.datasets.base import VOID, Dataset, Entry, Sample
from certiseg.datasets.camvid import CamVid
from certiseg.datasets.cityscapes import Cityscapes
from certiseg.datasets.coco_stuff import CocoStuff
from certiseg.datasets.comma10k import Comma10k
from certiseg.datasets.folder import Folder
from certiseg.datasets.pascal_context import PascalContext
from certiseg.errors import InputError

__all__ = [
    "ACDC",
    "NAMES",
    "VOID",
    "CamVid",
    "Cityscapes",
    "CocoStuff",
    "Comma10k",
    "Dataset",
    "Entry",
    "Folder",
    "PascalContext",
    "Sample",
    "open_dataset",
    "open_training_pair",
]


def _huggingface(root: str | Path, split: str | None) -> Dataset:
    from certiseg.datasets.huggingface import HuggingFace

    return HuggingFace(root, split)


READERS: dict[str, Callable[[str | Path, str | None], Dataset]] = {
    "cityscapes": Cityscapes,
    "acdc": ACDC,
    "pascal_context": PascalContext,
    "coco_stuff": CocoStuff,
    "camvid": CamVid,
    "comma10k": Comma10k,
    "folder": Folder,
    "huggingface": _huggingface,
}
NAMES = (*READERS, "streets")
TRAINING_SPLITS = {"coco_stuff": ("train", "test"), "huggingface": ("train", "validation")}


def open_dataset(
    name: str, root: str | Path | None = None, *, split: str | None = None, first: int | None = None
) -> Dataset:
    """The samples of a data set, listed but not read.

    `split` defaults to the part one evaluates on; `first` takes that many samples in name order. What concerns the
    whole data set (no such folder, unknown or empty split) is raised here; what concerns one sample, by `dataset[i]`.
    """
    if name not in NAMES:
        raise InputError(f"dataset must be one of {', '.join(NAMES)}, got {name!r}; choose one of them")
    if first is not None and first < 1:
        raise InputError(f"first must be at least 1, got {first}; leave it out to take all images")
    if name == "streets":
        from certiseg.datasets.scenes import Scenes

        return Scenes(split, count=first or 100)
    if root is None:
        raise InputError(f"root must be the folder of {name}, got none; give the path")
    if not Path(root).is_dir():
        raise InputError(f"root must be a folder, got {root}; check the path")
    dataset = READERS[name](root, split)
    return dataset if first is None else dataset.first(first)


def open_training_pair(name: str, root: str | Path | None) -> tuple[Dataset, Dataset]:
    """The training and the validation part of a data set.

    A `folder` is split by its sub-folders `train/` and `val/`; without them every tenth image is held out.
    """
    if name != "folder" or root is None or (Path(root) / "train").is_dir():
        parts = [open_dataset(name, root, split=split) for split in TRAINING_SPLITS.get(name, ("train", "val"))]
        train, val = parts
        if train.classes != val.classes:
            raise InputError(f"{root} must have one class list for train and val, got two; keep one classes.txt")
        return train, val
    return open_dataset(name, root).held_out()
