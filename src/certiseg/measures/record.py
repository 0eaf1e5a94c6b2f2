"""The values of measures by draw: read from every label map while drawing, united by draw index, never added."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import digest
from certiseg.errors import InputError
from certiseg.kernels.measures import region_hits, target_matches
from certiseg.measures.measure import Measure, pack, unpack
from certiseg.measures.region import Region

Values = tuple[NDArray[np.uint32], NDArray[np.uint32]]


class Reader:
    """Reads all measures from label maps in one pass: regions that measures share are counted once."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = tuple(measures)
        self.compared = tuple(measure for measure in self.measures if measure.targets is not None)
        """Those that compare the whole map with targets."""
        parts: dict[tuple[bytes, bytes], int] = {}
        regions: list[Region] = []
        members: list[NDArray[np.bool_]] = []
        self.places: list[tuple[int, int]] = []
        for measure in self.measures:
            place = []
            for region in () if measure.targets is not None else (measure.inside, measure.outer):
                key = region.runs.tobytes(), measure.members.tobytes()
                if key not in parts:
                    parts[key] = len(regions)
                    regions.append(region)
                    members.append(measure.members)
                place.append(parts[key])
            self.places.append((place[0], place[1]) if place else (-1, -1))
        self.runs = np.concatenate([np.empty((0, 2), np.int32), *(region.runs for region in regions)])
        self.offsets = np.cumsum([0, *(len(region.runs) for region in regions)])
        self.members = np.array(members, np.uint8).reshape(len(regions), -1) if regions else np.empty((0, 0), np.uint8)

    def read(self, labels: NDArray[np.integer]) -> Values:
        """Numerators and denominators (D, M) of label maps (D, H, W)."""
        flat = np.ascontiguousarray(labels).reshape(len(labels), -1)
        hits = np.zeros((len(flat), len(self.members)), np.int64)
        if len(self.members):
            region_hits(flat, self.runs, self.offsets, self.members, hits)
        matches = np.zeros((len(flat), len(self.compared)), np.int64)
        for place, measure in enumerate(self.compared):
            assert measure.targets is not None
            assert measure.table is not None
            found = np.empty(len(flat), np.int64)
            target_matches(flat, measure.targets.reshape(-1), measure.table.view(np.uint8), found)
            matches[:, place] = found
        return self.values_of(hits, matches)

    def values_of(self, hits: NDArray[np.int64], matches: NDArray[np.int64]) -> Values:
        """Numerators and denominators from the hits in regions (D, P) and the matches of compared maps (D, T)."""
        shape = len(hits), len(self.measures)
        numerators, denominators = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
        compared = iter(matches.T)
        for index, (measure, (inside, outer)) in enumerate(zip(self.measures, self.places, strict=True)):
            if measure.targets is not None:
                found, beyond = next(compared), np.zeros(len(hits), np.int64)
            else:
                found, beyond = hits[:, inside], hits[:, outer]
            numerators[:, index], denominators[:, index] = measure.fraction(found, beyond)
        return numerators, denominators


@dataclass(frozen=True, eq=False)
class Record:
    """Values of M measures in D draws, and the label maps themselves where they are kept."""

    measures: tuple[Measure, ...]
    numerators: NDArray[np.uint32]
    """(D, M)"""
    denominators: NDArray[np.uint32]
    """(D, M); 0 where the draw is not made."""
    shape: tuple[int, int, int]
    """Height, width and number of classes of the label maps."""
    maps: dict[int, bytes] | None = None
    """Label maps by draw, compressed."""
    explored: bool = False
    """Whether the measures were chosen when the draws could have been looked at."""

    def __post_init__(self) -> None:
        wanted, (height, width, classes) = (len(self.numerators), len(self.measures)), self.shape
        for name in ("numerators", "denominators"):
            array = getattr(self, name)
            if array.shape != wanted or array.dtype != np.uint32:
                raise InputError(f"{name} of measures must be 32-bit numbers {wanted}, got {array.dtype} {array.shape}")
        if (self.numerators > self.denominators).any():
            raise InputError("values of measures must lie in [0, 1], got a numerator above its denominator")
        if any(measure.size != (height, width) or len(measure.members) != classes for measure in self.measures):
            raise InputError(f"measures must be of {height}x{width} pixels and {classes} classes, got others")

    @cached_property
    def reader(self) -> Reader:
        """What reads the measures from label maps."""
        return Reader(self.measures)

    @property
    def values(self) -> NDArray[np.float64]:
        """(D, M): the measures as numbers in [0, 1]."""
        return self.numerators / np.maximum(self.denominators, 1)

    @cached_property
    def asked(self) -> str:
        """SHA-256 of what was asked: partial records of the same can be united."""
        parts = [*(measure.digest for measure in self.measures), str(self.maps is not None), str(self.explored)]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def add(self, draws: Sequence[int], labels: NDArray[np.integer]) -> None:
        """Enter the values of draws; labels: (draws, H, W)."""
        self.enter(draws, self.reader.read(labels))
        if self.maps is not None:
            for draw, label_map in zip(draws, labels, strict=True):
                self.maps[draw] = _deflate(label_map, self.shape[2])

    def enter(self, draws: Sequence[int], values: Values) -> None:
        """Enter values that were read elsewhere."""
        rows = list(draws)
        self._require_new(rows)
        self.numerators[rows], self.denominators[rows] = values

    def unite(self, other: Record) -> None:
        """Take over the draws of another record of the same measures; one that both hold is refused."""
        if self.asked != other.asked:
            raise InputError("partial votes must be of the same measures to be united")
        rows = np.flatnonzero(other.denominators.any(axis=1))
        self._require_new(sorted({*rows.tolist(), *(other.maps or {})}))
        self.numerators[rows], self.denominators[rows] = other.numerators[rows], other.denominators[rows]
        if self.maps is not None and other.maps is not None:
            self.maps.update(other.maps)

    def _require_new(self, rows: list[int]) -> None:
        held = set(self.maps or {}) & set(rows)
        if len(set(rows)) < len(rows) or held or self.denominators[rows].any():
            raise InputError(f"values of a draw must be entered once, got draws {rows[:3]}... again")

    def require_draws(self, made: NDArray[np.bool_]) -> None:
        """Refuse a record that does not hold the values, and the maps where they are kept, of just these draws."""
        whole = (self.denominators.any(axis=1) == made).all() and (self.denominators.all(axis=1) == made).all()
        if len(made) != len(self.numerators) or (self.measures and not whole):
            raise InputError("values of measures must be there for just the draws that were made")
        if self.maps is not None and sorted(self.maps) != np.flatnonzero(made).tolist():
            raise InputError("label maps must be kept for just the draws that were made")

    def emptied(self) -> Record:
        """A record of the same measures before its first draw."""
        draws, keep_maps = len(self.numerators), self.maps is not None
        return empty_record(self.measures, self.shape, draws, keep_maps=keep_maps, explored=self.explored)

    def first(self, draws: int) -> Record:
        """The record of the first draws."""
        return self._rows(range(draws))

    def _rows(self, draws: Sequence[int]) -> Record:
        maps = None if self.maps is None else {row: self.maps[draw] for row, draw in enumerate(draws)}
        kept = list(draws)
        values = self.numerators[kept], self.denominators[kept]
        return Record(self.measures, *values, self.shape, maps, self.explored)

    def label_map(self, draw: int) -> NDArray[np.integer]:
        """(H, W): a kept label map."""
        if self.maps is None or draw not in self.maps:
            raise InputError("label maps must be kept to be read, got votes without them; sample with keep_maps=True")
        return _inflate(self.maps[draw], self.shape)

    def ask(self, measures: Sequence[Measure]) -> Record:
        """Other measures of the kept label maps: exploration, because the maps were there to be looked at."""
        draws = len(self.numerators)
        asked = empty_record(measures, self.shape, draws, keep_maps=False, explored=True)
        for draw in range(draws):
            asked.add([draw], self.label_map(draw)[None])
        return replace(asked, maps=self.maps)

    def digest(self) -> str:
        """SHA-256 of measures and values as they are stored; kept label maps follow from the draws and are left out."""
        meta, arrays = self.pack()
        hashed = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
        for name in sorted(name for name in arrays if not name.startswith("map_")):
            hashed.update(f"{name} {digest(arrays[name])}".encode())
        return hashed.hexdigest()

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays as they are stored."""
        plain, arrays = pack(self.measures, self.shape[2])
        arrays |= {"numerators": self.numerators, "denominators": self.denominators}
        if self.maps is not None:
            kept = sorted(self.maps)
            arrays["map_draws"] = np.array(kept, np.int64)
            arrays["map_ends"] = np.cumsum([len(self.maps[draw]) for draw in kept], dtype=np.int64)
            arrays["map_bytes"] = np.frombuffer(b"".join(self.maps[draw] for draw in kept), np.uint8)
        return {"measures": plain, "shape": list(self.shape), "explored": self.explored}, arrays


def empty_record(
    measures: Sequence[Measure], shape: tuple[int, int, int], draws: int, *, keep_maps: bool, explored: bool = False
) -> Record:
    """A record before its first draw."""
    numerators, denominators = (np.zeros((draws, len(measures)), np.uint32) for _ in range(2))
    return Record(tuple(measures), numerators, denominators, shape, {} if keep_maps else None, explored)


def unpack_record(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Record:
    """The inverse of `Record.pack`; the arrays are copied, because more draws may be entered."""
    height, width, classes = (int(number) for number in meta["shape"])
    maps = None
    if "map_draws" in arrays:
        ends, content = arrays["map_ends"].tolist(), arrays["map_bytes"].tobytes()
        starts = [0, *ends]
        draws = arrays["map_draws"].tolist()
        maps = {draw: content[a:b] for draw, a, b in zip(draws, starts, ends, strict=False)}
    return Record(
        unpack(meta["measures"], arrays, (height, width)),
        arrays["numerators"].copy(),
        arrays["denominators"].copy(),
        (height, width, classes),
        maps,
        bool(meta["explored"]),
    )


def _deflate(label_map: NDArray[np.integer], classes: int) -> bytes:
    """A label map in few bytes: most pixels have the label of the pixel above."""
    kept = np.ascontiguousarray(label_map, np.uint8 if classes <= 256 else np.uint16)
    above = np.concatenate([np.zeros_like(kept[:1]), kept[:-1]])
    return zlib.compress((kept - above).tobytes(), 6)


def _inflate(content: bytes, shape: tuple[int, int, int]) -> NDArray[np.integer]:
    height, width, classes = shape
    kind = np.dtype(np.uint8 if classes <= 256 else np.uint16)
    try:
        steps = np.frombuffer(zlib.decompressobj().decompress(content, height * width * kind.itemsize), kind)
        label_map = np.cumsum(steps.reshape(height, width), axis=0, dtype=kind)
    except (zlib.error, ValueError):
        raise InputError(f"a kept label map must have {height}x{width} labels, got others") from None
    if label_map.max() >= classes:
        raise InputError(f"a kept label map must hold classes 0..{classes - 1}, got {label_map.max()}")
    return label_map
