"""A data set that Hugging Face `datasets` wrote with `save_to_disk`: Arrow files with an image and a label column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike

from certiseg.datasets.base import Dataset, Sample, checked, matching_preset
from certiseg.datasets.coding import Ids, as_ids, plain_ids
from certiseg.datasets.layout import choose_split, contents, read_classes, read_object
from certiseg.errors import InputError
from certiseg.images import IdMap, read_ids, read_pixels, reason

if TYPE_CHECKING:
    from datasets import Dataset as Table

IMAGE_COLUMNS = ("image", "pixel_values", "img")
LABEL_COLUMNS = (
    *("label", "labels", "annotation", "mask", "label_map", "segmentation", "segmentation_mask"),
    "semantic_segmentation",
)
Cell: TypeAlias = dict[str, bytes | str | None] | ArrayLike | None
"""An image file as its bytes or its path, or a matrix of numbers."""


@dataclass(frozen=True)
class Row:
    """One row of a table. Image files are decoded here, under the rules for any image."""

    name: str
    table: Table
    index: int
    folder: Path
    columns: tuple[str, str]
    coding: Ids

    def read(self) -> Sample:
        what = f"{self.folder}, row {self.index}"
        try:
            row = self.table[self.index]
        except Exception as error:  # Arrow raises many types on damaged files
            raise InputError(f"{what}, must be readable, got: {error}; write it again") from None
        image, label = (row[column] for column in self.columns)
        pixels = read_pixels(self._bytes(image, f"{what}, image"), f"{what}, image")
        ids = self.coding.decode(self._ids(label, f"{what}, label"), f"{what}, label")
        return checked(Sample(self.name, pixels, ids), f"{what}, label")

    def _bytes(self, cell: Cell, what: str) -> bytes:
        """The image file in a cell, which holds it or names a file on this machine."""
        data, place = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (None, None)
        if isinstance(data, bytes) and data:
            return data
        if isinstance(place, str) and (self.folder / place).is_file():
            return (self.folder / place).read_bytes()
        raise InputError(f"{what} must be stored in the table or on this machine, got {place!r}; embed the files")

    def _ids(self, cell: Cell, what: str) -> IdMap:
        """The stored ids: an image file of ids, or rows of numbers."""
        return read_ids(self._bytes(cell, what), what) if isinstance(cell, dict) else as_ids(cell, what)


def open_huggingface(root: Path, split: str | None) -> Dataset:
    """One split; samples are named by split and row.

    Class names come from the label column's own ClassLabel, from `classes.txt` or from `id2label.json`.
    """
    split, folder = _find_split(root, split)
    table = _load(folder)
    columns = _find_column(table, IMAGE_COLUMNS, folder, "image"), _find_column(table, LABEL_COLUMNS, folder, "label")
    classes = _find_classes(root, folder, table.features[columns[1]])
    if not len(table):
        raise InputError(f"{folder} must hold at least one row, got none; check the path")
    table, prefix, width = _undecoded(table), f"{split}/" if split else "", len(str(len(table) - 1))
    coding = plain_ids(len(classes))
    rows = [Row(f"{prefix}{i:0{width}d}", table, i, folder, columns, coding) for i in range(len(table))]
    return Dataset("huggingface", rows, classes=classes, split=split, hierarchy=matching_preset(classes))


def _find_split(root: Path, split: str | None) -> tuple[str | None, Path]:
    listed = root / "dataset_dict.json"
    if not listed.is_file():
        if not (root / "state.json").is_file():
            raise InputError(
                f"{root} must be a folder written by save_to_disk, got {contents(root)}; "
                "load the data set once and call its save_to_disk"
            )
        if split is not None:
            raise InputError(f"split must be left out, got {split!r}; {root} has no splits")
        return None, root
    splits = read_object(listed).get("splits")
    if not isinstance(splits, list) or not all(isinstance(name, str) and (root / name).is_dir() for name in splits):
        raise InputError(f"{listed} must list the splits that lie beside it, got {splits!r}; write it again")
    preferred = next((name for name in ("test", "validation", "val") if name in splits), "test")
    chosen = choose_split(split, splits, splits[0] if len(splits) == 1 else preferred)
    return chosen, root / chosen


def _load(folder: Path) -> Table:
    try:
        import datasets
    except ImportError:
        raise InputError(
            "dataset huggingface must have the package datasets, got none; pip install 'certiseg[datasets]'"
        ) from None
    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # many types, from JSON to Arrow
        raise InputError(
            f"{folder} must be a folder written by save_to_disk, got: {reason(error)}; write it again"
        ) from None


def _undecoded(table: Table) -> Table:
    """The table with image cells as bytes or paths: nothing is decoded, or fetched from an address, by the library."""
    from datasets import Image

    for column, feature in table.features.items():
        if isinstance(feature, Image):
            table = table.cast_column(column, Image(decode=False))
    return table


def _find_column(table: Table, names: Sequence[str], folder: Path, kind: str) -> str:
    for name in names:
        if name in table.column_names:
            return name
    found = ", ".join(table.column_names) or "none"
    raise InputError(
        f"{folder} must have a column for the {kind} ({', '.join(names)}), got {found}; rename the column to {names[0]}"
    )


def _find_classes(root: Path, folder: Path, feature: Any) -> tuple[str, ...]:
    while getattr(feature, "names", None) is None and getattr(feature, "feature", None) is not None:
        feature = feature.feature  # a matrix of ClassLabel is a list of lists
    if getattr(feature, "names", None):
        return tuple(feature.names)
    for place in dict.fromkeys((folder, root)):
        if (place / "classes.txt").is_file():
            return read_classes(place / "classes.txt")
        if (place / "id2label.json").is_file():
            return _read_id2label(place / "id2label.json")
    raise InputError(f"{root} must hold classes.txt or id2label.json, got neither; write one class name per line")


def _read_id2label(path: Path) -> tuple[str, ...]:
    table = read_object(path)
    names = [table.get(str(i)) for i in range(len(table))]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path} must name the ids 0, 1, 2 and so on, got {', '.join(list(table)[:5])}; correct it")
    return tuple(str(name) for name in names)
