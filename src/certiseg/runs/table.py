"""The table of a run: sums over pixels, a row per image x setting x method x class x boundary.

n is that of the setting, draws what the image had: fewer where draws stop early.

Sums, not scores: whatever is pooled later - all pixels, boundaries, one class, a bootstrap sample of the images - is
added up first and divided once, exactly as in `certiseg.scores`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import DamagedArchiveError, write_atomically
from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.images import reason
from certiseg.runs.settings import Setting
from certiseg.scores import BY_CLASS, BY_LEVEL, PixelSums, boundary, sum_pixels, sum_prediction

KEYS = ("image", "sigma", "n", "tau", "method", "boundary", "class")
UNCERTIFIED = "uncertified"
_IMAGES_AT_ONCE = 32
"""Rows of so many images are in memory together."""


def certificate_rows(
    name: str, setting: Setting, method: str, certificate: Certificate, label: Any
) -> list[dict[str, Any]]:
    """The rows of one certificate: two, boundary and not, per class that occurs or is claimed."""
    near = boundary(label)
    key = {"image": name, "sigma": setting.sigma, "n": setting.n, "tau": setting.tau, "method": method}
    key["draws"] = certificate.votes.n
    rows = []
    for flag, where in ((True, near), (False, ~near)):
        rows += _rows({**key, "boundary": flag}, sum_pixels(certificate, label, where=where))
    return rows


def prediction_rows(name: str, prediction: Any, label: Any, num_classes: int) -> list[dict[str, Any]]:
    """The rows of the uncertified model."""
    near = boundary(label)
    key = {"image": name, "sigma": 0.0, "n": 0, "tau": 0.0, "method": UNCERTIFIED, "draws": 0}
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


def write_table(path: Path, rows: Iterable[list[dict[str, Any]]], *, run: str) -> None:
    """Join the rows of all images into one Parquet file, which holds the run's key and a hash of what it says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, hashed, images = _schema(), hashlib.sha256(), iter(rows)
    with write_atomically(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while some := list(itertools.islice(images, _IMAGES_AT_ONCE)):
            try:
                table = pa.Table.from_pylist([row for of_image in some for row in of_image], schema=schema)
            except (ValueError, TypeError, AttributeError) as error:  # what Arrow raises is one of the first two
                raise InputError(f"{path}: rows of images must be as certiseg writes them, got: {error}") from None
            writer.write_table(table, row_group_size=max(len(table), 1))
            hashed.update(_digest(table))
        writer.add_key_value_metadata({"run": run, "sha256": hashed.hexdigest()})


def read_table(path: Path, *, run: str) -> dict[str, NDArray[Any]]:
    """The columns of a run's table; level columns are (rows, L), with zeros where a method has fewer levels.

    run: the key of the run; the table of another one is refused, and one whose values were changed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path}: must be the table of a finished run; run `certiseg evaluate` to its end first")
    try:
        file = pq.ParquetFile(path)
        notes = file.metadata.metadata or {}
        groups = [file.read_row_group(index) for index in range(file.num_row_groups)]
        found = hashlib.sha256(b"".join(_digest(group) for group in groups)).hexdigest()
        table = pa.concat_tables(groups)
        columns = {
            name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names if name not in BY_LEVEL
        }
        columns |= {name: _padded(table[name].to_pylist()) for name in BY_LEVEL}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path}: must be the table of a run, got: {reason(error)}; resume the run to write it anew"
        ) from None
    if notes.get(b"sha256", b"").decode() != found:
        raise DamagedArchiveError(
            f"{path}: must be undamaged, but its values were changed; resume the run to write it anew"
        )
    if notes.get(b"run", b"").decode() != run:
        raise InputError(f"{path}: must belong to this run, but it was written for other settings; see certiseg verify")
    return columns


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("image", pa.string()),
            *((name, pa.float64() if name != "n" else pa.int32()) for name in ("sigma", "n", "tau")),
            ("method", pa.string()),
            ("draws", pa.int32()),
            ("boundary", pa.bool_()),
            ("class", pa.int32()),
            ("flat", pa.bool_()),
            *((name, pa.float64() if name == "gain" else pa.int64()) for name in BY_CLASS),
            *((name, pa.list_(pa.int64())) for name in BY_LEVEL),
        ],
        metadata={"format_version": "3"},
    )


def _digest(table: Any) -> bytes:
    """SHA-256 of the values of some rows, whatever their layout in memory."""
    hashed = hashlib.sha256()
    for name in table.column_names:
        hashed.update(f"{name} {table[name].to_pylist()!r}".encode())
    return hashed.digest()


def _padded(lists: list[list[int]]) -> NDArray[np.int64]:
    longest = max((len(values) for values in lists), default=0)
    return np.array([values + [0] * (longest - len(values)) for values in lists], np.int64).reshape(-1, longest)
