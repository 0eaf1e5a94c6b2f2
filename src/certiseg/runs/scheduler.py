"""The scheduler of a run: images become tasks, an engine does them, and what comes back goes into the run folder.

Only a few images are open at a time (as many as the engine has workers, and as many again read ahead), so the memory of
this process does not grow with their number. What a folder holds decides what is still to be done, nothing else.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import write_atomically
from certiseg.datasets.base import Instances, Sample
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.partial_votes import DrawRange
from certiseg.runs.folder import RunFolder
from certiseg.runs.looks import block
from certiseg.runs.progress import Progress
from certiseg.runs.settings import WHOLE, Shard
from certiseg.runs.task import Answer, Engine, Task, split

LEAST_BATCHES = 8
"""An image is not spread thinner than this many batches per task: partial votes must be sent and added."""


class Samples(Protocol):
    """A data set as a run needs it."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, index: int) -> Sample:
        """Read one of them."""
        ...


def schedule(
    folder: RunFolder, samples: Samples, engine: Engine, progress: Progress, *, shard: Shard = WHOLE
) -> dict[str, str]:
    """Bring all images of a shard to their end; returns those that cannot be used, in order, with the reason."""
    left_out = _Scheduler(folder, samples, engine, progress, shard).run()
    return {name: left_out[name] for name in folder.manifest.images if name in left_out}


@dataclass(eq=False)
class _Open:
    """An image that is being worked on."""

    name: str
    sample: Sample
    label: NDArray[np.integer]
    instances: Instances | None = None
    drawn: int = 0
    tasks: set[int] = field(default_factory=set)
    """Numbers of the tasks that are not answered."""
    refused: dict[int, str] = field(default_factory=dict)


class _Scheduler:
    """The state of a running schedule."""

    def __init__(self, folder: RunFolder, samples: Samples, engine: Engine, progress: Progress, shard: Shard) -> None:
        self.folder, self.samples, self.engine, self.progress = folder, samples, engine, progress
        self.manifest = folder.manifest
        self.left_out: dict[str, str] = {}
        self.open: dict[str, _Open] = {}
        self.ready: deque[Task] = deque()
        self.numbers = itertools.count()
        indices = [index for index in range(len(self.manifest.images)) if shard.holds(index)]
        progress.begin(len(indices), len(indices) * self.manifest.draws_per_image)
        self.todo = deque(index for index in indices if not self._is_done(index))

    def run(self) -> dict[str, str]:
        while True:
            self._give()
            if self.todo and len(self.open) < self.engine.workers + self.engine.ahead:
                self._start(self.todo.popleft())
            elif self.open:
                task, answer = self.engine.next(self.progress.drew)
                self.folder.require_there()
                self._give()  # a worker should not wait until files are written
                self._take(task, answer)
            else:
                return self.left_out

    def _is_done(self, index: int) -> bool:
        """Whether an earlier start has finished an image."""
        name = self.manifest.images[index]
        if not self.folder.rows_path(name).is_file():
            return False
        self.folder.remove_parts(name)
        drawn = self.folder.drawn(name)
        self.progress.found(drawn, images=1, unmade=self.manifest.draws_per_image - drawn)
        return True

    def _give(self) -> None:
        while self.ready and self.engine.free:
            self.engine.submit(self.ready.popleft())

    def _start(self, index: int) -> None:
        """Read an image and make its tasks."""
        name = self.manifest.images[index]
        try:
            sample = self.samples[index]
            marked = marked_in(sample) if self.manifest.instances else None
            image = _Open(name, sample, _checked_label(sample), marked)
        except InputError as error:
            self._leave_out(name, str(error))
            return
        self.open[name] = image
        missing = self._missing(name)
        image.drawn = self.manifest.draws_per_image - sum(len(part) for part in missing)
        self.progress.found(image.drawn)
        self._plan(image, missing)

    def _missing(self, name: str) -> list[DrawRange]:
        return [part for sigma in self.manifest.sigmas for part in self.folder.missing_draws(name, sigma)]

    def _plan(self, image: _Open, missing: list[DrawRange]) -> None:
        """Tasks for the missing draws; without any, the one that finishes the image."""
        if not missing:
            self._add(image, (), self._files(image.name))
        elif self.manifest.stop_undecided is None:
            for group in split(missing, self._size(missing), self.manifest.batch_size):
                self._add(image, group)
        else:
            self._plan_to_look(image, missing)

    def _plan_to_look(self, image: _Open, missing: list[DrawRange]) -> None:
        """Where draws stop early: all of them in one task, which looks as it draws, unless workers would be idle.

        Then the draws up to the next look are shared, and the first task begins with the look before them: what the
        others have drawn meanwhile is dropped if that ends the image.
        """
        files = self._files(image.name)
        workers, images = self.engine.workers, len(self.todo) + len(self.open)
        if self.engine.draws_per_task is None and workers <= images:
            self._add(image, tuple(missing), files)
            return
        shared = block(self.manifest, missing)
        for number, group in enumerate(split(shared, self._size(shared), self.manifest.batch_size)):
            self._add(image, group, None if number else files)

    def _size(self, missing: list[DrawRange]) -> int:
        """Draws per task: whole images, but the last ones are spread so that no worker is idle."""
        if self.engine.draws_per_task is not None:
            return self.engine.draws_per_task
        draws, tasks = sum(len(part) for part in missing), -(-self.engine.workers // (len(self.todo) + 1))
        return max(-(-draws // tasks), LEAST_BATCHES * self.manifest.batch_size)

    def _add(self, image: _Open, ranges: tuple[DrawRange, ...], files: dict[str, bytes] | None = None) -> None:
        number = next(self.numbers)
        image.tasks.add(number)
        seconds = self.engine.seconds
        content = image.sample.image, image.label
        task = Task(number, image.name, *content, ranges, seconds, files or {}, image.instances)
        self.ready.append(task)

    def _files(self, name: str) -> dict[str, bytes]:
        """What a worker elsewhere needs to finish an image: its votes and partial votes."""
        if self.engine.shares_folder:
            return {}
        return {str(path.relative_to(self.folder.path)): path.read_bytes() for path in self._votes(name)}

    def _votes(self, name: str) -> Iterator[Path]:
        for sigma in self.manifest.sigmas:
            votes = self.folder.votes_path(name, sigma)
            yield from [votes] if votes.is_file() else self.folder.parts(name, sigma)

    def _take(self, task: Task, answer: Answer) -> None:
        """Write what came back, and see what the image needs next."""
        image = self.open.get(task.name)
        if image is None:  # a look has ended it meanwhile
            self.progress.drop(answer.draws)
            return
        image.tasks.remove(task.number)
        image.drawn += answer.draws
        for relative, content in answer.files.items():
            path = self.folder.path / relative
            path.parent.mkdir(exist_ok=True)
            with write_atomically(path) as file:
                file.write(content)
        if answer.files and self.manifest.stop_undecided is not None:
            self.folder.tidy_parts(image.name)
        if answer.refused is not None:
            self._refuse(image, task.number, answer.refused)
        elif answer.sums is not None:
            self._drop(image, after=-1)
            self._close(image.name)
            self.progress.finished(answer.sums, unmade=self.manifest.draws_per_image - image.drawn)
            return
        elif answer.left and not image.refused and (image.tasks or self.manifest.stop_undecided is None):
            self._add(image, answer.left)
        if image.tasks:
            return
        if image.refused:
            self._leave_out(image.name, image.refused[min(image.refused)])
        else:
            self._plan(image, self._missing(image.name))

    def _refuse(self, image: _Open, number: int, reason: str) -> None:
        """Drop the later tasks of an image; the reason of the earliest draws counts, as without workers."""
        image.refused[number] = reason
        self._drop(image, after=number)

    def _drop(self, image: _Open, *, after: int) -> None:
        dropped = {task.number for task in self.ready if task.name == image.name and task.number > after}
        self.ready = deque(task for task in self.ready if task.number not in dropped)
        image.tasks -= dropped

    def _leave_out(self, name: str, reason: str) -> None:
        """An image that cannot be used leaves no files."""
        drawn = self.open[name].drawn if name in self.open else 0
        self.left_out[name] = reason
        for path in self.folder.files_of(name):
            path.unlink(missing_ok=True)
        self._close(name)
        self.progress.leave_out(name, reason, unmade=self.manifest.draws_per_image - drawn)

    def _close(self, name: str) -> None:
        self.folder.remove_parts(name)
        self.open.pop(name, None)


def marked_in(sample: Sample) -> Instances:
    """The instances of a sample, refused where nobody has marked any."""
    if sample.instances is None:
        raise InputError(f"{sample.name} must come with a map of instances, got none; leave out --instances")
    return sample.instances


def _checked_label(sample: Sample) -> NDArray[np.integer]:
    """The ground truth of a sample, refused before any draw if nothing can be scored with it."""
    if sample.label is None:
        raise InputError("label must be there to evaluate, got none")
    if not (sample.label != VOID).any():
        raise InputError("label must have a pixel that is not void, got none")
    return sample.label
