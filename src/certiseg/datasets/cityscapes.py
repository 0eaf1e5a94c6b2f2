"""Cityscapes (Cordts et al. 2016): 19 street classes, `leftImg8bit/SPLIT/CITY` and `gtFine/SPLIT/CITY`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Entry, require_entries
from certiseg.datasets.coding import VOID, Coding, Ids, label_table, plain_ids
from certiseg.datasets.layout import choose_split, folders, require_folder, visible
from certiseg.hierarchy import load_hierarchy

IMAGE = "_leftImg8bit.png"


class Cityscapes(Dataset):
    """One split; a sample is named CITY/STEM. Labels are `*_labelIds.png` or, without these, `*_labelTrainIds.png`."""

    def __init__(self, root: str | Path, split: str | None = None) -> None:
        root = Path(root)
        images, labels = require_folder(root, "leftImg8bit"), require_folder(root, "gtFine")
        split = choose_split(split, folders(images), "val", where=images)
        images, labels = images / split, require_folder(labels, split)
        entries = []
        for path in (path for city in folders(images) for path in visible(images / city)):
            if path.name.endswith(IMAGE):
                city, stem = path.parent.name, path.name.removesuffix(IMAGE)
                entries.append(Entry(f"{city}/{stem}", path, *find_label(labels / city, f"{stem}_gtFine")))
        classes = load_hierarchy("cityscapes").classes
        entries = require_entries(entries, images, labels)
        super().__init__("cityscapes", classes, entries, split=split, hierarchy="cityscapes")


def find_label(folder: Path, stem: str) -> tuple[Path, Coding]:
    """The label map of an image with its coding: label ids as published, or train ids where only those are there."""
    published, converted = folder / f"{stem}_labelIds.png", folder / f"{stem}_labelTrainIds.png"
    if converted.is_file() and not published.is_file():
        return converted, plain_ids(19)
    return published, label_ids()


@cache
def label_ids() -> Ids:
    """Label ids 0 to 33; -1 (licence plate), which 8 bits show as 255, is void."""
    table = dict(label_table("cityscapes")["ids"]) | {-1: VOID, VOID: VOID}
    return Ids(table, "label ids 0 to 33, or -1 or 255 for void")
