"""A worker: a model, and the work on one task: bring an image of a run folder forward by some draws.

`perform` works on a run folder: the run's own where this process draws, a scratch folder of the worker otherwise. It
reads what is there (votes of other sigmas, partial votes), makes the draws of the task, and writes partial votes, or
all files of the image once no draw is missing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from certiseg import __version__
from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.images import Picture, open_image
from certiseg.models.segmenter import Segmenter
from certiseg.partial_votes import DrawRange, PartialVotes, load_partial_votes
from certiseg.runs.at_hand import AtHand
from certiseg.runs.folder import RunFolder
from certiseg.runs.looks import cut, rule_of
from certiseg.runs.manifest import Manifest
from certiseg.runs.measured import measures_of
from certiseg.runs.task import Answer, Task
from certiseg.runs.write_image import write_image
from certiseg.sampling import candidate_of, draw, settled, start
from certiseg.votes import Votes

SLICE_SECONDS = 5.0
"""About how long a worker draws between two looks at the clock."""
BuildModel = Callable[[int], Segmenter]
"""Makes the segmenter of worker number i; it must be possible to send it to another process."""
_MEMORY = Path("/dev/shm")


class Worker:
    """Does tasks one by one; what they write is given back as bytes."""

    def __init__(self, build: BuildModel, manifest: Manifest, *, number: int, place: str) -> None:
        torch.set_num_threads(manifest.threads)
        self.place, self.segmenter = place, build(number)
        check(manifest, self.segmenter, place)
        where = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self.scratch = tempfile.mkdtemp(prefix="certiseg-", dir=where)
        self.folder = RunFolder(self.scratch, manifest)
        self.folder.create()

    def work(self, task: Task) -> Answer:
        """Do one task."""
        try:
            for relative, content in task.files.items():
                path = self.folder.path / relative
                path.parent.mkdir(exist_ok=True)
                with write_atomically(path) as file:
                    file.write(content)
            answer = perform(task, self.segmenter, self.folder, place=self.place)
            return answer if answer.refused is not None else replace(answer, files=self._new_files(task))
        finally:
            self._clear(task.name)

    def close(self) -> None:
        """Remove the scratch folder."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _new_files(self, task: Task) -> dict[str, bytes]:
        """What the task has written, the rows last, without what it was given and parts that have become votes."""
        folder, manifest = self.folder, self.folder.manifest
        written = [path for path in folder.files_of(task.name) if path.is_file()]
        undecided = [sigma for sigma in manifest.sigmas if not folder.votes_path(task.name, sigma).is_file()]
        written = [path for sigma in undecided for path in folder.parts(task.name, sigma)] + written
        named = {str(path.relative_to(folder.path)): path for path in written}
        return {name: path.read_bytes() for name, path in named.items() if name not in task.files}

    def _clear(self, name: str) -> None:
        self.folder.remove_parts(name)
        for path in self.folder.files_of(name):
            path.unlink(missing_ok=True)


def check(manifest: Manifest, segmenter: Segmenter, place: str) -> None:
    """Refuse a worker whose draws would not be those of the run."""
    here = {"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__}
    for library, version in manifest.versions.items():
        if here.get(library) != version:
            raise InputError(wrong_version(place, library, version, here.get(library)))
    found = {
        "model_sha256": segmenter.fingerprint(),
        "backend": segmenter.backend,
        "device": segmenter.device.type,
        "threads": torch.get_num_threads(),
    }
    names = {"model_sha256": "weights and preparation of the model (SHA-256)", "threads": "threads per model"}
    for key, value in found.items():
        if value != (wanted := getattr(manifest, key)):
            raise InputError(
                f"{place}: {names.get(key, key)} must be {_short(wanted)} as in the manifest, got {_short(value)}; "
                "give every worker the same"
            )


def wrong_version(place: str, library: str, wanted: str, found: str | None) -> str:
    """The sentence about a worker with another version of a library, or without it."""
    got = "none" if found is None else found
    return f"{place}: {library} must be {wanted} as in the manifest, got {got}; install {library}=={wanted} there"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 16 else f"{text[:12]}..."


def perform(
    task: Task,
    segmenter: Segmenter,
    folder: RunFolder,
    *,
    lanes: int = 1,
    each: Callable[[int], None] = lambda _: None,
    place: str = "here",
) -> Answer:
    """Make the draws of a task and write what they lead to into the folder; each(k) is called after k more draws."""
    pace = _Pace(task.seconds, lanes, each)
    try:
        channels = segmenter.settings.channels
        picture = open_image(task.image, values=folder.manifest.values, channels=channels)
        at_hand: Votes | None = None
        for sigma in folder.manifest.sigmas:
            if not folder.votes_path(task.name, sigma).is_file():
                ranges = [part for part in task.ranges if part.sigma == sigma]
                at_hand = _bring_forward(folder, task, picture, sigma, ranges, segmenter, pace) or at_hand
        sums = None
        if all(folder.votes_path(task.name, sigma).is_file() for sigma in folder.manifest.sigmas):
            prediction = _prediction(picture, segmenter, at_hand)
            sums = write_image(folder, task.name, task.label, prediction, task.instances, at_hand=at_hand)
    except InputError as error:
        return Answer(refused=str(error), draws=pace.draws, place=place)
    return Answer(draws=pace.draws, left=tuple(pace.left), sums=sums, place=place)


def _prediction(picture: Picture, segmenter: Segmenter, votes: Votes | None) -> NDArray[np.integer]:
    """The labels without noise: as they stand in votes at hand, or by one more pass."""
    if votes is not None and votes.prediction is not None:
        return votes.prediction
    return segmenter.predict(picture)


def _bring_forward(
    folder: RunFolder,
    task: Task,
    picture: Picture,
    sigma: float,
    ranges: list[DrawRange],
    segmenter: Segmenter,
    pace: _Pace,
) -> Votes | None:
    """Draw the ranges from look to look; write the votes of this sigma if they end there, otherwise partial votes."""
    if not ranges and folder.missing_draws(task.name, sigma):
        return None
    partial = start(segmenter, picture.pixels, folder.manifest.sampling(sigma), picture.values)
    at_hand, rule, before = AtHand(folder, task.name, partial), rule_of(folder.manifest, sigma), 0
    with settled(partial):
        for part in (part for part in ranges if part.stage == "selection"):
            pace.draw(segmenter, picture.pixels, partial, part)
        if folder.manifest.recorded and not pace.left:
            _ask(folder, task, picture.pixels, partial, segmenter)
        for look in at_hand.open_looks():
            upto = look * len(partial.settings.anchors)
            for part in cut(ranges, before, upto):
                pace.draw(segmenter, picture.pixels, partial, part)
            before = upto
            votes = None if pace.left else at_hand.votes_at(look, segmenter)
            if votes is not None and (rule is None or votes.n == partial.settings.n or rule(votes)):
                votes.save(folder.votes_path(task.name, sigma))
                return votes
    at_hand.save()
    return None


def _ask(
    folder: RunFolder, task: Task, pixels: NDArray[np.float32], partial: PartialVotes, segmenter: Segmenter
) -> None:
    """Settle what is measured by all selection draws; those that are not at hand are made again, and not counted."""
    settings, manifest = partial.settings, folder.manifest
    if manifest.objects is None:
        return partial.ask((), keep_maps=manifest.keep_maps)
    whole = PartialVotes(settings, key=partial.key, size=partial.size, num_classes=partial.num_classes)
    held = [partial, *(load_partial_votes(path) for path in folder.parts(task.name, settings.sigma))]
    for part in held:
        whole.take_selection(part)
    draw(segmenter, pixels, whole, "selection", whole.missing("selection"))
    partial.ask(measures_of(manifest, task.label, candidate_of(whole), task.instances), keep_maps=manifest.keep_maps)


class _Pace:
    """Draws in slices between looks at the clock, and keeps what there was no time for."""

    def __init__(self, seconds: float, lanes: int, each: Callable[[int], None]) -> None:
        self.started, self.seconds, self.lanes, self.each = time.monotonic(), seconds, lanes, each
        self.draws, self.left = 0, list[DrawRange]()

    def draw(self, segmenter: Segmenter, pixels: NDArray[np.float32], partial: PartialVotes, part: DrawRange) -> None:
        """Make the draws of a range, at least one batch for every lane in the whole task."""
        first = part.first
        while first < part.last:
            elapsed = time.monotonic() - self.started
            if self.draws and elapsed >= self.seconds:
                self.left.append(replace(part, first=first))
                return
            last = min(part.last, first + self._slice(elapsed, partial.settings.batch_size))
            draws = list(range(first, last))
            draw(segmenter, pixels, partial, part.stage, draws, lanes=self.lanes, each=self.each)
            self.draws += last - first
            first = last

    def _slice(self, elapsed: float, batch: int) -> int:
        """How many draws to make before the next look at the clock: a batch for every lane, or several."""
        at_once = self.lanes * batch
        if not self.draws:
            return at_once
        per_turn = max(elapsed / self.draws * at_once, 1e-9)
        return max(1, int(min(SLICE_SECONDS, self.seconds) / per_turn)) * at_once
