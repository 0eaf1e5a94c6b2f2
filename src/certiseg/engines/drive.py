"""The loop of a run: images become tasks, an engine does them, and what comes back goes into the run folder.

Only a few images are open at a time (as many as the engine has workers, and as many again read ahead), so the memory of
this process does not grow with their number. What a folder holds decides what is still to be done, nothing else.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from certiseg.archive import write_atomically
from certiseg.engines.work import Answer, Task, missing_draws, split
from certiseg.errors import InputError
from certiseg.runs.evaluate import Progress, Samples
from certiseg.runs.finish import checked_label
from certiseg.runs.folder import RunFolder
from certiseg.runs.parts import DrawRange

LEAST_BATCHES = 8
"""An image is not spread thinner than this many batches per task: partial votes must be sent and added."""


class Engine(Protocol):
    """Does tasks, in any order, each of them once."""

    @property
    def workers(self) -> int: ...

    @property
    def ahead(self) -> int:
        """How many images to have open beyond one per worker."""
        ...

    @property
    def seconds(self) -> float:
        """How long a task may take."""
        ...

    @property
    def draws_per_task(self) -> int | None:
        """How large a task is; None: whole images, as long as there are enough of them."""
        ...

    @property
    def shares_folder(self) -> bool:
        """Whether tasks are done in the run folder itself."""
        ...

    @property
    def free(self) -> int:
        """How many more tasks it takes now."""
        ...

    @property
    def places(self) -> Mapping[str, int]:
        """Draws by place."""
        ...

    def submit(self, task: Task) -> None: ...

    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        """Wait for an answer; each(k) is called when k more draws were made."""
        ...


def drive(
    folder: RunFolder,
    samples: Samples,
    engine: Engine,
    progress: Progress,
    *,
    takes: Callable[[int], bool] = lambda _: True,
) -> dict[str, str]:
    """Bring all images to their end; returns those that cannot be used, in order, with the reason."""
    left_out = _Drive(folder, samples, engine, progress, takes).run()
    return {name: left_out[name] for name in folder.manifest.images if name in left_out}


@dataclass(eq=False)
class _Open:
    """An image that is being worked on."""

    name: str
    sample: Any
    label: Any
    tasks: set[int] = field(default_factory=set)
    """Numbers of the tasks that are not answered."""
    refused: dict[int, str] = field(default_factory=dict)


class _Drive:
    """The state of a running `drive`."""

    def __init__(
        self,
        folder: RunFolder,
        samples: Samples,
        engine: Engine,
        progress: Progress,
        takes: Callable[[int], bool],
    ) -> None:
        self.folder, self.samples, self.engine, self.progress = folder, samples, engine, progress
        self.manifest = folder.manifest
        self.left_out: dict[str, str] = {}
        self.open: dict[str, _Open] = {}
        self.ready: deque[Task] = deque()
        self.numbers = itertools.count()
        indices = [index for index in range(len(self.manifest.images)) if takes(index)]
        self.todo = deque(index for index in indices if not self._is_done(index))

    def run(self) -> dict[str, str]:
        while True:
            self._give()
            if self.todo and len(self.open) < self.engine.workers + self.engine.ahead:
                self._start(self.todo.popleft())
            elif self.open:
                task, answer = self.engine.next(self.progress.draws)
                self._give()  # a worker should not wait until files are written
                self._take(task, answer)
            else:
                return self.left_out

    def _is_done(self, index: int) -> bool:
        """Whether an earlier start has finished an image; then it counts as progress."""
        name = self.manifest.images[index]
        if not self.folder.rows_path(name).is_file():
            return False
        self.folder.remove_parts(name)
        self.progress.draws((self.manifest.n0 + max(self.manifest.draws)) * len(self.manifest.sigmas))
        self.progress.image(name, self.progress)
        return True

    def _give(self) -> None:
        while self.ready and self.engine.free:
            self.engine.submit(self.ready.popleft())

    def _start(self, index: int) -> None:
        """Read an image and make its tasks."""
        name = self.manifest.images[index]
        try:
            sample = self.samples[index]
            self.open[name] = _Open(name, sample, checked_label(sample))
        except InputError as error:
            self._leave_out(name, str(error))
            return
        missing = missing_draws(self.folder, name)
        whole = (self.manifest.n0 + max(self.manifest.draws)) * len(self.manifest.sigmas)
        self.progress.draws(whole - sum(len(part) for part in missing))
        self._plan(self.open[name], missing)

    def _plan(self, image: _Open, missing: list[DrawRange]) -> None:
        """Tasks for the missing draws; without any, the one that finishes the image."""
        if not missing:
            self._add(image, (), self._files(image.name))
        for group in split(missing, self._size(missing), self.manifest.batch_size) if missing else ():
            self._add(image, group)

    def _size(self, missing: list[DrawRange]) -> int:
        """Draws per task: whole images, but the last ones are spread so that no worker is idle."""
        if self.engine.draws_per_task is not None:
            return self.engine.draws_per_task
        draws, tasks = sum(len(part) for part in missing), -(-self.engine.workers // (len(self.todo) + 1))
        return max(-(-draws // tasks), LEAST_BATCHES * self.manifest.batch_size)

    def _add(self, image: _Open, ranges: tuple[DrawRange, ...], files: dict[str, bytes] | None = None) -> None:
        number = next(self.numbers)
        image.tasks.add(number)
        sample, seconds = image.sample, self.engine.seconds
        self.ready.append(Task(number, image.name, sample.image, image.label, ranges, seconds, files or {}))

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
        image = self.open[task.name]
        image.tasks.remove(task.number)
        for relative, content in answer.files.items():
            path = self.folder.path / relative
            path.parent.mkdir(exist_ok=True)
            with write_atomically(path) as file:
                file.write(content)
        if answer.refused is not None:
            self._refuse(image, task.number, answer.refused)
        elif answer.sums is not None:
            for method, sums in answer.sums.items():
                known = self.progress.sums.get(method)
                self.progress.sums[method] = sums if known is None else known + sums
            self._close(image.name)
            return
        elif answer.left and not image.refused:
            self._add(image, answer.left)
        if image.refused and not image.tasks:
            self._leave_out(image.name, image.refused[min(image.refused)])
        elif not image.tasks:
            self._plan(image, missing_draws(self.folder, image.name))

    def _refuse(self, image: _Open, number: int, reason: str) -> None:
        """Drop the later tasks of an image; the reason of the earliest draws counts, as without workers."""
        image.refused[number] = reason
        dropped = {task.number for task in self.ready if task.name == image.name and task.number > number}
        self.ready = deque(task for task in self.ready if task.number not in dropped)
        image.tasks -= dropped

    def _leave_out(self, name: str, reason: str) -> None:
        """An image that cannot be used leaves no files."""
        self.left_out[name] = reason
        for path in self.folder.files_of(name):
            path.unlink(missing_ok=True)
        self._close(name)

    def _close(self, name: str) -> None:
        self.folder.remove_parts(name)
        self.open.pop(name, None)
        self.progress.image(name, self.progress)
