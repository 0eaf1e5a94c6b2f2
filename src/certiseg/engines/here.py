"""The engine of this process: one task at a time, straight in the run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from certiseg.engines.device import limited_threads
from certiseg.engines.work import Answer, Task, perform
from certiseg.runs.folder import RunFolder

CHECKPOINT_SECONDS = 20.0
"""How much of the drawing a killed process may lose."""


class Here:
    """Draws with a segmenter of this process."""

    workers = 1
    ahead = 0
    shares_folder = True
    draws_per_task: int | None = None

    def __init__(self, segmenter: Any, folder: RunFolder) -> None:
        self.segmenter, self.folder = segmenter, folder
        self.task: Task | None = None
        self.places: Counter[str] = Counter()

    @property
    def seconds(self) -> float:
        return CHECKPOINT_SECONDS

    @property
    def free(self) -> int:
        return int(self.task is None)

    def submit(self, task: Task) -> None:
        """Keep the task for `next`."""
        self.task = task

    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        """Do the task."""
        task, self.task = self.task, None
        assert task is not None
        with limited_threads(self.folder.manifest.threads):  # sums inside the model may depend on it
            answer = perform(task, self.segmenter, self.folder, each=each)
        self.places[answer.place] += answer.draws
        return task, answer

    def close(self) -> None:
        """Nothing is held."""
