"""The table of a run: sums over pixels, a row per image x setting x method x class x boundary.

Sums, not scores: whatever is pooled later - all pixels, boundaries, one class, a bootstrap sample of the images - is
added up first and divided once, exactly as in `certiseg.scores`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.archive import parse_json, write_atomically
from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.runs.manifest import Setting
from certiseg.scores import PixelSums, boundary, sum_pixels, sum_prediction

KEYS = ("image", "sigma", "n", "tau", "method", "boundary", "class")
BY_CLASS = ("pixels", "gain", "abstained", "right", "claimed")
BY_LEVEL = ("level_certified", "level_abstained", "level_wrong")
UNCERTIFIED = "uncertified"
_IMAGES_AT_ONCE = 32
"""Rows of so many images are in memory together."""


def certificate_rows(
    name: str, setting: Setting, method: str, certificate: Certificate, label: Any
) -> list[dict[str, Any]]:
    """The rows of one certificate: two, boundary and not, per class that occurs or is claimed."""
    near = boundary(label)
    key = {"image": name, "sigma": setting.sigma, "n": setting.n, "tau": setting.tau, "method": method}
    rows = []
    for flag, where in ((True, near), (False, ~near)):
        rows += _rows({**key, "boundary": flag}, sum_pixels(certificate, label, where=where))
    return rows


def prediction_rows(name: str, prediction: Any, label: Any, num_classes: int) -> list[dict[str, Any]]:
    """The rows of the uncertified model."""
    near = boundary(label)
    key = {"image": name, "sigma": 0.0, "n": 0, "tau": 0.0, "method": UNCERTIFIED}
    rows = []
    for flag, where in ((True, near), (False, ~near)):
        rows += _rows({**key, "boundary": flag}, sum_prediction(prediction, label, num_classes, where=where))
    return rows


def _rows(key: dict[str, Any], sums: PixelSums) -> list[dict[str, Any]]:
    rows = []
    for index in np.flatnonzero((sums.pixels > 0) | (sums.claimed > 0)):
        row = {**key, "class": int(index), "flat": sums.flat}
        row |= {name: getattr(sums, name)[index].item() for name in BY_CLASS}
        row |= {name: getattr(sums, name)[index].tolist() for name in BY_LEVEL}
        rows.append(row)
    return rows


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The rows of one image, as JSON."""
    with write_atomically(path) as file:
        file.write(json.dumps({"format_version": 1, "rows": list(rows)}).encode())


def read_rows(path: Path) -> list[dict[str, Any]]:
    try:
        return parse_json(path.read_text("utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: must hold the rows of an image, got: {error}; remove it and resume") from None


def write_table(path: Path, parts: Iterable[Path]) -> int:
    """Join the rows of all images into one Parquet file; returns how many there are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pa.list_(pa.int64())
    schema = pa.schema(
        [
            ("image", pa.string()),
            *((name, pa.float64() if name != "n" else pa.int32()) for name in ("sigma", "n", "tau")),
            ("method", pa.string()),
            ("boundary", pa.bool_()),
            ("class", pa.int32()),
            ("flat", pa.bool_()),
            *((name, pa.float64() if name == "gain" else pa.int64()) for name in BY_CLASS),
            *((name, whole) for name in BY_LEVEL),
        ],
        metadata={"format_version": "1"},
    )
    count, paths = 0, iter(parts)
    with write_atomically(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while some := list(itertools.islice(paths, _IMAGES_AT_ONCE)):
            rows = pa.concat_tables(_rows_as_table(part, schema) for part in some).combine_chunks()
            writer.write_table(rows)
            count += len(rows)
    return count


def _rows_as_table(path: Path, schema: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(read_rows(path), schema=schema)
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError) as error:  # what Arrow raises is one of the first two
        raise InputError(f"{path}: must hold the rows of an image, got: {error}; remove it and resume") from None


def read_table(path: Path) -> dict[str, np.ndarray]:
    """The columns of a run's table; level columns are (rows, L), with zeros where a method has fewer levels."""
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path}: must be the table of a finished run; run `certiseg evaluate` to its end first")
    try:
        table = pq.read_table(path)
        columns = {
            name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names if name not in BY_LEVEL
        }
        return columns | {name: _padded(table[name].to_pylist()) for name in BY_LEVEL}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: must be the table of a run, got: {error}") from None


def _padded(lists: list[list[int]]) -> np.ndarray:
    longest = max((len(values) for values in lists), default=0)
    return np.array([values + [0] * (longest - len(values)) for values in lists], np.int64).reshape(-1, longest)
