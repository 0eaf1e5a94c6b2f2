"""The independent checker's own words on measures: their stored form, their values, and bounds from values.

Restates section 11 of docs/design.md in plain NumPy. Like verify.py it imports nothing from what it checks.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import digest

_VALUES = ("numerators", "denominators")


def first_values(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], draws: int) -> dict[str, NDArray[Any]]:
    """The values of the first draws, under the names that values have."""
    return {name: arrays[name][:draws] for name in _VALUES} if "record" in meta else {}


def record_identity(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """What measures add to the digest of votes; nothing where there are none."""
    if "record" not in meta:
        return b""
    hashed = hashlib.sha256(json.dumps(meta["record"], sort_keys=True).encode())
    for name in sorted(name for name in arrays if name in _VALUES or name.startswith("measure_")):
        hashed.update(f"{name} {digest(arrays[name])}".encode())
    return hashed.hexdigest().encode()


def problem_of_values(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], draws: int) -> str | None:
    """Why stored values cannot be those of so many draws, in a sentence; None where they can."""
    numerators, denominators = (arrays[name] for name in _VALUES)
    wanted = (draws, len(record["measures"]))
    if numerators.shape != wanted or denominators.shape != wanted:
        return f"there must be a value of each of the {wanted[1]} measures in each of the {draws} draws"
    if any(array.dtype.kind not in "iu" for array in (numerators, denominators)):
        return "values must be fractions of whole numbers"
    if (denominators == 0).any() or (numerators > denominators).any() or (numerators < 0).any():
        return "a value lies outside [0, 1], or is missing"
    return None


def values_at(arrays: Mapping[str, NDArray[Any]], anchors: int, used: list[int]) -> list[NDArray[np.float64]]:
    """The values (n, M) at each anchor that the range needs; draw d was made at the anchor d % anchors."""
    values = arrays["numerators"].astype(np.float64) / arrays["denominators"]
    return [values[[draw for draw in range(len(values)) if draw % anchors == anchor]] for anchor in used]


def bounds_from(at_anchors: list[NDArray[np.float64]], critical: int | None) -> NDArray[np.float64]:
    """For each measure the largest of its values that at least `critical` of them reach, at the worst anchor."""
    found = np.full((len(at_anchors), at_anchors[0].shape[1]), 0.0)
    for row, values in enumerate(at_anchors):
        for index, column in enumerate(values.T):
            reached = [value for value in set(column.tolist()) if critical and (column >= value).sum() >= critical]
            found[row, index] = max(reached, default=0.0)
    return np.asarray(found.min(axis=0))


def hits_at(at_anchors: list[NDArray[np.float64]], level: float) -> NDArray[np.int64]:
    """(M,): in how many draws at the worst anchor a measure reaches a level."""
    hits = np.array([(values >= level).sum(axis=0) for values in at_anchors])
    return np.asarray(hits.min(axis=0))


def odd_totals(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], counts: list[NDArray[Any]]) -> str | None:
    """Where values and counts of the same draws disagree: summed over draws, hits in a region are votes in it."""
    record, anchors = meta["record"], len(counts)
    if problem := problem_of_values(record, arrays, meta["n"] * anchors):
        return problem
    for index, measure in enumerate(record["measures"]):
        inside = _mask(arrays, 2 * index, tuple(record["shape"][:2]))
        if measure["kind"] in ("kept", "accuracy"):
            wanted = arrays[f"measure_table_{index}"][arrays[f"measure_targets_{index}"]] & inside[..., None]
        elif measure["kind"] in ("share", "free", "overlap"):
            under = arrays["measure_members"][index]
            wanted = (~under if measure["kind"] == "free" else under) & inside[..., None]
        else:
            continue
        for anchor, of_anchor in enumerate(counts):
            if int(arrays["numerators"][anchor::anchors, index].sum(dtype=np.int64)) != int(of_anchor[wanted].sum()):
                return f"the values of measure {index} do not add up to the votes of the same draws"
    return None


def kept_maps(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[np.int64]] | None:
    """The kept label maps by draw, None where none are kept."""
    if "map_draws" not in arrays:
        return None
    height, width, classes = record["shape"]
    kind = np.dtype("u1" if classes <= 256 else "u2")
    content, ends = arrays["map_bytes"].tobytes(), [int(end) for end in arrays["map_ends"]]
    maps = []
    for draw, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if int(arrays["map_draws"][draw]) != draw:
            raise ValueError(f"the label map of draw {draw} is missing")
        label_map = np.frombuffer(zlib.decompress(content[start:end]), kind).reshape(height, width).copy()
        for row in range(1, height):
            label_map[row] += label_map[row - 1]
        if label_map.max() >= classes:
            raise ValueError(f"the label map of draw {draw} holds unknown classes")
        maps.append(label_map.astype(np.int64))
    return maps


def value_of(
    record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], index: int, label_map: NDArray[np.int64]
) -> tuple[int, int]:
    """Numerator and denominator of a measure of one label map, as section 11 defines it."""
    kind, size = record["measures"][index]["kind"], tuple(record["shape"][:2])
    inside, beyond = (_mask(arrays, 2 * index + which, size) for which in (0, 1))
    if kind in ("kept", "accuracy"):
        table, targets = arrays[f"measure_table_{index}"], arrays[f"measure_targets_{index}"]
        right = table[targets[inside], label_map[inside]]
        return int(right.sum()), int(inside.sum())
    under = np.isin(label_map, np.flatnonzero(arrays["measure_members"][index]))
    region, both = int(inside.sum()), int((under & inside).sum())
    if kind == "share":
        return both, region
    if kind == "free":
        return int((inside & ~under).sum()), region
    if kind == "overlap":
        return both, int((inside | (under & beyond)).sum())
    if kind == "steady":
        return region - abs(both - int(record["measures"][index]["reference"])), region
    if kind == "dice":
        labelled = int((under & (inside | beyond)).sum())
        return (2 * both, region + labelled) if region + labelled else (1, 1)
    raise ValueError(f"{kind!r} is no kind of measure")


def _mask(arrays: Mapping[str, NDArray[Any]], place: int, size: tuple[int, ...]) -> NDArray[np.bool_]:
    first, last = (int(arrays["measure_offsets"][place + k]) for k in (0, 1))
    flat = np.zeros(size[0] * size[1], bool)
    for start, stop in arrays["measure_runs"][first:last].tolist():
        if not 0 <= start < stop <= flat.size:
            raise ValueError("a region reaches beyond the image")
        flat[start:stop] = True
    return flat.reshape(size)


def odd_regions(
    record: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    candidate: NDArray[np.integer],
    under: Mapping[str, set[int]],
    paths: list[list[set[int]]] | None,
    notes: list[str],
) -> str | None:
    """What is wrong with the regions and labels of measures, given the candidate map; None where nothing is.

    under: the classes under each label that is known by name; paths: the classes under the label of each class at each
    level, None where no hierarchy is known. A part of the candidate map must be one, and none of its kind may be left
    out: what is left out after the draws is chosen by them. Notes tell what is taken as it is stored.
    """
    asked: dict[tuple[bytes, int, str], set[bytes]] = {}
    size = tuple(record["shape"][:2])
    for index, measure in enumerate(record["measures"]):
        kind, inside = measure["kind"], _mask(arrays, 2 * index, size)
        members = arrays["measure_members"][index]
        if kind in ("kept", "accuracy"):
            if wrong := _odd_table(measure, arrays, index, candidate, inside, paths):
                return f"measure {index}: {wrong}"
            if kind == "accuracy" or (measure["level"] and paths is None):
                _note(notes, "the ground truth, or the levels of the hierarchy, are taken as they are stored")
            continue
        named = {y for name in measure["label"].split(" or ") for y in under.get(name, {-1})}
        if -1 in named and paths is not None:
            return f"measure {index}: {measure['label']!r} is no label of the hierarchy; name the one that was meant"
        if -1 in named:
            _note(notes, "labels that are no classes of the model are taken as they are named: give the hierarchy")
        elif named != set(np.flatnonzero(members).tolist()):
            return f"measure {index}: {measure['label']} has other classes in the hierarchy"
        if kind == "overlap":
            margin = np.zeros(size, bool)
            for row, column in np.argwhere(inside & ~_surrounded(inside)).tolist():
                reach = int(measure["margin"])
                margin[max(row - reach, 0) : row + reach + 1, max(column - reach, 0) : column + reach + 1] = True
            if (_mask(arrays, 2 * index + 1, size) != (margin & ~inside)).any():
                return f"measure {index}: the margin of the region is not {measure['margin']} pixels wide"
        if kind == "steady":
            if int(members[candidate].sum()) != measure["reference"] or not inside.all():
                return f"measure {index}: {measure['reference']} is not the area in the candidate map"
        elif measure["source"] != "candidate":
            if kind == "dice" or not inside.all():
                _note(notes, "regions that were given, and their names, are taken as they are stored")
        else:
            before, _, number = measure["name"].rpartition(" ")
            if before != measure["label"] or not number.isdigit():
                return f"measure {index}: an object labelled {measure['label']} is called {measure['name']!r}"
            asked.setdefault((members.tobytes(), measure["least"], kind), set()).add(np.packbits(inside).tobytes())
    for (members_bytes, least, kind), regions in asked.items():
        wanted = _parts(np.frombuffer(members_bytes, bool)[candidate], least)
        if regions != wanted:
            return f"{kind}: {len(regions)} objects are stored, {len(wanted)} other ones are in the candidate map"
    return None


def _odd_table(
    measure: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    index: int,
    candidate: NDArray[np.integer],
    inside: NDArray[np.bool_],
    paths: list[list[set[int]]] | None,
) -> str | None:
    """What is wrong with the answers that count as right at each pixel; None where nothing is."""
    table, targets = arrays[f"measure_table_{index}"], arrays[f"measure_targets_{index}"]
    classes = table.shape[1]
    if measure["kind"] == "accuracy":
        used = np.unique(targets[inside])
        same = used.max() < classes and (table[used] == np.eye(classes, dtype=bool)[used]).all()
        return None if same else "right is not what the ground truth says"
    level = measure["level"]
    if measure["label"] != ("their class" if level == 0 else f"their label at level {level}") or not inside.all():
        return f"what is kept is not what {measure['label']!r} says"
    own = np.eye(classes, dtype=bool)
    if level and paths is not None:
        if level >= len(paths[0]):
            return f"the hierarchy has no level {level}"
        own = np.array([[y in path[level] for y in range(classes)] for path in paths])
    pairs = np.unique(np.stack([targets.ravel(), candidate.ravel()]).astype(np.int64), axis=1)
    known = not level or paths is not None
    same = (table[pairs[0]] == own[pairs[1]]).all() if known else table[pairs[0], pairs[1]].all()
    return None if same else "what is kept is not the candidate map of the selection draws"


def _note(notes: list[str], told: str) -> None:
    if told not in notes:
        notes.append(told)


def _surrounded(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels of a mask whose eight neighbours belong to it as well."""
    padded, (height, width) = np.pad(mask, 1), mask.shape
    near = [padded[row : row + height, column : column + width] for row in range(3) for column in range(3)]
    return np.asarray(np.logical_and.reduce(near))


def _parts(mask: NDArray[np.bool_], least: int) -> set[bytes]:
    """The connected parts of a mask (8 neighbours) of at least so many pixels, found by walking from pixel to pixel."""
    height, width = mask.shape
    left, found = {(row, column) for row, column in np.argwhere(mask).tolist()}, set()
    while left:
        waiting, part = [left.pop()], list[int]()
        while waiting:
            row, column = waiting.pop()
            part.append(row * width + column)
            near = {(row + a, column + b) for a in (-1, 0, 1) for b in (-1, 0, 1)} & left
            left -= near
            waiting += near
        if len(part) >= least:
            flat = np.zeros(height * width, bool)
            flat[part] = True
            found.add(np.packbits(flat).tobytes())
    return found
