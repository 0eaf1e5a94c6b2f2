"""Partial votes of one image, from any ranges of its draws. Those of disjoint ranges add up.

This is the unit of work that can be interrupted, resumed and spread over workers. Posteriors are summed in fixed
point and votes in integers, so the order and the split of the draws cannot matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import read_archive, write_archive
from certiseg.errors import InputError
from certiseg.kernels.counts import count_labels
from certiseg.measures.measure import Measure
from certiseg.measures.record import Record, empty_record, unpack_record
from certiseg.settings import SamplingSettings, Stage, from_stored, stored

FORMAT_VERSION = 3
STAGES: tuple[Stage, Stage] = ("selection", "estimation")


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
        """The index of each draw."""
        return list(range(self.first, self.last))


def flagged_ranges(sigma: float, flags: Mapping[Stage, NDArray[np.bool_]]) -> list[DrawRange]:
    """The flagged draws as few ranges as possible, selection first."""
    found = []
    for stage in STAGES:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], flags[stage], [False]]).astype(np.int8)))
        found += [DrawRange(sigma, stage, int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return found


class Posteriors(Protocol):
    """What a model gives for a batch of draws: see `models.outputs`."""

    def add_posteriors(self, sums: NDArray[np.uint32], *, unit: int, temperature: float) -> None:
        """Add the posterior of every pixel to the sums, in fixed point."""
        ...


class Away(Protocol):
    """Sums and counts that an accelerator holds until they are read: see `on_device`."""

    def bring_sums(self, sums: NDArray[np.uint32]) -> None:
        """Add the posteriors to the sums here, and begin anew there."""
        ...

    def bring_counts(self, counts: NDArray[np.uint16]) -> None:
        """Add the votes to the counts here, and begin anew there."""
        ...


class PartialVotes:
    """Sums of posteriors over some selection draws and counts of votes over some estimation draws of one image."""

    def __init__(
        self,
        settings: SamplingSettings,
        *,
        key: str,
        size: tuple[int, int],
        num_classes: int,
        model: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = replace(settings, max_set=min(settings.max_set, num_classes))
        self.key, self.size, self.num_classes = key, size, num_classes
        self.model: dict[str, Any] = dict(model or {})
        """What all draws must have in common: hash of the model, backend, device, threads."""
        self.prediction: NDArray[np.integer] | None = None
        """(H, W): the model's labels without noise, which belong to no draw and are not stored here."""
        self._sums = np.zeros((*size, num_classes), np.uint32)
        self._counts = np.zeros((len(settings.cuts) * len(settings.anchors), *size, num_classes), np.uint16)
        self.away: Away | None = None
        """What was drawn on a device and not yet read."""
        self.done: dict[Stage, NDArray[np.bool_]] = {stage: np.zeros(settings.draws(stage), bool) for stage in STAGES}
        self.record: Record | None = None
        """Values of measures by draw; see `ask`."""

    @property
    def sums(self) -> NDArray[np.uint32]:
        """(H, W, C): posteriors of the selection draws, in fixed point."""
        if self.away is not None:
            self.away.bring_sums(self._sums)
        return self._sums

    @property
    def counts(self) -> NDArray[np.uint16]:
        """Votes between one cut and the next, at each anchor: every snapshot of an anchor is a sum over its cuts."""
        if self.away is not None:
            self.away.bring_counts(self._counts)
        return self._counts

    @property
    def identity(self) -> tuple[Any, ...]:
        """The image and the settings of the draws."""
        return self.settings, self.key, tuple(self.size), self.num_classes

    def missing(self, stage: Stage, upto: int | None = None) -> list[int]:
        """The draws of a stage that are still to be made, those below `upto` if given."""
        return [int(draw) for draw in np.flatnonzero(~self.done[stage][:upto])]

    def missing_ranges(self) -> list[DrawRange]:
        """The draws that are still to be made."""
        return flagged_ranges(self.settings.sigma, {stage: ~done for stage, done in self.done.items()})

    def held_ranges(self) -> list[DrawRange]:
        """The draws that are there."""
        return flagged_ranges(self.settings.sigma, self.done)

    def ask(self, measures: Sequence[Measure], *, keep_maps: bool = False) -> None:
        """Read measures from every estimation draw, and keep their label maps if wanted; asked before the first."""
        if not measures and not keep_maps and self.record is None:
            return
        draws = self.done["estimation"]
        asked = empty_record(measures, (*self.size, self.num_classes), len(draws), keep_maps=keep_maps)
        if draws.any() and (self.record is None or self.record.asked != asked.asked):
            raise InputError("measures must be the same for all estimation draws, got others after the first ones")
        self.record = self.record if draws.any() else asked

    def add_selection(self, draws: list[int], scores: Posteriors) -> None:
        """Add the posteriors of selection draws."""
        self.claim("selection", draws)
        scores.add_posteriors(self._sums, unit=self.settings.unit, temperature=self.settings.temperature)

    def add_estimation(self, draws: list[int], labels: NDArray[np.integer]) -> None:
        """Add the votes of estimation draws; labels: (draws, H, W)."""
        self.claim("estimation", draws)
        parts = part_of(self.settings, np.asarray(draws))
        for part in np.unique(parts):
            count_labels(np.ascontiguousarray(labels[parts == part]), self._counts[part])
        if self.record is not None:
            self.record.add(draws, labels)

    def add(self, other: PartialVotes) -> None:
        """Add other votes of the same image and settings; a draw that both hold is refused, never counted twice."""
        if self.identity != other.identity or self.model != other.model:
            raise InputError("partial votes must be of the same image, model, threads and settings to be added")
        draws = {stage: [int(draw) for draw in np.flatnonzero(done)] for stage, done in other.done.items()}
        self._require_same_measures(other)
        for stage in draws:
            self._require_new(stage, draws[stage])
        for stage in draws:
            self.claim(stage, draws[stage])
        self._sums += other.sums
        self._counts += other.counts
        if other.record is not None:
            self.record = self.record or other.record.emptied()
            self.record.unite(other.record)

    def take_selection(self, other: PartialVotes) -> None:
        """Add the selection draws of other votes alone."""
        self.claim("selection", [int(draw) for draw in np.flatnonzero(other.done["selection"])])
        self._sums += other.sums

    def _require_same_measures(self, other: PartialVotes) -> None:
        """Estimation draws with and without values cannot be united."""
        asked = [
            None if votes.record is None else votes.record.asked
            for votes in (self, other)
            if votes.done["estimation"].any() or votes.record is not None
        ]
        if len(set(asked)) > 1:
            raise InputError("partial votes must be of the same measures to be added")

    def save(self, path: str | Path) -> None:
        """Write one archive: the sums if there are selection draws, of the counts only what is not zero."""
        arrays: dict[str, NDArray[Any]] = {"sums": self.sums} if self.done["selection"].any() else {}
        for part, counts in enumerate(self.counts):
            if counts.any():
                arrays[f"where_{part}"] = np.packbits(counts != 0)
                arrays[f"counts_{part}"] = counts[counts != 0]
        meta = {
            "settings": stored(self.settings),
            "key": self.key,
            "size": list(self.size),
            "num_classes": self.num_classes,
            "model": self.model,
            "ranges": [[part.stage, part.first, part.last] for part in self.held_ranges()],
        }
        arrays |= self.settings.threat.pack()[1]
        if self.record is not None:
            meta["record"], record_arrays = self.record.pack()
            arrays |= record_arrays
        write_archive(path, kind="partial votes", version=FORMAT_VERSION, meta=meta, arrays=arrays)

    def claim(self, stage: Stage, draws: list[int]) -> None:
        """Mark draws as made; one that is there already is refused."""
        self._require_new(stage, draws)
        self.done[stage][draws] = True

    def _require_new(self, stage: Stage, draws: list[int]) -> None:
        if draws and not 0 <= min(draws) <= max(draws) < len(self.done[stage]):
            raise InputError(f"draws must be in 0..{len(self.done[stage]) - 1}, got {min(draws)}..{max(draws)}")
        if len(set(draws)) < len(draws) or self.done[stage][draws].any():
            raise InputError(f"draws of one stage must be counted once, got {stage} draws {draws[:3]}... again")


def load_partial_votes(path: str | Path) -> PartialVotes:
    """Read what `PartialVotes.save` wrote."""
    archive = read_archive(path, kind="partial votes", version=FORMAT_VERSION)
    try:
        meta, arrays = archive.meta, archive.arrays
        height, width = meta["size"]
        same = {name: meta[name] for name in ("key", "num_classes", "model")}
        settings = from_stored(SamplingSettings, meta["settings"], arrays)
        partial = PartialVotes(settings, size=(height, width), **same)
        for stage, first, last in meta["ranges"]:
            partial.claim(stage, list(range(first, last)))
        if partial.done["selection"].any():
            partial.sums[...] = _of_type(arrays["sums"], np.uint32)
        for part, counts in enumerate(partial.counts):
            if f"where_{part}" in arrays:
                where = np.unpackbits(arrays[f"where_{part}"], count=counts.size).astype(bool).reshape(counts.shape)
                counts[where] = _of_type(arrays[f"counts_{part}"], np.uint16)
        _check_totals(partial)
        if "record" in meta:
            partial.record = unpack_record(meta["record"], arrays)
            partial.record.require_draws(partial.done["estimation"])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise InputError(f"{path}: must hold partial votes, but cannot be read: {error}") from None
    return partial


def part_of(settings: SamplingSettings, draws: NDArray[np.integer]) -> NDArray[np.integer]:
    """Where the votes of estimation draws are counted: by the cut they come before, then by their anchor."""
    index, anchor = np.divmod(draws, len(settings.anchors))
    return np.searchsorted(settings.cuts, index, side="right") * len(settings.anchors) + anchor


def _of_type(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    if array.dtype != dtype:
        raise InputError(f"arrays must be {np.dtype(dtype)}, got {array.dtype}")
    return array


def _check_totals(partial: PartialVotes) -> None:
    """Every pixel has as many votes between two cuts as there were draws."""
    draws = np.flatnonzero(partial.done["estimation"])
    made = np.bincount(part_of(partial.settings, draws), minlength=len(partial.counts))
    for count, counts in zip(made, partial.counts, strict=True):
        if not (counts.sum(axis=-1) == count).all():
            raise InputError(f"counts of every pixel must add up to the number of draws, {count}")
