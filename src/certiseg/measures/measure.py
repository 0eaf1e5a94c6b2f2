"""A measure: a number in [0, 1] read from one label map, fixed before the estimation draws.

`Measure.value` in plain NumPy is the definition. Values are whole numbers, numerator and denominator, so that they are
exact and the same on every machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import digest
from certiseg.errors import InputError
from certiseg.measures.region import Region

Kind = Literal["share", "free", "overlap", "dice", "steady", "kept", "accuracy"]
Source = Literal["given", "candidate"]
MATCHES: tuple[Kind, ...] = ("kept", "accuracy")
"""Kinds that compare the label of every pixel with a target of its own."""


@dataclass(frozen=True, eq=False)
class Measure:
    """One measure of the label maps of one image."""

    kind: Kind
    name: str
    """What is measured, as a reader would call it: "vehicle 3", "the lane"."""
    label: str
    """The label in words."""
    inside: Region
    """The region; for dice the true pixels, for kinds with targets the pixels that have one."""
    outer: Region
    """Pixels beyond the region where the label counts as well: for overlap the margin, for dice the others."""
    members: NDArray[np.bool_]
    """(C,): the classes under the label."""
    reference: int = 0
    """steady: the pixels under the label in the candidate map."""
    margin: int = 0
    level: int = 0
    least: int = 0
    """For a part of the candidate map: the least area of an object."""
    targets: NDArray[np.uint16] | None = None
    """(H, W): what the label of a pixel is compared with, as a row of the table."""
    table: NDArray[np.bool_] | None = None
    """(T, C): which classes match which target."""
    source: Source = "given"
    """Whether the user brought the region or the selection draws found it."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.source not in get_args(Source):
            raise InputError(f"kind of a measure must be one of {', '.join(get_args(Kind))}, got {self.kind!r}")
        if self.inside.area == 0 and self.kind != "dice":
            raise InputError(f"region of {self.name} must hold at least one pixel, got none")
        if (self.kind in MATCHES) != (self.targets is not None and self.table is not None):
            raise InputError(f"targets must be given for {' and '.join(MATCHES)} alone, got the kind {self.kind}")
        if self.targets is not None and self.table is not None:
            fits = self.targets.shape == self.size and self.table.ndim == 2 and self.targets.max() < len(self.table)
            if not fits or self.table.shape[1] != len(self.members):
                raise InputError(f"targets of {self.name} must be rows of their table, of the size of the image")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the label maps."""
        return self.inside.size

    def value(self, label_map: NDArray[np.integer]) -> tuple[int, int]:
        """Numerator and denominator of the measure of one label map (H, W)."""
        labels = np.asarray(label_map)
        if self.targets is not None and self.table is not None:
            return self.fraction(int((self.table[self.targets, labels] & self.inside.mask).sum()), 0)
        under = self.members[labels]
        return self.fraction(int((under & self.inside.mask).sum()), int((under & self.outer.mask).sum()))

    def fraction(self, hits: Any, beyond: Any) -> tuple[Any, Any]:
        """Numerator and denominator from the hits inside and beyond the region, numbers or arrays."""
        area, zero = self.inside.area, hits * 0
        if self.kind == "overlap":
            return hits, area + beyond
        if self.kind == "dice":
            both = area + hits + beyond
            empty = (both == 0) * 1
            return 2 * hits + empty, both + empty
        if self.kind == "free":
            return area - hits, area + zero
        if self.kind == "steady":
            return area - abs(hits - self.reference), area + zero
        return hits, area + zero

    def sentence(self, bound: float) -> str:
        """What a bound of this measure says about a label map, in words; rounded to the safe side."""
        if bound == 0:
            return f"{self.kind} of {self.name} ({self.label}): nothing is proven"
        part, area = percent(bound), f"{self.inside.area:,} pixels"
        if self.kind == "share":
            return f"at least {part} of {self.name} ({area}) is labelled {self.label}"
        if self.kind == "free":
            return f"at least {part} of {self.name} ({area}) is not labelled {self.label}"
        if self.kind == "overlap":
            near = f"in it and up to {self.margin} pixels around it"
            return f"{self.name} ({area}) and what is labelled {self.label} {near} overlap (IoU) by at least {part}"
        if self.kind == "dice":
            return f"the Dice score of {self.label} is at least {part}"
        if self.kind == "steady":
            apart, now = percent(1 - bound, up=True), percent(self.reference / self.inside.area)
            return f"the part of the image labelled {self.label} differs by at most {apart} of the image from {now}"
        if self.kind == "accuracy":
            return f"at least {part} of the {area} with ground truth are labelled rightly"
        return f"at least {part} of all pixels at once keep {self.label}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything."""
        plain, arrays = pack([self], len(self.members))
        hashed = hashlib.sha256(repr(plain).encode())
        for name in sorted(arrays):
            hashed.update(f"{name} {digest(arrays[name])}".encode())
        return hashed.hexdigest()


def percent(value: float, *, up: bool = False) -> str:
    """A part as per cent with one digit, rounded down, or up; what is exact stays."""
    tenths = math.ceil(value * 1000 - 1e-9) if up else math.floor(value * 1000 + 1e-9)
    return f"{tenths / 10:.1f}".removesuffix(".0") + " %"


_PLAIN = ("kind", "name", "label", "reference", "margin", "level", "least", "source")


def pack(measures: Sequence[Measure], classes: int) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Measures as they are stored: plain values and arrays."""
    regions = [region.runs for measure in measures for region in (measure.inside, measure.outer)]
    arrays: dict[str, NDArray[Any]] = {
        "measure_runs": np.concatenate([np.empty((0, 2), np.int32), *regions]),
        "measure_offsets": np.cumsum([0, *map(len, regions)]).astype(np.int64),
        "measure_members": np.array([measure.members for measure in measures], bool).reshape(-1, classes),
    }
    for index, measure in enumerate(measures):
        if measure.targets is not None and measure.table is not None:
            arrays |= {f"measure_targets_{index}": measure.targets, f"measure_table_{index}": measure.table}
    return [{name: getattr(measure, name) for name in _PLAIN} for measure in measures], arrays


def unpack(
    plain: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]], size: tuple[int, int]
) -> tuple[Measure, ...]:
    """The inverse of `pack`."""
    runs, offsets, members = (arrays[f"measure_{name}"] for name in ("runs", "offsets", "members"))
    if len(offsets) != 2 * len(plain) + 1 or len(members) != len(plain) or offsets[-1] != len(runs):
        raise InputError(f"measures must have two regions and a label each, got other numbers for {len(plain)}")
    if (np.diff(offsets) < 0).any() or offsets[0] != 0 or members.dtype != bool:
        raise InputError("measures must have regions that follow each other, and members that are True or False")
    regions = [Region(runs[a:b], size) for a, b in pairwise(offsets.tolist())]
    return tuple(
        Measure(
            **{name: values[name] for name in _PLAIN},
            inside=regions[2 * index],
            outer=regions[2 * index + 1],
            members=members[index],
            targets=arrays.get(f"measure_targets_{index}"),
            table=arrays.get(f"measure_table_{index}"),
        )
        for index, values in enumerate(plain)
    )
