"""COCO-Stuff-10K v1.1 (Caesar et al. 2018): 171 classes, `.mat` annotations or PNGs converted by mmsegmentation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Entry, require_entries
from certiseg.datasets.coding import VOID, Coding, Ids, label_table, mat_ids, shifted_ids
from certiseg.datasets.layout import by_stem, choose_split, contents, read_names, require_folder
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy

SPLITS = ("train", "test")


class CocoStuff(Dataset):
    """One split: `images/NAME.jpg`, `annotations/NAME.mat`, `imageLists/SPLIT.txt`; or folders `SPLIT2014/` below.

    Without image lists the folders `images/train2014`, `images/test2014` make the splits.
    """

    def __init__(self, root: str | Path, split: str | None = None) -> None:
        root = Path(root)
        images, labels = require_folder(root, "images"), require_folder(root, "annotations")
        split = choose_split(split, _splits(root), "test")
        entries = []
        for name in _names(root, split):
            image = _first_file(images / f"{name}.jpg", images / f"{split}2014" / f"{name}.jpg")
            entries.append(Entry(name, image, *_find_label(labels, split, name)))
        entries = require_entries(entries, images, labels)
        classes = load_hierarchy("coco_stuff").classes
        super().__init__("coco_stuff", classes, entries, split=split, hierarchy="coco_stuff")


def _splits(root: Path) -> list[str]:
    places = {split: (_list_of(root, split), root / "images" / f"{split}2014") for split in SPLITS}
    found = [split for split, (listed, folder) in places.items() if listed.is_file() or folder.is_dir()]
    if not found:
        raise InputError(
            f"{root} must hold imageLists/test.txt or images/test2014/, got {contents(root)}; check the path"
        )
    return found


def _names(root: Path, split: str) -> tuple[str, ...]:
    listed = _list_of(root, split)
    return read_names(listed) if listed.is_file() else tuple(by_stem(root / "images" / f"{split}2014"))


def _list_of(root: Path, split: str) -> Path:
    return root / "imageLists" / f"{split}.txt"


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
    table = dict(label_table("coco_stuff")["ids"]) | {0: VOID}
    return mat_ids(table, "the 171 label ids between 1 and 182, or 0 for void", variable="S")
