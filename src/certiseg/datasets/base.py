"""A data set is a list of images with label maps: listed when it is opened, read and checked one by one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certiseg.datasets.coding import Coding, Labels
from certiseg.datasets.layout import by_stem, contents
from certiseg.errors import InputError
from certiseg.hierarchy import PRESETS, VOID, load_hierarchy
from certiseg.images import IdMap, read_ids, read_stored

Instances: TypeAlias = NDArray[np.uint16]
MOST_INSTANCES = 10_000
"""In one image."""


@dataclass(frozen=True)
class Sample:
    """One image and, where there is one, its label map (H, W) uint8 with 255 = void.

    image: RGB bytes (H, W, 3), or what else the file holds, (H, W, channels) of any type of numbers.
    """

    name: str
    image: NDArray[Any]
    label: Labels | None
    instances: Instances | None = None
    """(H, W): a number for each object that is marked by itself, 0 where there is none; None where nothing is known."""


class Entry(Protocol):
    """A sample that was listed and can be read."""

    @property
    def name(self) -> str: ...

    def read(self) -> Sample:
        """Read and check it; what is wrong with it is raised here, as InputError."""


@dataclass(frozen=True)
class Files:
    """A sample in two files, or three with a map of instances; `coding` reads the label map."""

    name: str
    image: Path
    label: Path | None
    coding: Coding
    instances: Path | None = None
    least_id: int = 1
    """Ids from here on are instances."""

    def read(self) -> Sample:
        image = read_stored(self.image)
        label = None if self.label is None else self.coding(self.label)
        marked = None
        if self.instances is not None:
            marked = number_instances(read_ids(self.instances), self.least_id, str(self.instances))
        return checked(Sample(self.name, image, label, marked), str(self.label))


class Dataset:
    """Images with labels, each read when it is asked for; `hierarchy` names the preset over `classes`, if any."""

    def __init__(
        self,
        name: str,
        entries: Sequence[Entry],
        *,
        classes: Sequence[str],
        split: str | None = None,
        hierarchy: str | None = None,
    ) -> None:
        self.name, self.split, self.hierarchy = name, split, hierarchy
        self.classes, self.entries = tuple(classes), tuple(entries)
        if not 1 <= len(self.classes) <= VOID:
            raise InputError(f"classes must be 1 to {VOID} names, got {len(self.classes)}; {VOID} is kept for void")
        if len(set(self.names)) < len(self):
            twice = next(known for index, known in enumerate(self.names) if known in self.names[:index])
            raise InputError(f"{name} must name each image once, got {twice!r} twice; remove one")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the samples; each occurs once."""
        return tuple(entry.name for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Sample:
        return self.entries[index].read()

    def __iter__(self) -> Iterator[Sample]:
        return (entry.read() for entry in self.entries)

    def subset(self, indices: Sequence[int]) -> Self:
        """The samples at these positions, in this order."""
        part = copy.copy(self)
        part.entries = tuple(self.entries[index] for index in indices)
        return part

    def first(self, count: int) -> Self:
        """The first samples in name order, all of them if there are fewer."""
        if count < 1:
            raise InputError(f"first must be at least 1, got {count}; leave it out to take all images")
        names = self.names
        return self.subset(sorted(range(len(self)), key=lambda index: names[index])[:count])

    def held_out(self, every: int = 10) -> tuple[Self, Self]:
        """Two parts for a data set without a split of its own: every tenth image is for validation."""
        if len(self) < 2:
            raise InputError(f"{self.name} must hold at least 2 images to be split, got {len(self)}; add images")
        every, indices = min(every, len(self)), range(len(self))
        held = indices[every - 1 :: every]
        return self.subset([index for index in indices if index not in held]), self.subset(held)


def preset_dataset(name: str, entries: Sequence[Entry], split: str) -> Dataset:
    """A data set over the classes of the preset of its name."""
    return Dataset(name, entries, classes=load_hierarchy(name).classes, split=split, hierarchy=name)


def matching_preset(classes: Sequence[str]) -> str | None:
    """The preset over exactly these classes in this order, if there is one."""
    return next((name for name in PRESETS if load_hierarchy(name).classes == tuple(classes)), None)


def checked(sample: Sample, what: str) -> Sample:
    """The sample, if its label map covers its image exactly; `what` is the label map in words."""
    if sample.label is not None and sample.image.shape[:2] != sample.label.shape:
        (height, width), (label_height, label_width) = sample.image.shape[:2], sample.label.shape
        raise InputError(
            f"{what} must have the size of its image, got {label_width}x{label_height} for an image of "
            f"{width}x{height}; resize the label map with nearest neighbour"
        )
    if sample.instances is not None and sample.image.shape[:2] != sample.instances.shape:
        height, width = sample.image.shape[:2]
        raise InputError(
            f"the instances of {sample.name} must have the size of their image, {width}x{height}, got "
            f"{sample.instances.shape[1]}x{sample.instances.shape[0]}; resize the map with nearest neighbour"
        )
    return sample


def number_instances(ids: IdMap, least: int, what: str) -> Instances:
    """Ids from `least` on as 1, 2, 3 and so on in their order, all others 0."""
    values, places = np.unique(ids, return_inverse=True)
    marked = values >= least
    if marked.sum() > MOST_INSTANCES:
        raise InputError(f"{what} must mark at most {MOST_INSTANCES:,} objects, got {marked.sum():,}; check the file")
    return np.where(marked, np.cumsum(marked), 0).astype(np.uint16)[places].reshape(ids.shape)


def list_files(images: Path, labels: Path | None, coding: Coding, instances: Path | None = None) -> list[Files]:
    """The images of a folder in name order, each with the label of the same stem (if a label folder is given).

    instances: where maps of instances lie, if that folder is there.
    """
    found = by_stem(images)
    if not found:
        raise InputError(f"{images} must hold png or jpg images, got none; check the path")
    if labels is None:
        return [Files(stem, path, None, coding) for stem, path in found.items()]
    known, marked = by_stem(labels), by_stem(instances) if instances is not None and instances.is_dir() else {}
    entries = [
        Files(stem, path, known.get(stem, labels / f"{stem}.png"), coding, marked.get(stem))
        for stem, path in found.items()
    ]
    return require_files(entries, images, labels)


def require_files(entries: list[Files], images: Path, labels: Path) -> list[Files]:
    """The entries, unless there are none or none has its label; one missing label is an error of its sample alone."""
    if not entries:
        raise InputError(f"{images} must hold the images of the data set, got {contents(images)}; check the path")
    if not any(entry.label is not None and entry.label.is_file() for entry in entries):
        wanted = entries[0].label.relative_to(labels) if entries[0].label else "labels"
        raise InputError(f"{labels} must hold label maps such as {wanted}, got {contents(labels)}; check the path")
    return entries
