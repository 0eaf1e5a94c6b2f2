"""Data sets by name, in the layouts in which they are published: images with label maps, checked one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from certiseg.datasets.acdc import open_acdc
from certiseg.datasets.base import Dataset, Sample
from certiseg.datasets.camvid import open_camvid
from certiseg.datasets.cityscapes import open_cityscapes
from certiseg.datasets.coco_stuff import open_coco_stuff
from certiseg.datasets.comma10k import open_comma10k
from certiseg.datasets.folder import open_folder
from certiseg.datasets.huggingface import open_huggingface
from certiseg.datasets.pascal_context import open_pascal_context
from certiseg.datasets.streets import SCENES, scene_lane
from certiseg.errors import InputError

__all__ = ["NAMES", "Dataset", "Sample", "open_dataset", "open_training_pair", "scene_lane"]

READERS: dict[str, Callable[[Path, str | None], Dataset]] = {
    "cityscapes": open_cityscapes,
    "acdc": open_acdc,
    "pascal_context": open_pascal_context,
    "coco_stuff": open_coco_stuff,
    "camvid": open_camvid,
    "comma10k": open_comma10k,
    "folder": open_folder,
    "huggingface": open_huggingface,
    "streets": partial(open_folder, name="streets"),
}
NAMES = tuple(READERS)
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
    if name == "streets":
        root = SCENES
    if root is None:
        raise InputError(f"root must be the folder of {name}, got none; give the path")
    if not Path(root).is_dir():
        raise InputError(f"root must be a folder, got {root}; check the path")
    dataset = READERS[name](Path(root), split)
    return dataset if first is None else dataset.first(first)


def open_training_pair(name: str, root: str | Path | None) -> tuple[Dataset, Dataset]:
    """The training and the validation part of a data set.

    A `folder` is split by its sub-folders `train/` and `val/`; without them every tenth image is held out.
    """
    if name == "folder" and root is not None and not (Path(root) / "train").is_dir():
        return open_dataset(name, root).held_out()
    train, val = (open_dataset(name, root, split=split) for split in TRAINING_SPLITS.get(name, ("train", "val")))
    if train.classes != val.classes:
        raise InputError(f"{root} must have one class list for train and val, got two; keep one classes.txt")
    return train, val
