"""A data set that Hugging Face `datasets` wrote with `save_to_disk`: Arrow files with an image and a label column."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import parse_json
from certiseg.datasets.base import Dataset, Sample, check_same_size
from certiseg.datasets.coding import plain_ids
from certiseg.datasets.files import as_ids, decode_ids, decode_image, require_size
from certiseg.datasets.folder import matching_preset
from certiseg.datasets.layout import choose_split, contents, read_classes, require_folder
from certiseg.errors import InputError

IMAGE_COLUMNS = ("image", "pixel_values", "img")
LABEL_COLUMNS = (
    *("label", "labels", "annotation", "mask", "label_map", "segmentation", "segmentation_mask"),
    "semantic_segmentation",
)


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    name: str
    index: int
    label: str
    """The row in words, for messages."""


class HuggingFace(Dataset):
    """One split; samples are named by split and row. Image files are decoded here, under the rules for any image.

    Class names come from `classes`, `classes.txt`, `id2label.json` or the label column's own ClassLabel.
    """

    def __init__(self, root: str | Path, split: str | None = None, *, classes: Sequence[str] | None = None) -> None:
        root = require_folder(Path(root))
        split, folder = _find_split(root, split)
        self._table = table = _load(folder)
        self.folder = folder
        self.image_column = _find_column(table, IMAGE_COLUMNS, folder, "image")
        self.label_column = _find_column(table, LABEL_COLUMNS, folder, "label")
        classes = classes or _find_classes(root, folder, table.features[self.label_column])
        width = len(str(max(0, len(table) - 1)))
        prefix = f"{split}/" if split else ""
        rows = [Row(f"{prefix}{i:0{width}d}", i, f"{folder}, row {i}, label") for i in range(len(table))]
        if not rows:
            raise InputError(f"{folder} must hold at least one row, got none; check the path")
        self._table = _undecoded(table)
        super().__init__("huggingface", classes, rows, split=split, hierarchy=matching_preset(classes))

    def read(self, entry: Row) -> Sample:
        """Decode one row."""
        try:
            row = self._table[entry.index]
        except Exception as error:  # Arrow raises many types on damaged files
            raise InputError(
                f"{self.folder}, row {entry.index}, must be readable, got: {error}; write it again"
            ) from None
        what = f"{self.folder}, row {entry.index}, image"
        image = decode_image(self._bytes(row[self.image_column], what), what)
        label = plain_ids(len(self.classes)).decode(self._ids(row[self.label_column], entry.label), entry.label)
        check_same_size(image, label, entry)
        return Sample(entry.name, image, label)

    def _bytes(self, cell: Any, what: str) -> bytes:
        """The image file in a cell, which holds it or names a file on this machine."""
        data, place = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (None, None)
        if data:
            return bytes(data)
        if place and (self.folder / place).is_file():
            return (self.folder / place).read_bytes()
        raise InputError(f"{what} must be stored in the table or on this machine, got {place!r}; embed the files")

    def _ids(self, cell: Any, what: str) -> NDArray[Any]:
        """The stored ids: an image file of ids, or rows of numbers."""
        if isinstance(cell, dict):
            return decode_ids(io.BytesIO(self._bytes(cell, what)), what)
        try:
            array = np.asarray(cell)
        except ValueError:
            raise InputError(f"{what} must be a matrix of ids, got rows of different lengths; replace it") from None
        if array.ndim == 2:
            require_size(array.shape[0], array.shape[1], what)
        return as_ids(array, what)


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
    splits = _read_json(listed).get("splits")
    if not isinstance(splits, list) or not all(isinstance(name, str) and (root / name).is_dir() for name in splits):
        raise InputError(f"{listed} must list the splits that lie beside it, got {splits!r}; write it again")
    preferred = next((name for name in ("test", "validation", "val") if name in splits), "test")
    chosen = choose_split(split, splits, splits[0] if len(splits) == 1 else preferred)
    return chosen, root / chosen


def _load(folder: Path) -> Any:
    try:
        import datasets
    except ImportError:
        raise InputError(
            "dataset huggingface must have the package datasets, got none; pip install 'certiseg[datasets]'"
        ) from None
    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # many types, from JSON to Arrow
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{folder} must be a folder written by save_to_disk, got: {reason}; write it again") from None


def _undecoded(table: Any) -> Any:
    """The table with image cells as bytes or paths: nothing is decoded, or fetched from an address, by the library."""
    from datasets import Image

    for column, feature in table.features.items():
        if isinstance(feature, Image):
            table = table.cast_column(column, Image(decode=False))
    return table


def _find_column(table: Any, names: Sequence[str], folder: Path, kind: str) -> str:
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
    table = _read_json(path)
    names = [table.get(str(i)) for i in range(len(table))]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path} must name the ids 0, 1, 2 and so on, got {', '.join(list(table)[:5])}; correct it")
    return tuple(str(name) for name in names)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must be readable JSON, got: {error}; write it again") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} must be a JSON object, got {type(value).__name__}; write it again")
    return value
