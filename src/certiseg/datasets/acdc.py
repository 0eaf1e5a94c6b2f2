"""ACDC (Sakaridis et al. 2021): the Cityscapes classes in fog, at night, in rain and in snow."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, Files, preset_dataset, require_files
from certiseg.datasets.cityscapes import list_frames
from certiseg.datasets.layout import choose_split, folders, require_folder
from certiseg.errors import InputError

CONDITIONS = ("fog", "night", "rain", "snow")


def open_acdc(root: Path, split: str | None) -> Dataset:
    """One split of `rgb_anon/CONDITION/SPLIT/SEQUENCE`, `gt/CONDITION/SPLIT/SEQUENCE`; names are CONDITION/STEM.

    `split` is a split (all conditions) or CONDITION/SPLIT, as in "night/val"; `*_ref` are the same places in clear
    weather.
    """
    images, labels = require_folder(root, "rgb_anon"), require_folder(root, "gt")
    present = [condition for condition in CONDITIONS if (images / condition).is_dir()]
    if not present:
        require_folder(images, CONDITIONS[0])
    condition, _, part = (split or "val").rpartition("/")
    if condition and condition not in present:
        raise InputError(f"condition must be one of {', '.join(present)}, got {condition!r}; choose one of them")
    chosen = [condition] if condition else present
    splits = sorted({name for kind in chosen for name in folders(images / kind)})
    part = choose_split(part, splits, "val", where=images / chosen[0])
    reference = "_ref" if part.endswith("_ref") else ""
    entries: list[Files] = []
    for kind in chosen:
        if (images / kind / part).is_dir():
            places = images / kind / part, require_folder(labels, kind, part)
            entries += list_frames(*places, f"_rgb{reference}_anon.png", f"_gt{reference}", group=kind)
    return preset_dataset("acdc", require_files(entries, images, labels), split or part)
