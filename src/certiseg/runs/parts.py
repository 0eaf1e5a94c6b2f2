"""Partial votes of a run: what some ranges of draws of one image gave, stored with the ranges until all are there.

A part is written once and whole. Its name says which draws it holds, so that a resumed run sees what is missing
without opening it; the file says it again, and adding two parts that hold the same draw is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import read_archive, write_archive
from certiseg.errors import InputError
from certiseg.noise import Stage
from certiseg.tally import SamplingPlan, Tally

FORMAT_VERSION = 1
STAGES: tuple[Stage, Stage] = ("selection", "estimation")
_NAME = re.compile(r"sigma(?P<sigma>[^_]+)(?P<ranges>(_(selection|estimation)\d+-\d+)+)\.npz")


@dataclass(frozen=True, order=True)
class DrawRange:
    """The draws first, ..., last - 1 of one stage at one sigma: the unit of work."""

    sigma: float
    stage: Stage
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def draws(self) -> list[int]:
        return list(range(self.first, self.last))


def missing_ranges(tally: Tally) -> list[DrawRange]:
    """The draws that a tally does not hold, as few ranges as possible, selection first."""
    return _ranges(tally.plan.sigma, {stage: ~done for stage, done in tally.done.items()})


def held_ranges(tally: Tally) -> list[DrawRange]:
    """The draws that a tally holds."""
    return _ranges(tally.plan.sigma, tally.done)


def part_name(sigma: float, ranges: Sequence[DrawRange]) -> str:
    """The file name of a part, which says what it holds."""
    spans = "".join(f"_{part.stage}{part.first}-{part.last}" for part in ranges)
    return f"sigma{sigma:g}{spans}.npz"


def ranges_of_name(path: Path) -> list[DrawRange]:
    """The inverse of `part_name`."""
    matched = _NAME.fullmatch(path.name)
    if matched is None:
        raise InputError(f"{path}: must be partial votes of a run, got another file; remove it and resume")
    sigma = float(matched["sigma"])
    spans = re.findall(r"_(selection|estimation)(\d+)-(\d+)", matched["ranges"])
    return [DrawRange(sigma, stage, int(first), int(last)) for stage, first, last in spans]


def still_missing(plan: SamplingPlan, paths: Iterable[Path]) -> list[DrawRange]:
    """The draws of a plan that none of the stored parts holds, judged by their names."""
    wanted: dict[Stage, NDArray[np.bool_]] = {"selection": np.ones(plan.n0, bool), "estimation": np.ones(plan.n, bool)}
    for held in (part for path in paths for part in ranges_of_name(path) if f"{part.sigma:g}" == f"{plan.sigma:g}"):
        wanted[held.stage][held.first : held.last] = False
    return _ranges(plan.sigma, wanted)


def save_part(tally: Tally, folder: Path) -> Path:
    """Store a tally of some draws: the sums if it has selection draws, of the counts only what is not zero."""
    folder.mkdir(parents=True, exist_ok=True)
    ranges = held_ranges(tally)
    arrays: dict[str, Any] = {"sums": tally.sums} if tally.done["selection"].any() else {}
    for cut, counts in enumerate(tally.counts):
        if counts.any():
            arrays[f"where_{cut}"] = np.packbits(counts != 0)
            arrays[f"counts_{cut}"] = counts[counts != 0]
    meta = {
        "plan": asdict(tally.plan),
        "key": tally.key,
        "size": list(tally.size),
        "num_classes": tally.num_classes,
        "model": tally.model,
        "ranges": [[part.stage, part.first, part.last] for part in ranges],
    }
    path = folder / part_name(tally.plan.sigma, ranges)
    write_archive(path, kind="partial votes", version=FORMAT_VERSION, meta=meta, arrays=arrays)
    return path


def load_part(path: Path) -> Tally:
    """The tally of a stored part."""
    archive = read_archive(path, kind="partial votes", version=FORMAT_VERSION)
    try:
        meta, arrays = archive.meta, archive.arrays
        plan = SamplingPlan(**{**meta["plan"], "snapshots": tuple(meta["plan"]["snapshots"])})
        height, width = meta["size"]
        same = {name: meta[name] for name in ("key", "num_classes", "model")}
        tally = Tally(plan, size=(height, width), **same)
        if "sums" in arrays:
            tally.sums[...] = arrays["sums"]
        for cut, counts in enumerate(tally.counts):
            if f"where_{cut}" in arrays:
                where = np.unpackbits(arrays[f"where_{cut}"], count=counts.size).astype(bool).reshape(counts.shape)
                counts[where] = arrays[f"counts_{cut}"]
        for stage, first, last in meta["ranges"]:
            tally.done[stage][first:last] = True
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: must hold partial votes, but {error} is missing or odd") from None
    return tally


def _ranges(sigma: float, flags: Mapping[Stage, NDArray[np.bool_]]) -> list[DrawRange]:
    """The flagged draws as ranges."""
    found = []
    for stage in STAGES:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], flags[stage], [False]]).astype(np.int8)))
        found += [DrawRange(sigma, stage, int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return found
