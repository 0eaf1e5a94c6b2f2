"""COCO-Stuff-10K v1.1 (Caesar et al. 2018): 171 classes, `.mat` annotations or PNGs converted by mmsegmentation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Files, preset_dataset, require_files
from certiseg.datasets.coding import Coding, Ids, mat_ids, published_ids, shifted_ids
from certiseg.datasets.layout import by_stem, choose_split, contents, read_names, require_folder
from certiseg.errors import InputError
from certiseg.hierarchy import VOID


def open_coco_stuff(root: Path, split: str | None) -> Dataset:
    """One split: `images/NAME.jpg`, `annotations/NAME.mat`, `imageLists/SPLIT.txt`; or folders `SPLIT2014/` below.

    Without image lists the folders `images/train2014`, `images/test2014` make the splits.
    """
    images, labels = require_folder(root, "images"), require_folder(root, "annotations")
    places = {name: (root / "imageLists" / f"{name}.txt", images / f"{name}2014") for name in ("train", "test")}
    found = [name for name, (listed, folder) in places.items() if listed.is_file() or folder.is_dir()]
    if not found:
        raise InputError(
            f"{root} must hold imageLists/test.txt or images/test2014/, got {contents(root)}; check the path"
        )
    split = choose_split(split, found, "test")
    listed, folder = places[split]
    entries = []
    for name in read_names(listed) if listed.is_file() else by_stem(folder):
        image = _first_file(images / f"{name}.jpg", folder / f"{name}.jpg")
        entries.append(Files(name, image, *_find_label(labels, split, name)))
    return preset_dataset("coco_stuff", require_files(entries, images, labels), split)


def _find_label(labels: Path, split: str, name: str) -> tuple[Path, Coding]:
    original = labels / f"{name}.mat"
    converted = _first_file(*(place / f"{name}_labelTrainIds.png" for place in (labels / f"{split}2014", labels)))
    if converted.is_file() and not original.is_file():
        return converted, shifted_ids(171)
    return original, original_ids()


def _first_file(*paths: Path) -> Path:
    """The first of these that exists, else the first."""
    return next((path for path in paths if path.is_file()), paths[0])


@cache
def original_ids() -> Ids:
    """The ids of the `.mat` files: 171 of 1 to 182 are classes, 0 is unlabelled, the rest never occur."""
    table = published_ids("coco_stuff") | {0: VOID}
    return mat_ids(table, "the 171 label ids between 1 and 182, or 0 for void", variable="S")
