"""Workers that do one task at a time: one that dies or hangs is replaced, and its task is done again elsewhere.

A task is answered once. Whatever a worker had drawn before it was lost never reaches the run folder, and a worker that
took too long is ended before its task is given away, so no draw is counted twice.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from certiseg.errors import EngineLostError, InputError
from certiseg.runs.settings import EngineSettings
from certiseg.runs.task import Answer, Engine, Task

ATTEMPTS = 5
"""How often a task may lose its worker before its image is left out."""
START_SECONDS = 300.0
"""How long to wait for a first worker at least: nodes may have to be started, models to be loaded."""
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Ready:
    """A worker was checked and takes tasks."""


@dataclass(frozen=True)
class Lost:
    """A worker is gone."""

    reason: str


@dataclass(frozen=True)
class Unfit:
    """A worker that cannot take part in the run, or failed as any other worker would have."""

    reason: str
    is_input: bool = True


Event = Ready | Lost | Unfit | Answer


class Handle(ABC):
    """A worker as the pool sees it."""

    place: str = "a worker"
    ready = False
    task: Task | None = None
    deadline = float("inf")

    @abstractmethod
    def give(self, task: Task) -> None:
        """Send a task."""

    @abstractmethod
    def end(self) -> None:
        """End the worker at once, whatever it does."""


class WorkerPool(Engine):
    """An engine of several workers. Subclasses say how a worker is started and how one hears from it."""

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__()
        self.workers, self.timeout = settings.workers or 1, settings.timeout
        self.draws_per_task = settings.draws_per_task
        self.handles: list[Handle] = []
        self.waiting: deque[Task] = deque()
        self.answered: deque[tuple[Task, Answer]] = deque()
        self.losses: Counter[int] = Counter()
        """How many workers each task has cost."""
        self._false_starts, self._heard = 0, time.monotonic()

    @abstractmethod
    def hire(self) -> Handle:
        """Start a worker, without waiting for it."""

    @abstractmethod
    def listen(self, seconds: float) -> list[tuple[Handle, Event]]:
        """What the workers have to say, waiting at most so long for the first of them."""

    def situation(self) -> str:
        """What may explain that no worker comes."""
        return "no more is known"

    @property
    def ahead(self) -> int:  # type: ignore[override]
        """As many images again, read while the workers draw."""
        return self.workers

    @property
    def seconds(self) -> float:
        return min(30.0, self.timeout / 4)

    @property
    def free(self) -> int:
        return self.workers - len(self.waiting) - sum(handle.task is not None for handle in self.handles)

    def submit(self, task: Task) -> None:
        """Take a task for the next worker without one."""
        self.waiting.append(task)
        self._assign()

    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        """Wait for an answer, replacing workers meanwhile."""
        while not self.answered:
            self._assign()
            for handle, event in self.listen(_LOOK_SECONDS):
                self._hear(handle, event)
            self._end_the_overdue()
        task, answer = self.answered.popleft()
        self.places[answer.place] += answer.draws
        each(answer.draws)
        return task, answer

    def close(self) -> None:
        """End all workers."""
        for handle in self.handles:
            handle.end()
        self.handles = []

    def _assign(self) -> None:
        while len(self.handles) < self.workers:
            self.handles.append(self.hire())
        for handle in self.handles:
            if self.waiting and handle.ready and handle.task is None:
                handle.task, handle.deadline = self.waiting.popleft(), time.monotonic() + self.timeout
                handle.give(handle.task)

    def _hear(self, handle: Handle, event: Event) -> None:
        self._heard = time.monotonic()
        if isinstance(event, Ready):
            handle.ready, self._false_starts = True, 0
        elif isinstance(event, Lost):
            self._lose(handle, event.reason)
        elif isinstance(event, Unfit):
            raise InputError(event.reason) if event.is_input else EngineLostError(event.reason)
        elif handle.task is not None:
            self.answered.append((handle.task, event))
            handle.task, handle.deadline = None, float("inf")
            self._assign()

    def _lose(self, handle: Handle, reason: str) -> None:
        """Do without a worker; its task waits for another one, at the front."""
        handle.end()
        self.handles.remove(handle)
        self._false_starts += not handle.ready
        if self._false_starts > max(ATTEMPTS, self.workers):
            raise EngineLostError(f"workers must be able to start, but {self._false_starts} in a row did not: {reason}")
        task = handle.task
        if task is None:
            return
        self.losses[task.number] += 1
        if self.losses[task.number] < ATTEMPTS:
            self.note(f"{handle.place} was lost ({reason}); its draws are made again elsewhere")
            self.waiting.appendleft(task)
        else:
            lost = f"a worker must survive this image, but {ATTEMPTS} were lost over it, the last one thus: {reason}"
            self.answered.append((task, Answer(refused=lost)))

    def _end_the_overdue(self) -> None:
        now = time.monotonic()
        for handle in [handle for handle in self.handles if handle.deadline < now]:
            self._lose(handle, f"no answer in {self.timeout:g} seconds")
        patience = max(self.timeout, START_SECONDS)
        if not any(handle.ready for handle in self.handles) and now - self._heard > patience:
            raise EngineLostError(
                f"a worker must become ready within {patience:g} seconds, but none did: {self.situation()}; "
                "see --timeout"
            )
