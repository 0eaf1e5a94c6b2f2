"""From what a label file holds to train ids: tables of ids or of colours, and what to refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from certiseg.datasets.files import read_colours, read_ids, read_mat
from certiseg.errors import InputError

VOID = 255
STRAY_SHARE = 0.05
"""Colours outside the table are void; a map with more of them than this share is none of the data set."""

Coding = Callable[[Path], NDArray[np.uint8]]


@dataclass(frozen=True)
class Ids:
    """Stored id -> train id by a table; an id outside it is refused."""

    table: Mapping[int, int]
    rule: str
    """What a file of this coding holds, for the message: `must hold <rule>, got 7`."""
    read: Callable[[Path], NDArray[Any]] = read_ids

    def __call__(self, path: Path) -> NDArray[np.uint8]:
        return self.decode(self.read(path), str(path))

    def decode(self, stored: NDArray[Any], what: str) -> NDArray[np.uint8]:
        """The train ids (H, W) of stored ids."""
        if stored.dtype == np.uint8:  # the usual case needs no wide integers
            label = self._bytes[stored]
        else:
            label = self._widely(np.clip(stored, -(1 << 31), 1 << 31).astype(np.int64))
        wrong = label < 0
        if wrong.any():
            shown = ", ".join(str(value) for value in np.unique(stored[wrong])[:5])
            raise InputError(
                f"{what} must hold {self.rule}, got {shown}; correct the labels or give the class list they belong to"
            )
        return label.astype(np.uint8)

    @cached_property
    def _bytes(self) -> NDArray[np.int16]:
        return self._widely(np.arange(256))

    def _widely(self, stored: NDArray[np.int64]) -> NDArray[np.int16]:
        lowest, lookup = self._lookup
        outside = len(lookup) - 1
        return lookup[np.where((stored < lowest) | (stored >= lowest + outside), outside, stored - lowest)]

    @cached_property
    def _lookup(self) -> tuple[int, NDArray[np.int16]]:
        """The least id and a row of train ids from it on; unknown ids, and the last place, are -1."""
        lowest = min(self.table)
        lookup = np.full(max(self.table) - lowest + 2, -1, np.int16)
        for stored, train_id in self.table.items():
            lookup[stored - lowest] = train_id
        return lowest, lookup


@dataclass(frozen=True)
class Colours:
    """Colour -> train id by a table; any other colour is void, unless it covers more than `STRAY_SHARE`."""

    table: Mapping[tuple[int, int, int], int]
    rule: str

    def __call__(self, path: Path) -> NDArray[np.uint8]:
        colours = read_colours(path).astype(np.int32)
        packed = colours[..., 0] << 16 | colours[..., 1] << 8 | colours[..., 2]
        keys, ids = self._sorted
        place = np.minimum(np.searchsorted(keys, packed), len(keys) - 1)
        known = keys[place] == packed
        self._refuse_strays(packed[~known], packed.size, path)
        return np.where(known, ids[place], VOID).astype(np.uint8)

    def _refuse_strays(self, strays: NDArray[np.int32], total: int, path: Path) -> None:
        if strays.size <= STRAY_SHARE * total:
            return
        values, counts = np.unique(strays, return_counts=True)
        worst = values[np.argsort(-counts, kind="stable")[:3]].tolist()
        shown = ", ".join(str((value >> 16, value >> 8 & 255, value & 255)) for value in worst)
        raise InputError(
            f"{path} must hold {self.rule}, got {shown} and others on {strays.size / total:.0%} of the pixels; "
            "check which data set it belongs to, and that it was never resized with interpolation"
        )

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        packed = sorted((red << 16 | green << 8 | blue, i) for (red, green, blue), i in self.table.items())
        return np.array([key for key, _ in packed], np.int32), np.array([i for _, i in packed], np.uint8)


@cache
def plain_ids(num_classes: int) -> Ids:
    """The file holds train ids, 255 = void."""
    table = {i: i for i in range(num_classes)} | {VOID: VOID}
    return Ids(table, f"ids 0 to {num_classes - 1} or {VOID} for void")


@cache
def shifted_ids(num_classes: int) -> Ids:
    """The file holds train id + 1 and 0 = void, as mmsegmentation writes it (255 is void too)."""
    table = {i + 1: i for i in range(num_classes)} | {0: VOID, VOID: VOID}
    return Ids(table, f"ids 1 to {num_classes}, or 0 or {VOID} for void")


def mat_ids(table: Mapping[int, int], rule: str, *, variable: str) -> Ids:
    """The ids stand in one variable of a MATLAB file."""
    return Ids(table, rule, partial(read_mat, variable=variable))


@cache
def label_table(name: str) -> Mapping[str, Any]:
    """The published label ids and colours of a data set, from `labels/NAME.yaml`."""
    text = files("certiseg.datasets").joinpath("labels", f"{name}.yaml").read_text(encoding="utf-8")
    table: Mapping[str, Any] = yaml.safe_load(text)
    return table
