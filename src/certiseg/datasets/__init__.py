"""Data sets by name, in the layouts in which they are published: images with label maps, checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from certiseg.datasets.acdc import open_acdc
from certiseg.datasets.base import Dataset, Sample
from certiseg.datasets.camvid import open_camvid
from certiseg.datasets.cityscapes import open_cityscapes
from certiseg.datasets.coco_panoptic import open_coco_panoptic
from certiseg.datasets.coco_stuff import open_coco_stuff
from certiseg.datasets.comma10k import open_comma10k
from certiseg.datasets.folder import open_folder
from certiseg.datasets.geotiff import open_geotiff, parse_tiling
from certiseg.datasets.huggingface import open_huggingface
from certiseg.datasets.pairs import ENDINGS, open_pairs
from certiseg.datasets.pascal_context import open_pascal_context
from certiseg.datasets.streets import SCENES, scene_lane
from certiseg.errors import InputError

__all__ = ["NAMES", "Dataset", "Sample", "open_dataset", "open_training_pair", "scene_lane"]

Classes = Sequence[str] | None
READERS: dict[str, Callable[[Path, str | None], Dataset]] = {
    "cityscapes": open_cityscapes,
    "acdc": open_acdc,
    "pascal_context": open_pascal_context,
    "coco_stuff": open_coco_stuff,
    "coco_panoptic": open_coco_panoptic,
    "camvid": open_camvid,
    "comma10k": open_comma10k,
    "huggingface": open_huggingface,
}
"""Data sets that know their classes."""
YOURS: dict[str, Callable[..., Dataset]] = {
    "folder": open_folder,
    "pairs": open_pairs,
    "geotiff": open_geotiff,
    "streets": partial(open_folder, name="streets"),
}
"""Those whose classes stand in classes.txt, or are given."""
NAMES = (*READERS, *YOURS)
TRAINING_SPLITS = {
    "coco_stuff": ("train", "test"),
    "coco_panoptic": ("train2017", "val2017"),
    "huggingface": ("train", "validation"),
}


def open_dataset(
    name: str,
    root: str | Path | None = None,
    *,
    split: str | None = None,
    first: int | None = None,
    classes: Classes = None,
) -> Dataset:
    """The samples of a data set, listed but not read.

    name: one of NAMES; a table of pairs, TABLE.csv or TABLE.parquet, by itself; or geotiff:TILE:BAND,BAND,...
    `split` defaults to the part one evaluates on; `first` takes that many samples in name order; `classes` names those
    of a data set of your own that has no classes.txt. What concerns the whole data set (no such folder, unknown or
    empty split) is raised here; what concerns one sample, by `dataset[i]`.
    """
    kind, place, options = _named(name, root)
    if not place.is_dir() and not (kind == "pairs" and place.is_file()):
        what = "a table or its folder" if kind == "pairs" else "a folder"
        raise InputError(f"root must be {what}, got {place}; check the path")
    more = {"tiling": parse_tiling(options)} if kind == "geotiff" else {}
    dataset = YOURS[kind](place, split, classes, **more) if kind in YOURS else READERS[kind](place, split)
    return dataset if first is None else dataset.first(first)


def _named(name: str, root: str | Path | None) -> tuple[str, Path, str]:
    """The kind of a data set, where it lies, and what else its name says."""
    if Path(name).suffix.lower() in ENDINGS:
        if root is not None:
            raise InputError(f"root must be left out with a table of pairs, got {root}; its paths are relative to it")
        return "pairs", Path(name), ""
    kind, colon, options = name.partition(":")
    if kind not in NAMES or (colon and kind != "geotiff"):
        raise InputError(
            f"dataset must be one of {', '.join(NAMES)} or a table of pairs (.csv, .parquet), got {name!r}; choose one"
        )
    if kind == "streets":
        root = SCENES
    if root is None:
        raise InputError(f"root must be the folder of {kind}, got none; give the path")
    return kind, Path(root), options


def open_training_pair(name: str, root: str | Path | None) -> tuple[Dataset, Dataset]:
    """The training and the validation part of a data set.

    A `folder` is split by its sub-folders `train/` and `val/`; without them, and of `pairs`, every tenth image is held
    out.
    """
    kind, place, _ = _named(name, root)
    if kind == "pairs" or (kind in ("folder", "geotiff") and not (place / "train").is_dir()):
        return open_dataset(name, root).held_out()
    train, val = (open_dataset(name, root, split=split) for split in TRAINING_SPLITS.get(kind, ("train", "val")))
    if train.classes != val.classes:
        raise InputError(f"{root} must have one class list for train and val, got two; keep one classes.txt")
    return train, val
