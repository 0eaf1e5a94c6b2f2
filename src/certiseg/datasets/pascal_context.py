"""PASCAL-Context (Mottaghi et al. 2014): 59 classes on the images of VOC 2010."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from certiseg.datasets.base import Dataset, Files, preset_dataset, require_files
from certiseg.datasets.coding import Coding, Ids, mat_ids, published_ids, shifted_ids
from certiseg.datasets.layout import choose_split, contents, read_names
from certiseg.datasets.pascal_detail import FILE, list_detailed
from certiseg.errors import InputError
from certiseg.hierarchy import VOID

LISTS = ("SegmentationContext", "Main")
"""Folders of ImageSets: the lists of mmsegmentation; those of VOC 2010, which are the same split."""
LAST_ID = 459


def open_pascal_context(root: Path, split: str | None) -> Dataset:
    """One split of VOCdevkit/VOC2010 with the labels as converted PNGs, or as published in `.mat` or JSON files."""
    home = _find_home(root)
    images, found = home / "JPEGImages", _find_labels(root, home)
    if isinstance(found, Path):
        split, detailed = list_detailed(found, images, split, original_ids())
        return preset_dataset("pascal_context", detailed, split)
    labels, suffix, coding = found
    lists = _find_lists(home)
    split = choose_split(split, lists, "val")
    names = read_names(lists[split])
    entries = [Files(name, images / f"{name}.jpg", labels / f"{name}{suffix}", coding) for name in names]
    return preset_dataset("pascal_context", require_files(entries, images, labels), split)


def _find_home(root: Path) -> Path:
    """The folder that holds JPEGImages/: ROOT, ROOT/VOC2010 or ROOT/VOCdevkit/VOC2010."""
    for place in (root, root / "VOC2010", root / "VOCdevkit" / "VOC2010"):
        if (place / "JPEGImages").is_dir():
            return place
    raise InputError(f"{root} must hold VOCdevkit/VOC2010/JPEGImages/, got {contents(root)}; check the path")


def _find_labels(root: Path, home: Path) -> tuple[Path, str, Coding] | Path:
    """The folder of the label maps with their ending and coding, or the one file that holds all of them."""
    converted = home / "SegmentationClassContext"
    if converted.is_dir():
        return converted, ".png", shifted_ids(59)
    for place in (root, home, home.parent):
        if (place / "trainval").is_dir():
            return place / "trainval", ".mat", original_ids()
        if (place / FILE).is_file():
            return place / FILE
    raise InputError(
        f"{home} must hold the labels in SegmentationClassContext/ (png) or {root} in trainval/ (mat) or {FILE}, "
        f"got {contents(home)}; check the path"
    )


def _find_lists(home: Path) -> dict[str, Path]:
    """Split -> its list of names."""
    for folder in (home / "ImageSets" / name for name in LISTS):
        found = {split: folder / f"{split}.txt" for split in ("train", "val", "trainval")}
        found = {split: path for split, path in found.items() if path.is_file()}
        if found:
            return found
    raise InputError(
        f"{home} must hold ImageSets/{LISTS[0]}/val.txt or ImageSets/{LISTS[1]}/val.txt, got neither; add the lists"
    )


@cache
def original_ids() -> Ids:
    """The ids 1 to 459 of the original files: 59 of them are classes, all others void."""
    table = dict.fromkeys(range(LAST_ID + 1), VOID) | published_ids("pascal_context")
    return mat_ids(table, f"label ids 0 to {LAST_ID}", variable="LabelMap")
