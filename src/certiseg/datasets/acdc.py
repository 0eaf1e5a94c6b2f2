"""ACDC (Sakaridis et al. 2021): the Cityscapes classes in fog, at night, in rain and in snow."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, Entry, require_entries
from certiseg.datasets.cityscapes import find_label
from certiseg.datasets.layout import choose_split, folders, require_folder, visible
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy

CONDITIONS = ("fog", "night", "rain", "snow")


class ACDC(Dataset):
    """One split of `rgb_anon/CONDITION/SPLIT/SEQUENCE`, `gt/CONDITION/SPLIT/SEQUENCE`; names are CONDITION/STEM.

    `split` is a split (all conditions) or CONDITION/SPLIT, as in "night/val".
    """

    def __init__(self, root: str | Path, split: str | None = None) -> None:
        images, labels = require_folder(Path(root), "rgb_anon"), require_folder(Path(root), "gt")
        present = [condition for condition in CONDITIONS if (images / condition).is_dir()]
        if not present:
            require_folder(images, CONDITIONS[0])
        condition, _, part = (split or "val").rpartition("/")
        if condition and condition not in present:
            raise InputError(f"condition must be one of {', '.join(present)}, got {condition!r}; choose one of them")
        chosen = [condition] if condition else present
        splits = sorted({name for kind in chosen for name in folders(images / kind)})
        part = choose_split(part, splits, "val", where=images / chosen[0])
        entries = []
        for kind in chosen:
            if (images / kind / part).is_dir():
                entries += _list(images / kind / part, require_folder(labels, kind, part), kind)
        entries = require_entries(entries, images, labels)
        classes = load_hierarchy("acdc").classes
        super().__init__("acdc", classes, entries, split=split or part, hierarchy="acdc")


def _list(images: Path, labels: Path, condition: str) -> list[Entry]:
    """The images of one condition; those of the splits `*_ref` show the same places in clear weather."""
    reference = "_ref" if images.name.endswith("_ref") else ""
    ending = f"_rgb{reference}_anon.png"
    entries = []
    for path in (path for sequence in folders(images) for path in visible(images / sequence)):
        if path.name.endswith(ending):
            stem = path.name.removesuffix(ending)
            label = find_label(labels / path.parent.name, f"{stem}_gt{reference}")
            entries.append(Entry(f"{condition}/{stem}", path, *label))
    return sorted(entries, key=lambda entry: entry.name)
