"""The unit of work, stated once for all engines: bring one image forward by some ranges of draws.

`perform` works on a run folder: the run's own where the engine is this process, a scratch folder of the worker
otherwise. It reads what is there (votes of other sigmas, partial votes), draws what it was asked to, and writes
partial votes, or all files of the image if no draw is missing any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.images import read_image
from certiseg.runs.finish import finish_image, plan_of
from certiseg.runs.folder import RunFolder
from certiseg.runs.parts import DrawRange, held_ranges, load_part, save_part, still_missing
from certiseg.scores import PixelSums
from certiseg.tally import Tally, draw, settled, start_tally
from certiseg.votes import Votes, votes_of_tally

SLICE_SECONDS = 5.0
"""About how long a worker draws between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Task:
    """Some draws of one image. With none, and all partial votes in `files`, the image is finished."""

    number: int
    name: str
    image: NDArray[np.uint8]
    label: NDArray[np.integer]
    ranges: tuple[DrawRange, ...]
    seconds: float
    """After so long the worker gives back what it has; the rest is asked for again."""
    files: dict[str, bytes] = field(default_factory=dict)
    """What lies in the run folder and is needed, by path inside the folder."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a task."""

    draws: int = 0
    left: tuple[DrawRange, ...] = ()
    """What there was no time for."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Files for the run folder, the rows last; empty where the engine wrote into the folder itself."""
    sums: dict[str, PixelSums] | None = None
    """Sums of the first setting, if the image is finished."""
    refused: str | None = None
    """Why the image cannot be used."""
    place: str = "here"


def perform(
    task: Task, segmenter: Any, folder: RunFolder, *, each: Callable[[int], None] | None = None, place: str = "here"
) -> Answer:
    """Make the draws of a task and write what they lead to into the folder; each(k) is called after k more draws."""
    pace = _Pace(task.seconds, each)
    try:
        pixels = read_image(task.image)
        at_hand: Votes | None = None
        for sigma in folder.manifest.sigmas:
            if not folder.votes_path(task.name, sigma).is_file():
                ranges = [part for part in task.ranges if part.sigma == sigma]
                at_hand = _bring_forward(folder, task.name, pixels, sigma, ranges, segmenter, pace) or at_hand
        sums = None
        if all(folder.votes_path(task.name, sigma).is_file() for sigma in folder.manifest.sigmas):
            sums = finish_image(folder, task.name, task.label, segmenter.predict(task.image), at_hand=at_hand)
    except InputError as error:
        return Answer(refused=str(error), draws=pace.draws, place=place)
    return Answer(draws=pace.draws, left=tuple(pace.left), sums=sums, place=place)


def missing_draws(folder: RunFolder, name: str) -> list[DrawRange]:
    """The draws of an image that neither its votes nor its partial votes hold."""
    manifest = folder.manifest
    undecided = [sigma for sigma in manifest.sigmas if not folder.votes_path(name, sigma).is_file()]
    return [part for sigma in undecided for part in still_missing(plan_of(manifest, sigma), folder.parts(name, sigma))]


def split(ranges: Sequence[DrawRange], size: int, batch: int) -> list[tuple[DrawRange, ...]]:
    """Ranges in groups of about `size` draws, cut where a batch ends, so that every batch is one of the whole range."""
    groups: list[list[DrawRange]] = [[]]
    room = size
    for part in ranges:
        first = part.first
        while first < part.last:
            if room < batch and groups[-1]:
                groups.append([])
                room = size
            last = min(part.last, first + max(room // batch, 1) * batch)
            groups[-1].append(replace(part, first=first, last=last))
            room -= last - first
            first = last
    return [tuple(group) for group in groups if group]


def _bring_forward(
    folder: RunFolder,
    name: str,
    pixels: NDArray[np.float32],
    sigma: float,
    ranges: list[DrawRange],
    segmenter: Any,
    pace: _Pace,
) -> Votes | None:
    """Draw the ranges; write the votes of this sigma if that was all, otherwise what was drawn, as partial votes."""
    stored, plan = folder.parts(name, sigma), plan_of(folder.manifest, sigma)
    lacking = still_missing(plan, stored)
    if not ranges and lacking:
        return None
    tally = start_tally(segmenter, pixels, plan)
    with settled(tally):
        for part in ranges:
            pace.draw(segmenter, pixels, tally, part)
    if set(lacking) - set(held_ranges(tally)):
        if any(done.any() for done in tally.done.values()):
            save_part(tally, folder.partial_folder(name))
        return None
    for path in stored:
        tally.add(load_part(path))
    votes = votes_of_tally(tally, segmenter)
    votes.save(folder.votes_path(name, sigma))
    return votes


class _Pace:
    """Draws in slices between looks at the clock, and keeps what there was no time for."""

    def __init__(self, seconds: float, each: Callable[[int], None] | None) -> None:
        self.started, self.seconds, self.each = time.monotonic(), seconds, each
        self.draws, self.left = 0, list[DrawRange]()

    def draw(self, segmenter: Any, pixels: NDArray[np.float32], tally: Tally, part: DrawRange) -> None:
        """Make the draws of a range, at least one batch in the whole task."""
        first = part.first
        while first < part.last:
            elapsed = time.monotonic() - self.started
            if self.draws and elapsed >= self.seconds:
                self.left.append(replace(part, first=first))
                return
            last = min(part.last, first + self._slice(elapsed, tally.plan.batch_size))
            draw(segmenter, pixels, tally, part.stage, list(range(first, last)), each=self.each)
            self.draws += last - first
            first = last

    def _slice(self, elapsed: float, batch: int) -> int:
        """How many draws to make before the next look at the clock, in whole batches."""
        if not self.draws:
            return batch
        per_batch = max(elapsed / self.draws * batch, 1e-9)
        return max(1, int(min(SLICE_SECONDS, self.seconds) / per_batch)) * batch
