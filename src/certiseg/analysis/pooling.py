"""From the rows of a run to scores: rows are selected, their sums added, and divided once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.runs.table import BY_CLASS, BY_LEVEL, UNCERTIFIED, read_table
from certiseg.scores import PixelSums, Scores, scores_of


@dataclass(frozen=True, eq=False)
class Pool:
    """The sums of a run by image, ready to be pooled over any images."""

    images: tuple[str, ...]
    by_class: dict[str, NDArray[Any]]
    """name -> (images, C)."""
    by_level: dict[str, NDArray[Any]]
    """name -> (images, C, L)."""
    flat: bool

    def scores(self, weights: NDArray[np.integer] | None = None) -> Scores:
        """Scores over all images, or with each image counted `weights` times."""
        return scores_of(self.sums(weights))

    def sums(self, weights: NDArray[np.integer] | None = None) -> PixelSums:
        weights = np.ones(len(self.images), np.int64) if weights is None else weights
        arrays = {
            name: np.tensordot(weights, values, axes=1) for name, values in (self.by_class | self.by_level).items()
        }
        return PixelSums(**arrays, flat=self.flat)

    def interval(self, score: str, *, draws: int = 1000, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
        """A percentile interval of a score by resampling images."""
        rng = np.random.Generator(np.random.Philox(seed))
        count = len(self.images)
        values = [
            getattr(self.scores(np.bincount(rng.integers(count, size=count), minlength=count)), score)
            for _ in range(draws)
        ]
        low, high = np.nanquantile(np.array(values, float), [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


class Pools:
    """All pools of a run, read from its table once."""

    def __init__(self, folder: RunFolder) -> None:
        self.manifest = folder.manifest
        self.columns = read_table(folder.table_path)
        self.images = tuple(dict.fromkeys(self.columns["image"]))

    def pool(self, method: str, setting: Setting | None = None, *, boundary: bool | None = None) -> Pool:
        """The sums of one method at one setting (None: the uncertified model), on boundary pixels or not if asked."""
        columns = self.columns
        rows = columns["method"] == method
        if setting is not None:
            for name in ("sigma", "n", "tau"):
                rows &= columns[name] == getattr(setting, name)
        if boundary is not None:
            rows &= columns["boundary"] == boundary
        number = {name: index for index, name in enumerate(self.images)}
        place = np.array([number[name] for name in columns["image"][rows]], np.intp)
        classes = columns["class"][rows].astype(np.intp)
        levels = 1 if method == UNCERTIFIED else self.manifest.tree.num_levels
        size = (len(self.images), self.manifest.tree.num_classes)
        by_class, by_level = {}, {}
        for name in BY_CLASS:
            by_class[name] = np.zeros(size, float if name == "gain" else np.int64)
            np.add.at(by_class[name], (place, classes), columns[name][rows])
        for name in BY_LEVEL:
            by_level[name] = np.zeros((*size, levels), np.int64)
            np.add.at(by_level[name], (place, classes), columns[name][rows][:, :levels])
        return Pool(self.images, by_class, by_level, bool(columns["flat"][rows].all()))
