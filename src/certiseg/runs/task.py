"""A task: the unit of work, some draws of one image. Every engine gets the same tasks and gives the same answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from certiseg.partial_votes import DrawRange
from certiseg.scores import PixelSums


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
    instances: NDArray[np.uint16] | None = None
    """The marked objects of the ground truth, where the run uses them."""


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


class Engine(ABC):
    """Does tasks, in any order, each of them once."""

    workers = 1
    ahead = 0
    """How many images to have open beyond one per worker."""
    draws_per_task: int | None = None
    """How large a task is; None: whole images, as long as there are enough of them."""
    shares_folder = False
    """Whether tasks are done in the run folder itself."""

    def __init__(self) -> None:
        self.places: Counter[str] = Counter()
        """Draws by place."""
        self.note: Callable[[str], None] = lambda _: None
        """Hears what happens on the way."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """How long a task may take."""

    @property
    @abstractmethod
    def free(self) -> int:
        """How many more tasks it takes now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take a task."""

    @abstractmethod
    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        """Wait for an answer; each(k) is called when k more draws were made."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""


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
