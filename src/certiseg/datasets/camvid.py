"""CamVid (Brostow et al. 2008): 31 street classes, as ids in folders per split or as the original colours."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Files, list_files, preset_dataset, require_files
from certiseg.datasets.coding import Colours, plain_ids, published_colours
from certiseg.datasets.layout import by_stem, choose_split, read_classes, require_folder
from certiseg.errors import InputError
from certiseg.hierarchy import VOID, load_hierarchy

SPLITS = ("train", "val", "test", "full_size")
ORIGINAL = ("701_StillsRaw_full", "LabeledApproved_full")


def open_camvid(root: Path, split: str | None) -> Dataset:
    """One split of CamVid, in one of three layouts.

    Ids: `ROOT/SPLIT/images/NAME.jpg`, `ROOT/SPLIT/labels/NAME.png`. Original: `ROOT/701_StillsRaw_full/NAME.png`,
    `ROOT/LabeledApproved_full/NAME_L.png`, colours, the usual split made from the names. Colours in folders:
    `ROOT/SPLIT/NAME.png`, `ROOT/SPLIT_labels/NAME_L.png`.
    """
    if (root / ORIGINAL[0]).is_dir():
        split = choose_split(split, (*SPLITS[:3], "all"), "test")
        images, labels = root / ORIGINAL[0], require_folder(root, ORIGINAL[1])
        entries = [e for e in _list_colours(images, labels) if split in ("all", published_split(e.name))]
        entries = require_files(entries, images, labels)
    elif coloured := [s for s in SPLITS if (root / f"{s}_labels").is_dir()]:
        split = choose_split(split, coloured, "test")
        images, labels = require_folder(root, split), root / f"{split}_labels"
        entries = require_files(_list_colours(images, labels), images, labels)
    else:
        split = choose_split(split, [s for s in SPLITS if (root / s / "images").is_dir()], "test", where=root)
        entries = _list_ids(root, split)
    return preset_dataset("camvid", entries, split)


def published_split(name: str) -> str:
    """The part of the usual split (367 / 101 / 233) to which a frame belongs, from its name alone."""
    sequence, _, frame = name.partition("_")
    number = int("0" + "".join(filter(str.isdigit, frame)))
    if sequence == "Seq05VD" or (sequence == "0001TP" and number >= 8550):
        return "test"
    if sequence == "0016E5" and 7959 <= number <= 8159 and number % 2:
        return "val"
    return "train"


def _list_ids(root: Path, split: str) -> list[Files]:
    listed, classes = root / "classes.txt", load_hierarchy("camvid").classes
    if listed.is_file() and read_classes(listed) != classes:
        raise InputError(f"{listed} must list the 31 CamVid classes in order, got another list; use data set folder")
    return list_files(root / split / "images", root / split / "labels", plain_ids(len(classes)))


def _list_colours(images: Path, labels: Path) -> list[Files]:
    return [Files(stem, path, labels / f"{stem}_L.png", colours()) for stem, path in by_stem(images).items()]


@cache
def colours() -> Colours:
    """The published colours; Void is black."""
    classes = load_hierarchy("camvid").classes
    table = {colour: classes.index(name) for name, colour in published_colours("camvid").items()}
    return Colours(table | {(0, 0, 0): VOID}, "the 31 CamVid colours or black for void")
