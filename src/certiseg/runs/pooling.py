"""From the table of a run to scores: sums are added over images first, and divided once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED, read_table
from certiseg.scores import BY_CLASS, BY_LEVEL, PixelSums, Scores, divided, pooled_scores, scores_of

BASELINE = "segcertify"
"""The method that the others are compared with."""
HEADS = {
    "cig": "CIG",
    "ccig": "cCIG",
    "abstain": "abstain",
    "class_abstain": "c-abstain",
    "accuracy": "right",
    "wrong": "wrong",
    "set_size": "classes",
    "miou": "mIoU",
    "agreement": "agreement",
}
SCORES = tuple(HEADS)
LEGEND = (
    "Right and wrong: certified pixels, as shares of all; right where the true class is under the label or in the set. "
    "Classes: how many a certified label holds on average. Agreement: certified pixels whose prediction without noise "
    "lies under the label."
)
CONFIDENCE = 0.95
"""Of bootstrap intervals."""
LEAST_IMAGES = 20
"""Fewer say too little about images that were not drawn: a bootstrap of them would look surer than it is."""
Interval = tuple[float, float, float]
"""A value with the ends of its interval."""
Comparison = Callable[[Any, Any], Any]
"""Of two scores, or of two arrays of them: np.subtract, relative_gain."""


@dataclass(frozen=True, eq=False)
class ImageSums:
    """The sums of one method at one setting, image by image."""

    images: tuple[str, ...]
    each: PixelSums
    """With a leading axis of images."""

    def total(self, weights: NDArray[Any] | None = None) -> PixelSums:
        """The sums over all images, or with each image counted `weights` times."""
        return self.each.weighted(np.ones(len(self.images), np.int64) if weights is None else weights)

    def scores(self, weights: NDArray[Any] | None = None) -> Scores:
        return scores_of(self.total(weights))

    def only(self, images: Iterable[str]) -> ImageSums:
        """Some of the images."""
        wanted = set(images)
        rows = np.eye(len(self.images), dtype=np.int64)[[name in wanted for name in self.images]]
        return ImageSums(tuple(name for name in self.images if name in wanted), self.each.weighted(rows))

    def resampled(self, *, draws: int = 1000, seed: int = 0) -> dict[str, NDArray[np.float64]]:
        """Every score (draws,) on images drawn with replacement; equal seeds draw equal images for all methods."""
        weights = resample_weights(len(self.images), draws=draws, seed=seed)
        return pooled_scores(self.total(weights.astype(np.float64)))

    def row(self, names: Iterable[str], *, draws: int = 1000, seed: int = 0) -> dict[str, Any]:
        """Scores as a row of a table: NAME, and the ends of its interval as NAME_low and NAME_high."""
        scores, samples = self.scores(), self.resampled(draws=draws, seed=seed)
        found: dict[str, Any] = {}
        for name in names:
            found |= interval_cells(name, (getattr(scores, name), *self._interval(samples[name])))
        return found

    def _interval(self, samples: NDArray[np.float64]) -> tuple[float, float]:
        """NaN for both ends where there are too few images."""
        return percentile_interval(samples) if len(self.images) >= LEAST_IMAGES else (float("nan"), float("nan"))

    def compared(
        self, other: ImageSums, names: Iterable[str], how: Comparison, *, draws: int = 1000, seed: int = 0
    ) -> dict[str, Interval]:
        """how(this score, the other's) by name, with its interval, both on the same samples of images."""
        ours, theirs = self.scores(), other.scores()
        samples, others = (sums.resampled(draws=draws, seed=seed) for sums in (self, other))
        return {
            name: (
                float(how(getattr(ours, name), getattr(theirs, name))),
                *self._interval(how(samples[name], others[name])),
            )
            for name in names
        }


def interval_cells(name: str, interval: tuple[Any, float, float]) -> dict[str, Any]:
    """A value with its interval, under the keys that tables expect."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))


def brackets(images: int, draws: int) -> str:
    """The sentence under a table with intervals, or why it has none."""
    if images < LEAST_IMAGES:
        return f"No intervals: they need at least {LEAST_IMAGES} images."
    return f"Brackets: {CONFIDENCE:.0%} intervals from {draws} bootstrap samples of the images."


def resample_weights(count: int, *, draws: int, seed: int) -> NDArray[np.int64]:
    """(draws, count): how often each image occurs in each bootstrap sample."""
    if count == 0:
        raise InputError("a run must have a finished image to be analysed, got none")
    rng = np.random.Generator(np.random.Philox(seed))
    chosen = rng.integers(count, size=(draws, count)) + np.arange(draws)[:, None] * count
    return np.bincount(chosen.reshape(-1), minlength=draws * count).reshape(draws, count)


def percentile_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95 % of the values; samples without a pixel to score are left out."""
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def relative_gain(ours: Any, baseline: Any) -> NDArray[np.float64]:
    """ours / baseline - 1, NaN where the baseline is 0."""
    return divided(np.asarray(ours) - baseline, baseline)


def draws_words(draws: Mapping[str, float]) -> str:
    """The draws of stopped images in words."""
    return f"{draws['draws']:.0f} draws on average, {draws['draws_least']} to {draws['draws_most']}"


class ScoredRun:
    """A run with its table, read once."""

    def __init__(self, folder: RunFolder) -> None:
        self.manifest = folder.manifest
        self.columns = read_table(folder.table_path, run=folder.manifest.run_key)
        self.images = tuple(dict.fromkeys(self.columns["image"]))

    def has(self, method: str, setting: Setting) -> bool:
        """Whether the run computed the method at the setting."""
        return method in self.manifest.methods and setting in self.manifest.each_setting()

    def sums(self, method: str, setting: Setting | None = None, *, boundary: bool | None = None) -> ImageSums:
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
        arrays: dict[str, NDArray[Any]] = {}
        for name in BY_CLASS + BY_LEVEL:
            values = columns[name][rows]
            shape = size if name in BY_CLASS else (*size, levels)
            arrays[name] = np.zeros(shape, float if name == "gain" else np.int64)
            np.add.at(arrays[name], (place, classes), values if name in BY_CLASS else values[:, :levels])
        return ImageSums(self.images, PixelSums(**arrays, flat=flat))

    def draws(self, sigma: float) -> dict[str, float]:
        """How many draws the images had at a sigma: their mean, the least and the most; empty where n is fixed."""
        if self.manifest.stop_undecided is None:
            return {}
        columns = self.columns
        rows = (columns["sigma"] == sigma) & (columns["method"] != UNCERTIFIED)
        by_image = dict(zip(columns["image"][rows], columns["draws"][rows].tolist(), strict=True))
        made = list(by_image.values())
        return {"draws": sum(made) / len(made), "draws_least": min(made), "draws_most": max(made)}

    def describe(self) -> str:
        """The sentence under every table and figure: how many images, and what is promised."""
        manifest, count = self.manifest, len(self.images)
        images = f"{count} image{'s' if count != 1 else ''}, pixels pooled"
        correction = manifest.correction + (f" with k = {manifest.k}" if manifest.correction == "kfwer" else "")
        method, setting = manifest.promised
        single = len(manifest.methods) == len(manifest.each_setting()) == 1
        others = "" if single else " All else from the same draws is a comparison."
        return (
            f"{images}; promise: {method} at {manifest.words(setting)}, {manifest.guarantee()}{manifest.along()} "
            f"({correction}, {manifest.test} test).{others}{self._stopped()}"
        )

    def _stopped(self) -> str:
        """What is said of images that were stopped early."""
        if self.manifest.stop_undecided is None:
            return ""
        made = [(sigma, draws_words(self.draws(sigma))) for sigma in self.manifest.sigmas]
        each = "; ".join(words if len(made) == 1 else f"at sigma = {sigma:g} {words}" for sigma, words in made)
        return f" Each image was drawn until at most {self.manifest.stop_undecided:.3g} of it was undecided: {each}."
