"""A data set is a list of images with label maps: listed when it is opened, read and checked one by one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certiseg.datasets.coding import VOID, Coding, plain_ids
from certiseg.datasets.files import read_image
from certiseg.datasets.layout import by_stem, contents, read_classes
from certiseg.errors import InputError

__all__ = [
    "VOID",
    "Dataset",
    "Entry",
    "Sample",
    "check_same_size",
    "list_entries",
    "read_classes",
    "read_image",
    "read_label",
    "require_entries",
]


@dataclass(frozen=True)
class Sample:
    """One image (H, W, 3) uint8 and, where there is one, its label map (H, W) uint8 with 255 = void."""

    name: str
    image: NDArray[np.uint8]
    label: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Entry:
    """Where one sample lies on disk, and how its label is coded (None: train ids of the class list)."""

    name: str
    image: Path
    label: Path | None
    coding: Coding | None = None


class Dataset:
    """Images with labels. `dataset[i]` reads sample i; what is wrong with its files is raised there, as InputError.

    `hierarchy` names the preset over `classes`, where there is one.
    """

    void = VOID

    def __init__(
        self,
        name: str,
        classes: Sequence[str],
        entries: Sequence[Any],
        *,
        split: str | None = None,
        hierarchy: str | None = None,
    ) -> None:
        self.name, self.split, self.hierarchy = name, split, hierarchy
        self.classes = tuple(classes)
        self.entries = tuple(entries)
        if not 1 <= len(self.classes) <= VOID:
            raise InputError(f"classes must be 1 to {VOID} names, got {len(self.classes)}; 255 is kept for void")
        seen: set[str] = set()
        for known in self.names:
            if known in seen:
                raise InputError(f"{name} must name each image once, got {known!r} twice; remove one")
            seen.add(known)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the samples; each occurs once."""
        return tuple(entry.name for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Sample:
        return self.read(self.entries[index])

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def read(self, entry: Any) -> Sample:
        """Read and check one sample; data sets that are no image files replace this."""
        image = read_image(entry.image)
        if entry.label is None:
            return Sample(entry.name, image, None)
        label = (entry.coding or plain_ids(len(self.classes)))(entry.label)
        check_same_size(image, label, entry)
        return Sample(entry.name, image, label)

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
        every = min(every, len(self))
        kept = [index for index in range(len(self)) if index % every != every - 1]
        held = [index for index in range(len(self)) if index % every == every - 1]
        return self.subset(kept), self.subset(held)


def read_label(path: Path, *, num_classes: int) -> NDArray[np.uint8]:
    """The label map (H, W) uint8, refused if an id is neither a class nor void."""
    return plain_ids(num_classes)(path)


def check_same_size(image: NDArray[Any], label: NDArray[np.uint8], entry: Any) -> None:
    """Refuse a label map that does not cover its image exactly."""
    if image.shape[:2] != label.shape:
        (height, width), (label_height, label_width) = image.shape[:2], label.shape
        raise InputError(
            f"{entry.label or entry.name} must have the size of its image, got {label_width}x{label_height} for an "
            f"image of {width}x{height}; resize the label map with nearest neighbour"
        )


def list_entries(images: Path, labels: Path | None) -> list[Entry]:
    """The images of a folder in name order, each with the label of the same stem (if a label folder is given)."""
    found = by_stem(images)
    if not found:
        raise InputError(f"{images} must hold png or jpg images, got none; check the path")
    if labels is None:
        return [Entry(stem, path, None) for stem, path in sorted(found.items())]
    known = by_stem(labels)
    entries = [Entry(stem, path, known.get(stem, labels / f"{stem}.png")) for stem, path in sorted(found.items())]
    return require_entries(entries, images, labels)


def require_entries(entries: list[Entry], images: Path, labels: Path) -> list[Entry]:
    """The entries, if there are some and at least one has its label; single missing labels are told on reading."""
    if not entries:
        raise InputError(f"{images} must hold the images of the data set, got {contents(images)}; check the path")
    if not any(entry.label is not None and entry.label.is_file() for entry in entries):
        wanted = entries[0].label.relative_to(labels) if entries[0].label else "labels"
        raise InputError(f"{labels} must hold label maps such as {wanted}, got {contents(labels)}; check the path")
    return entries
