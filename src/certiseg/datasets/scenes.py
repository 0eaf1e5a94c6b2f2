"""The street scenes of `certiseg.datasets.streets` as a data set with splits: other seeds in each."""

from __future__ import annotations

from dataclasses import dataclass

from certiseg.datasets.base import Dataset, Sample
from certiseg.datasets.layout import choose_split
from certiseg.datasets.streets import CLASSES, Streets

SEEDS = {"test": 0, "val": 10_000, "train": 20_000}
"""The first seed of each split."""


@dataclass(frozen=True)
class Scene:
    """One street, to be drawn from its seed."""

    name: str
    seed: int


class Scenes(Dataset):
    """`count` streets, at most 10,000 per split; nothing is read from disk."""

    def __init__(self, split: str | None = None, *, count: int = 100) -> None:
        split = choose_split(split, SEEDS, "test")
        seeds = range(SEEDS[split], SEEDS[split] + min(count, 10_000))
        entries = [Scene(f"street_{seed:05d}", seed) for seed in seeds]
        super().__init__("streets", CLASSES, entries, split=split, hierarchy="camvid")

    def read(self, entry: Scene) -> Sample:
        """Draw one street."""
        return Streets(1, first=entry.seed)[0]
