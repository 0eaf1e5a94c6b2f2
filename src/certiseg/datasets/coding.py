"""From what a label file holds to train ids: tables of ids or of colours, and what to refuse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.images import IdMap, decode, read_ids, reason, require_file, require_mode, require_size

Labels = NDArray[np.uint8]
Coding = Callable[[Path], Labels]
STRAY_SHARE = 0.05
"""Colours outside the table are void; a map with a larger share of them belongs to another data set."""


@dataclass(frozen=True)
class Ids:
    """Stored id -> train id by a table; an id outside it is refused."""

    table: Mapping[int, int]
    rule: str
    """What a file of this coding holds, for the message: `must hold <rule>, got 7`."""
    read: Callable[[Path], IdMap] = read_ids

    def __call__(self, path: Path) -> Labels:
        return self.decode(self.read(path), str(path))

    def decode(self, stored: IdMap, what: str) -> Labels:
        """The train ids (H, W) of stored ids."""
        if stored.dtype == np.uint8:  # the usual case needs no sorting
            values, places = np.arange(256), stored
        else:
            values, places = np.unique(stored, return_inverse=True)
        label = np.array([self.table.get(int(value), -1) for value in values])[places].reshape(stored.shape)
        if (label < 0).any():
            shown = ", ".join(str(value) for value in np.unique(stored[label < 0])[:5])
            raise InputError(
                f"{what} must hold {self.rule}, got {shown}; correct the labels or give the class list they belong to"
            )
        return label.astype(np.uint8)


@dataclass(frozen=True)
class Colours:
    """Colour -> train id by a table; other colours are void, up to `STRAY_SHARE` of the pixels."""

    table: Mapping[tuple[int, ...], int]
    rule: str

    def __call__(self, path: Path) -> Labels:
        opened = decode(path, kind="label")
        require_mode(opened, ("RGB", "P"), str(path), "an RGB colour-coded label map", "save it as RGB PNG")
        pixels = np.array(opened.convert("RGB"))
        packed = pixels @ np.array([1 << 16, 1 << 8, 1])
        values, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
        colours = [(value >> 16, value >> 8 & 255, value & 255) for value in values.tolist()]
        strays = np.array([colour not in self.table for colour in colours])
        share = counts[strays].sum() / packed.size
        if share > STRAY_SHARE:
            worst = [i for i in np.argsort(-counts, kind="stable") if strays[i]][:3]
            raise InputError(
                f"{path} must hold {self.rule}, got {', '.join(str(colours[i]) for i in worst)} and others on "
                f"{share:.0%} of the pixels; check which data set it belongs to, and that it was never resized with "
                "interpolation"
            )
        return np.array([self.table.get(colour, VOID) for colour in colours], np.uint8)[places].reshape(packed.shape)


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
def published_ids(name: str) -> dict[int, int]:
    """Published label id -> train id of a data set, from `labels/NAME.yaml`."""
    return dict(_published(name)["ids"])


@cache
def published_colours(name: str) -> dict[str, tuple[int, ...]]:
    """Class name -> published colour, from `labels/NAME.yaml`."""
    return {key: tuple(colour) for key, colour in _published(name)["colours"].items()}


def _published(name: str) -> dict[str, dict[Any, Any]]:
    text = files("certiseg.datasets").joinpath("labels", f"{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[Any, Any]] = yaml.safe_load(text)
    return table


def read_mat(path: Path, *, variable: str) -> IdMap:
    """The ids (H, W) in one variable of a MATLAB file of version 4 to 7; nothing else in it is read."""
    from scipy.io import loadmat, whosmat

    require_file(path, kind="label")
    what = f"{path}, variable {variable},"
    try:
        shapes = {name: shape for name, shape, _ in whosmat(str(path), appendmat=False)}
        if variable in shapes:
            require_size(shapes[variable][0], math.prod(shapes[variable][1:]), what)
            return as_ids(loadmat(str(path), appendmat=False, variable_names=[variable])[variable], what)
    except InputError:
        raise
    except NotImplementedError:
        raise InputError(f"{path} must be a MATLAB file up to version 7, got version 7.3; save it with -v7") from None
    except Exception as error:  # SciPy raises many types on damaged files
        raise InputError(f"{path} must be a readable MATLAB file, got: {reason(error)}; download it again") from None
    found = ", ".join(sorted(shapes)[:8]) or "none"
    raise InputError(f"{path} must hold the variable {variable}, got {found}; check which data set it belongs to")


def as_ids(stored: ArrayLike | None, what: str) -> IdMap:
    """An array (H, W) of whole numbers, refused if it is anything else."""
    try:
        array = np.asarray(stored)
    except ValueError:
        raise InputError(f"{what} must be a matrix of ids, got rows of different lengths; replace it") from None
    if array.ndim != 2 or not array.size or array.dtype.kind not in "uifb":
        raise InputError(f"{what} must be a matrix of ids, got {array.dtype} of shape {array.shape}; replace it")
    require_size(array.shape[0], array.shape[1], what)
    if array.dtype.kind != "f":
        return array.astype(np.uint8) if array.dtype.kind == "b" else array
    with np.errstate(invalid="ignore"):
        whole: IdMap = array.astype(np.int64)
    if not np.array_equal(whole, array):
        raise InputError(f"{what} must hold whole numbers, got fractions or NaN; replace it")
    return whole
