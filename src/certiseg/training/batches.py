"""Batches in an order that depends on the seed alone: position k of the run always holds the same sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from certiseg.datasets.base import Dataset, Sample
from certiseg.errors import InputError
from certiseg.training.augment import Augmentation, add_noise, paste_classes, take_colours
from certiseg.training.config import TrainConfig
from certiseg.training.weather import expose, parse_threats

ORDER, AUGMENT, NOISE, KIND, PASTE, THREAT, SIGMA, RECOLOUR = 1, 2, 3, 5, 6, 7, 8, 9  # independent streams of one seed


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
        if sample.image.dtype != np.uint8 or sample.image.shape[2:] != (3,):
            kind = f"{sample.image.dtype} of shape {sample.image.shape}"
            raise InputError(f"{sample.name} must be an 8-bit RGB image for training, got {kind}; convert it")
    return samples


@dataclass(frozen=True)
class BatchPlan(TorchDataset[Batch]):
    """Which samples make up step s on process `rank` of `world`, and how noisy each is.

    others: samples of other data sets, each list with its share of the draws.
    """

    config: TrainConfig
    samples: list[Sample]
    others: Sequence[tuple[float, list[Sample]]] = ()
    rank: int = 0
    world: int = 1

    @cached_property
    def augmentation(self) -> Augmentation:
        """What the config says may happen to a sample."""
        config = self.config
        return Augmentation(config.crop, config.scale, config.aspect, config.flip, config.colour)

    @cached_property
    def threats(self) -> tuple[tuple[str, float], ...]:
        """Names and scales of the threats that the config asks for."""
        return parse_threats(self.config.threat)

    @property
    def steps_per_epoch(self) -> int:
        """One pass over the main samples unless the config says otherwise."""
        return self.config.steps_per_epoch or max(1, len(self.samples) // (self.config.batch_size * self.world))

    @property
    def image_size(self) -> tuple[int, int]:
        """The usual height and width of an image as the network sees it: the median, at the middle scale."""
        scale = (self.config.scale[0] * self.config.scale[1]) ** 0.5
        height, width = np.median([sample.image.shape[:2] for sample in self.samples], axis=0) * scale
        return round(height), round(width)

    @cached_property
    def recordings(self) -> list[list[int]]:
        """The positions of the samples of each recording; without `even`, all samples are one recording."""
        groups: dict[str, list[int]] = {}
        for place, sample in enumerate(self.samples):
            groups.setdefault(sample.name.partition("_")[0] if self.config.even else "", []).append(place)
        return list(groups.values())

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step (counted over the whole run)."""
        images, labels = [], []
        for slot in range(self.config.batch_size):
            image, label = self._sample(step, slot)
            images.append(image)
            labels.append(label)
        stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)  # channels last in memory
        return Batch(stacked, torch.from_numpy(np.stack(labels)).long())

    def sigma_of(self, step: int, slot: int) -> float:
        """sigma of one image: every second batch is noisy, or the last slots of every batch are."""
        if self.config.noise == "alternate":
            return self.config.sigma if step % 2 else 0.0
        clean = round(self.config.batch_size * (1 - self.config.noisy_share))
        return self.config.sigma if slot >= clean else 0.0

    def index_of(self, position: int) -> int:
        """The sample at a position of the run: recordings take turns, each in one permutation after the other."""
        turn, recording = divmod(position, len(self.recordings))
        members = self.recordings[recording]
        lap, place = divmod(turn, len(members))
        order = _permutation(self.config.seed, lap * len(self.recordings) + recording, len(members))
        return members[int(order[place])]

    def sample_at(self, position: int) -> Sample:
        """A random sample of another data set as often as its share says, otherwise the next main sample."""
        rng = stream(self.config.seed, KIND, position)
        chance = rng.random() if self.others else 1.0
        for share, samples in self.others:
            if chance < share:
                return samples[rng.integers(len(samples))]
            chance -= share
        return self.samples[self.index_of(position)]

    def _sample(self, step: int, slot: int) -> tuple[np.ndarray, np.ndarray]:
        position = (step * self.world + self.rank) * self.config.batch_size + slot
        sample = self.sample_at(position)
        assert sample.label is not None
        pixels, rng = sample.image, stream(self.config.seed, RECOLOUR, position)
        if rng.random() < self.config.recolour:
            pixels = take_colours(pixels, self.sample_at(int(rng.integers(2**31))).image, share=rng.random())
        image, label = self.augmentation(pixels, sample.label, stream(self.config.seed, AUGMENT, position))
        rng = stream(self.config.seed, PASTE, position)
        if rng.random() < self.config.paste:
            other = self.samples[rng.integers(len(self.samples))]
            assert other.label is not None
            image, label = paste_classes(image, label, *self.augmentation(other.image, other.label, rng), rng)
        rng = stream(self.config.seed, THREAT, position)
        if self.threats and rng.random() < self.config.threat_share:
            image = expose(image, self.threats, rng)
        sigma = self.sigma_of(step, slot)
        if sigma and self.config.sigma_range:
            sigma = stream(self.config.seed, SIGMA, position).uniform(*self.config.sigma_range)
        return add_noise(image, stream(self.config.seed, NOISE, position), sigma=sigma), label


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


def load_batches(plan: BatchPlan, first: int, last: int, *, workers: int) -> Iterator[Batch]:
    """The batches of steps first .. last - 1 in order, prepared ahead by that many processes; 0 prepares them here.

    The processes are not forked from this one: its libraries may have started threads, which a fork does not survive.
    """
    ahead, context = (3, "forkserver") if workers else (None, None)
    steps = range(first, last)
    return iter(
        DataLoader(
            plan,
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            prefetch_factor=ahead,
            multiprocessing_context=context,
        )
    )
