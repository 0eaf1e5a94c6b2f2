"""Street scenes made on the spot, with exact labels in the 31 CamVid classes: no download, no files.

The plan of a street (`layout`) is drawn from the seed; `scene` paints it from the far end to the near with a pinhole
camera. Every picture size shows the same street.
"""

from __future__ import annotations

from collections.abc import Iterator

from certiseg.datasets.base import Sample
from certiseg.datasets.streets.labels import CLASSES, VOID
from certiseg.datasets.streets.scene import street
from certiseg.errors import InputError

__all__ = ["CLASSES", "VOID", "Streets", "street"]


class Streets:
    """A data set of street scenes: sample i is `street(first + i)`, made when it is asked for."""

    name = "streets"
    classes = CLASSES
    void = VOID

    def __init__(self, count: int = 100, *, first: int = 0, height: int = 360, width: int = 480) -> None:
        if count < 1 or first < 0:
            raise InputError(f"count must be at least 1 and first at least 0, got {count} and {first}; change them")
        self.count, self.first = count, first
        self.height, self.width = height, width

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        if not -self.count <= index < self.count:
            raise IndexError(f"index must be in {-self.count} to {self.count - 1}, got {index}")
        seed = self.first + index % self.count
        image, label = street(seed, height=self.height, width=self.width)
        return Sample(f"street_{seed:05d}", image, label)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))
