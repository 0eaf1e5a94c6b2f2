"""`pairs`: a table that names image and label files, one pair per row, as CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from certiseg.datasets.base import Dataset, Files, matching_preset
from certiseg.datasets.coding import Coding, plain_ids
from certiseg.datasets.layout import contents, find_classes
from certiseg.errors import InputError
from certiseg.images import reason

ENDINGS = (".csv", ".parquet")
NEEDED, ALLOWED = ("image", "label"), ("name", "instances")
"""Columns; others are not looked at."""
MOST_BYTES, MOST_ROWS = 256 << 20, 1_000_000
Row: TypeAlias = dict[str, str]
"""Column -> what its cell says, without empty cells."""


def open_pairs(root: Path, split: str | None, classes: Sequence[str] | None = None) -> Dataset:
    """The pairs of a table; paths are relative to its folder, and every file must be there.

    Columns: `image`, `label` (a map of ids, 255 = void), and where wanted `name` (default: the path of the image
    without its ending) and `instances` (a map with an id for each object, 0 for none). Class names stand in
    `classes.txt` beside the table.
    """
    table = _find_table(root)
    if split is not None:
        raise InputError(f"split must be left out, got {split!r}; write a table for each split")
    rows = _read_rows(table)
    classes = find_classes(table.parent, classes)
    entries = [_entry(row, table, place, plain_ids(len(classes))) for place, row in enumerate(rows, 1)]
    if not entries:
        raise InputError(f"{table} must list at least one pair, got none; write a row for each image")
    _require_once(entries, table)
    return Dataset("pairs", entries, classes=classes, hierarchy=matching_preset(classes))


def _find_table(root: Path) -> Path:
    """ROOT itself, or the table in it."""
    if root.is_file():
        return root
    for ending in ENDINGS:
        if (root / f"pairs{ending}").is_file():
            return root / f"pairs{ending}"
    raise InputError(f"{root} must hold pairs.csv or pairs.parquet, got {contents(root)}; check the path")


def _entry(row: Row, table: Path, place: int, coding: Coding) -> Files:
    paths = {}
    for column in ("image", "label", "instances"):
        if column in row:
            paths[column] = table.parent / row[column]
            if "\0" in row[column] or not paths[column].is_file():
                raise InputError(
                    f"{table}, row {place}: {column} must be a file, got {row[column]!r}, which is not there; paths "
                    "are relative to the table"
                )
        elif column in NEEDED:
            raise InputError(f"{table}, row {place}: {column} must be a path, got an empty cell; fill it")
    name = row.get("name") or Path(row["image"]).with_suffix("").as_posix()
    return Files(name, paths["image"], paths["label"], coding, paths.get("instances"))


def _require_once(entries: Sequence[Files], table: Path) -> None:
    """Refuse an image that is listed twice, and a name that stands for two."""
    names, images = [entry.name for entry in entries], [str(entry.image.resolve()) for entry in entries]
    for what, keys in (("image", images), ("name", names)):
        seen: dict[str, int] = {}
        for place, key in enumerate(keys, 1):
            if key in seen:
                raise InputError(
                    f"{table} must give each {what} once, got {key!r} in the rows {seen[key]} and {place}; "
                    f"{'remove one' if what == 'image' else 'tell them apart in a column name'}"
                )
            seen[key] = place


def _read_rows(table: Path) -> list[Row]:
    """The rows of a table as text."""
    size = table.stat().st_size
    if size > MOST_BYTES:
        raise InputError(f"{table} must be at most {MOST_BYTES >> 20} MiB, got {size >> 20}; split it")
    try:
        read = {".csv": _read_csv, ".parquet": _read_parquet}.get(table.suffix.lower())
        if read is None:
            raise InputError(f"{table} must end in .csv or .parquet, got {table.suffix!r}; convert it")
        return read(table)
    except InputError:
        raise
    except Exception as error:  # Arrow raises many types on damaged files, csv its own
        kind = table.suffix.lower()[1:]
        raise InputError(f"{table} must be a readable {kind} table, got: {reason(error)}; write it again") from None


def _read_csv(table: Path) -> list[Row]:
    with table.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = [cell.strip() for cell in next(lines, [])]
        _require_columns(header, table)
        rows = []
        for cells in lines:
            if not cells:
                continue  # an empty line
            if len(cells) != len(header):
                raise InputError(
                    f"{table}, line {lines.line_num}: must have the {len(header)} cells of the header, got "
                    f"{len(cells)}; put a path with a comma in quotes"
                )
            rows.append({column: cell.strip() for column, cell in zip(header, cells, strict=True) if cell.strip()})
            _require_few(len(rows), table)
    return rows


def _read_parquet(table: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(table) as file:
        _require_columns(file.schema_arrow.names, table)
        _require_few(file.metadata.num_rows, table)
        wanted = [column for column in (*NEEDED, *ALLOWED) if column in file.schema_arrow.names]
        for column in wanted:
            kind = file.schema_arrow.field(column).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise InputError(f"{table}: {column} must be a column of text, got {kind}; convert it")
        rows = file.read(columns=wanted).to_pylist()
    return [{column: cell for column, cell in row.items() if cell} for row in rows]


def _require_columns(found: Sequence[str], table: Path) -> None:
    twice = next((column for column in (*NEEDED, *ALLOWED) if found.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"{table} must have each column once, got {twice} twice; remove one")
    if missing := [column for column in NEEDED if column not in found]:
        shown = ", ".join(map(str, found[:8]))[:120] or "none"
        raise InputError(f"{table} must have the columns image and label, got {shown}; name the column {missing[0]}")


def _require_few(rows: int, table: Path) -> None:
    if rows > MOST_ROWS:
        raise InputError(f"{table} must have at most {MOST_ROWS:,} rows, got {rows:,}; split it")
