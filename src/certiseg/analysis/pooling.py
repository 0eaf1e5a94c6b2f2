"""From the rows of a run to scores: rows are selected, their sums added, and divided once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.runs.table import BY_CLASS, BY_LEVEL, UNCERTIFIED, read_table
from certiseg.scores import PixelSums, Scores, scores_of

SCORES = ("cig", "ccig", "abstain", "class_abstain", "accuracy", "miou")
LEVEL = 0.95
"""Of the intervals."""


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

    def only(self, images: Iterable[str]) -> Pool:
        """The pool of some of the images."""
        wanted = set(images)
        rows = np.array([name in wanted for name in self.images], bool)
        by_class = {name: values[rows] for name, values in self.by_class.items()}
        by_level = {name: values[rows] for name, values in self.by_level.items()}
        return Pool(tuple(name for name in self.images if name in wanted), by_class, by_level, self.flat)

    def resampled(self, *, draws: int = 1000, seed: int = 0) -> dict[str, NDArray[np.float64]]:
        """Every score (draws,) on images drawn again with replacement; equal seeds draw equal images for all pools."""
        weights = resample_weights(len(self.images), draws=draws, seed=seed)
        sums: dict[str, Any] = {name: weights @ self.by_class[name].astype(np.float64) for name in BY_CLASS}
        pixels, union = sums["pixels"], sums["pixels"] + sums["claimed"] - sums["right"]
        total = pixels.sum(axis=1)
        return {
            "cig": _divided(sums["gain"].sum(axis=1), total),
            "ccig": _mean_share(sums["gain"], pixels),
            "abstain": _divided(sums["abstained"].sum(axis=1), total),
            "class_abstain": _mean_share(sums["abstained"], pixels),
            "accuracy": _divided(sums["right"].sum(axis=1), total),
            "miou": _mean_share(sums["right"], union) if self.flat else np.full(draws, np.nan),
        }

    def interval(self, score: str, *, draws: int = 1000, seed: int = 0, level: float = LEVEL) -> tuple[float, float]:
        """A percentile interval of a score by resampling images."""
        return percentile_interval(self.resampled(draws=draws, seed=seed)[score], level=level)


def pool_of(images: Sequence[str], sums: Sequence[PixelSums], *, flat: bool = False) -> Pool:
    """The pool of images whose sums are at hand."""
    by_class = {name: np.stack([getattr(s, name) for s in sums]) for name in BY_CLASS}
    by_level = {name: np.stack([getattr(s, name) for s in sums]) for name in BY_LEVEL}
    return Pool(tuple(images), by_class, by_level, flat)


def resample_weights(count: int, *, draws: int, seed: int) -> NDArray[np.int64]:
    """(draws, count): how often each image occurs in each bootstrap sample."""
    if count == 0:
        raise InputError("a run must have a finished image to be analysed, got none")
    rng = np.random.Generator(np.random.Philox(seed))
    chosen = rng.integers(count, size=(draws, count)) + np.arange(draws)[:, None] * count
    return np.bincount(chosen.reshape(-1), minlength=draws * count).reshape(draws, count)


def percentile_interval(values: NDArray[np.float64], *, level: float = LEVEL) -> tuple[float, float]:
    """The middle `level` of the values; samples without a pixel to score do not enter."""
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def relative_gain(ours: Any, baseline: Any) -> Any:
    """ours / baseline - 1, NaN where the baseline has nothing."""
    return _divided(np.asarray(ours, float) - baseline, np.asarray(baseline, float))


def _divided(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=np.asarray(whole) > 0)


def _mean_share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of part / whole over the classes that occur in the row's sample."""
    occurs = whole > 0
    share = np.divide(part, whole, out=np.zeros_like(part), where=occurs)
    return _divided(share.sum(axis=1), occurs.sum(axis=1).astype(np.float64))


class Pools:
    """All pools of a run, read from its table once."""

    def __init__(self, folder: RunFolder) -> None:
        self.manifest = folder.manifest
        self.columns = read_table(folder.table_path)
        self.images = tuple(dict.fromkeys(self.columns["image"]))

    def has(self, method: str, setting: Setting) -> bool:
        """Whether the run computed the method at the setting."""
        return method in self.manifest.methods and setting in self.manifest.each_setting()

    def pool(self, method: str, setting: Setting | None = None, *, boundary: bool | None = None) -> Pool:
        """The sums of one method at one setting (None: the uncertified model), on boundary pixels or not if asked."""
        columns = self.columns
        rows = columns["method"] == method
        if setting is not None:
            for name in ("sigma", "n", "tau"):
                rows &= columns[name] == getattr(setting, name)
        if not rows.any():
            raise InputError(f"method and setting must be of the run, got {method} at {setting}")
        flat = bool(columns["flat"][rows].all())
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
        return Pool(self.images, by_class, by_level, flat)
