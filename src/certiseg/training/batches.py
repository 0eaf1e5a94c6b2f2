"""Batches in an order that depends on the seed alone: position k of the run always holds the same sample."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from certiseg.datasets.base import Dataset, Sample
from certiseg.errors import InputError
from certiseg.training.augment import Augmentation, add_noise, paste_classes

ORDER, AUGMENT, NOISE, KIND, PASTE = 1, 2, 3, 5, 6  # independent streams of one seed


@dataclass(frozen=True)
class Batch:
    """Images (B, 3, h, w) float32 and labels (B, h, w) int64."""

    images: Tensor
    labels: Tensor


def read_all(dataset: Dataset) -> list[Sample]:
    """Every sample, decoded and checked once, before the first step."""
    if len(dataset) == 0:
        raise InputError(f"{dataset.name} must hold at least one image, got none; check the path")
    samples = list(dataset)
    for sample in samples:
        if sample.label is None:
            raise InputError(f"{sample.name} must have a label map for training, got none; add it to labels/")
    return samples


@dataclass(frozen=True)
class Plan:
    """Which samples make up step s on process `rank` of `world`, and how noisy each is.

    `beside` holds further samples, each list with the share of the draws that it gets. With `even`, every recording
    (what a name says before its first underscore) is drawn equally often, however many images it has.
    """

    samples: list[Sample]
    augmentation: Augmentation
    batch_size: int
    seed: int
    sigma: float
    noise: str = "alternate"
    noisy_share: float = 0.5
    rank: int = 0
    world: int = 1
    beside: Sequence[tuple[float, list[Sample]]] = ()
    even: bool = False
    paste: float = 0.0
    """Share of the samples into which half of the classes of another one are pasted."""

    @cached_property
    def recordings(self) -> list[list[int]]:
        """The places of the samples of each recording; of all of them in one list without `even`."""
        groups: dict[str, list[int]] = {}
        for place, sample in enumerate(self.samples):
            groups.setdefault(sample.name.partition("_")[0] if self.even else "", []).append(place)
        return list(groups.values())

    def batch(self, step: int) -> Batch:
        """The batch of a step (counted over the whole run)."""
        images, labels = [], []
        for slot in range(self.batch_size):
            image, label = self._sample(step, slot)
            images.append(image)
            labels.append(label)
        stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)  # channels last in memory
        return Batch(stacked, torch.from_numpy(np.stack(labels)).long())

    def sigma_of(self, step: int, slot: int) -> float:
        """sigma of one image: every second batch is noisy, or the last slots of every batch are."""
        if self.noise == "alternate":
            return self.sigma if step % 2 else 0.0
        clean = round(self.batch_size * (1 - self.noisy_share))
        return self.sigma if slot >= clean else 0.0

    def index_of(self, position: int) -> int:
        """The sample at a position of the run: recordings take turns, each in one permutation after the other."""
        turn, recording = divmod(position, len(self.recordings))
        members = self.recordings[recording]
        lap, place = divmod(turn, len(members))
        order = _permutation(self.seed, lap * len(self.recordings) + recording, len(members))
        return members[order[place]]

    def sample_at(self, position: int) -> Sample:
        """A sample from beside with its share of the chances, otherwise the next of the main ones."""
        rng = stream(self.seed, KIND, position)
        chance = rng.random() if self.beside else 1.0
        for share, samples in self.beside:
            if chance < share:
                return samples[rng.integers(len(samples))]
            chance -= share
        return self.samples[self.index_of(position)]

    def _sample(self, step: int, slot: int) -> tuple[np.ndarray, np.ndarray]:
        position = (step * self.world + self.rank) * self.batch_size + slot
        sample = self.sample_at(position)
        assert sample.label is not None
        image, label = self.augmentation(sample.image, sample.label, stream(self.seed, AUGMENT, position))
        rng = stream(self.seed, PASTE, position)
        if rng.random() < self.paste:
            other = self.samples[rng.integers(len(self.samples))]
            assert other.label is not None
            image, label = paste_classes(image, label, *self.augmentation(other.image, other.label, rng), rng)
        sigma = self.sigma_of(step, slot)
        return add_noise(image, stream(self.seed, NOISE, position), sigma=sigma), label


def stream(seed: int, purpose: int, position: int) -> np.random.Generator:
    """The random numbers for one purpose at one position of the run."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, purpose, position))))


_laps: dict[tuple[int, int, int], np.ndarray] = {}


def _permutation(seed: int, lap: int, count: int) -> np.ndarray:
    key = (seed, lap, count)
    if key not in _laps:
        if len(_laps) > 64:
            _laps.clear()
        _laps[key] = stream(seed, ORDER, lap).permutation(count)
    return _laps[key]


def prefetch(plan: Plan, first: int, last: int, *, depth: int = 3) -> Iterator[Batch]:
    """The batches of steps first .. last - 1, prepared by a thread while the network works."""
    ready: queue.Queue[Batch | BaseException] = queue.Queue(depth)
    stop = threading.Event()

    def offer(item: Batch | BaseException) -> None:
        while not stop.is_set():
            try:
                return ready.put(item, timeout=0.2)
            except queue.Full:
                continue

    def prepare() -> None:
        try:
            for step in range(first, last):
                if stop.is_set():
                    return
                offer(plan.batch(step))
        except BaseException as error:  # handed to the consumer, which raises it
            offer(error)

    thread = threading.Thread(target=prepare, daemon=True)
    thread.start()
    try:
        for _ in range(first, last):
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
