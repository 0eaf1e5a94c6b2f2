"""A calibration: thresholds from the scores of labelled images, and the model they belong to.

q is the m-th smallest of J scores, m = floor((J + 1) miss): a new exchangeable image scores below it with probability
at most `miss`, which no covered attack raises above the risk (see stats/conformal.py). Each level of risk and pixels is
a promise of its own, the first one the promise of the calibration.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import BYTES, ImageLike, Picture, open_image
from certiseg.images.values import Values, values_words
from certiseg.models.segmenter import ModelLike, Segmenter, as_segmenter
from certiseg.noise import image_key
from certiseg.runs.sealed import write_sealed
from certiseg.settings import is_whole, require, stored
from certiseg.stats.conformal import least_units, threshold, threshold_rank
from certiseg.truth.answer import TruthSets
from certiseg.truth.claim import claim_of
from certiseg.truth.draw import noisy_image, over_images, posterior_of
from certiseg.truth.identity import ModelIdentity, require_same_model
from certiseg.truth.scores import UNIT, Fit, Fits
from certiseg.truth.settings import CalibrationSettings
from certiseg.words import COMPARISON, EXPLORATION

KIND = "calibration"
SEED_BITS = 128
POSTERIORS = "enlarged"
"""How posteriors reach the pixels; scores that were made in another way do not belong to these sets."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Label sets that hold the truth, for one model; see `claim()` for what is promised about them."""

    settings: CalibrationSettings
    model: ModelIdentity
    data_sha256: str
    seed: int
    """Of the noise of the calibration images."""
    scores: NDArray[np.uint32]
    """(J, levels of pixels): the score of every calibration image."""
    class_scores: Mapping[str, NDArray[np.uint32]]
    """For every chosen class (images that contain it, levels of pixels)."""
    hierarchy: Hierarchy | None = None
    """Over the classes, for the score `vertex` and for pictures."""
    values: Values = BYTES
    """What 0 and 1 stand for in the images."""
    keys: tuple[str, ...] = ()
    """Hashes of the pixels of the calibration images, in the order of the scores."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Heights and widths that occur among them."""
    fresh: bool = True
    """Whether their noise came from fresh entropy."""
    _known: WeakSet[Segmenter] = field(default_factory=WeakSet, repr=False)

    def __repr__(self) -> str:
        promise = f"risk {self.settings.risk[0]:g}, {self.settings.covered}"
        return f"Calibration({self.images} images, {self.model.name}, {promise})"

    @property
    def images(self) -> int:
        """J, the number of calibration images."""
        return len(self.scores)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, or their numbers where the model does not name them."""
        named = self.hierarchy.classes if self.hierarchy is not None else self.model.class_names
        return named or tuple(f"class {index}" for index in range(self.model.num_classes))

    def thresholds(self, *, risk: float | None = None, pixels: float | None = None) -> Fit:
        """(C,): how well each class must fit to be in a set; a chosen class may need less, never more."""
        settings = self.settings
        risk, pixels = settings.level(risk, pixels)
        place = settings.pixels.index(pixels)
        overall = threshold(self.scores[:, place], settings.miss(risk))
        found = np.full(self.model.num_classes, overall, np.uint32)
        for name, scores in self.class_scores.items():
            index = self.class_names.index(name)
            found[index] = min(overall, threshold(scores[:, place], settings.miss(settings.class_risk(risk))))
        return found

    def sets(
        self,
        model: ModelLike,
        image: ImageLike,
        seed: int | None = None,
        *,
        risk: float | None = None,
        pixels: float | None = None,
    ) -> NDArray[np.bool_]:
        """(H, W, C): the classes of every pixel, by one noisy pass; see `claim()`.

        seed: left out, the noise is fresh, as a promise needs it; a given seed is exploration.
        """
        return self.answer(model, image, seed, risk=risk, pixels=pixels).members

    def answer(
        self,
        model: ModelLike,
        image: ImageLike,
        seed: int | None = None,
        *,
        risk: float | None = None,
        pixels: float | None = None,
    ) -> TruthSets:
        """The sets of an image with all that belongs to them: noise, claim, pictures, file."""
        segmenter = as_segmenter(model)
        self.require_model(segmenter)
        return self._answered(segmenter, seed, risk, pixels, self.open(image).pixels)

    def answers(
        self,
        model: ModelLike,
        images: Iterable[ImageLike],
        seed: int | None = None,
        *,
        risk: float | None = None,
        pixels: float | None = None,
    ) -> Iterator[TruthSets]:
        """The sets of many images in their order, each with noise of its own.

        A model that several threads may ask at once answers about several images at once, each on a share of the
        threads; a few images are then read ahead.
        """
        segmenter = as_segmenter(model)
        self.require_model(segmenter)
        work = functools.partial(self._answered, segmenter, seed, risk, pixels)
        return over_images(segmenter, work, ((self.open(image).pixels,) for image in images))

    def _answered(
        self,
        segmenter: Segmenter,
        seed: int | None,
        risk: float | None,
        pixels: float | None,
        image: NDArray[np.float32],
    ) -> TruthSets:
        require_seed(seed)
        key = image_key(image)
        used = secrets.randbits(SEED_BITS) if seed is None else seed
        least, level = self.thresholds(risk=risk, pixels=pixels), self.settings.level(risk, pixels)
        packed = self.fits(segmenter, image, seed=used, key=key).sets(least)
        return TruthSets(packed, self, int(used), seed is None, key, level)

    def open(self, image: ImageLike) -> Picture:
        """An image read as those of the calibration were."""
        picture = open_image(image, values=None if self.values == BYTES else self.values, channels=self.model.channels)
        if picture.values != self.values:
            known, found = values_words(self.values), values_words(picture.values)
            raise InputError(f"values must be as calibrated, {known}, got an image of {found}; calibrate again")
        return picture

    def fits(self, segmenter: Segmenter, pixels: NDArray[np.float32], *, seed: int, key: str) -> Fits:
        """How well every class of every pixel fits in one noisy pass."""
        noisy = noisy_image(pixels, self.settings, seed=seed, key=key)
        posterior = posterior_of(segmenter, noisy, temperature=self.settings.temperature)
        return posterior.scored(self.settings.score, self.hierarchy)

    def require_model(self, segmenter: Segmenter) -> None:
        """Refuse any model but the calibrated one; looked at once for each model."""
        if segmenter not in self._known:
            require_same_model(segmenter, self.model)
            self._known.add(segmenter)

    def against(
        self, level: tuple[float, float], *, fresh: bool = True, key: str | None = None
    ) -> list[tuple[str, str]]:
        """Why sets of that level are no promise: what they are instead, and a sentence."""
        found = []
        if not fresh:
            why = "Exploration, not a promise: the seed of the noise was given, and whoever knows it can attack."
            found.append((EXPLORATION, why))
        if key in self.keys:
            why = "Exploration, not a promise: the image is one of the calibration images; the promise is about others."
            found.append((EXPLORATION, why))
        if level != self.settings.level(None, None):
            why = "A comparison: the promise of this calibration is its first level of risk and pixels."
            found.append((COMPARISON, why))
        return found

    def claim(
        self,
        *,
        risk: float | None = None,
        pixels: float | None = None,
        size: tuple[int, ...] | None = None,
        fresh: bool = True,
        key: str | None = None,
    ) -> str:
        """The guarantee in plain words; size, key: height and width of the image it is said of, and its hash."""
        level, doubts = self.settings.level(risk, pixels), []
        if not self.fresh:
            doubts.append("The seed of the calibration was given: it must be the only one that was tried.")
        if size is not None and self.sizes and tuple(size[:2]) not in self.sizes:
            doubts.append(
                f"No calibration image has the size of this one, {size[1]}x{size[0]}: it is hardly drawn like them."
            )
        return claim_of(
            self.settings,
            level=level,
            images=self.images,
            of_classes={name: len(scores) for name, scores in self.class_scores.items()},
            against=[why for _, why in self.against(level, fresh=fresh, key=key)],
            doubts=doubts,
            shape=None if size is None else (size[0], size[1], self.model.channels),
            values=self.values,
        )

    def table(self) -> list[dict[str, Any]]:
        """A row for each level: risk, pixels, and the threshold of every class, as a share of one."""
        return [
            {"risk": risk, "pixels": pixels, "thresholds": (self.thresholds(risk=risk, pixels=pixels) / UNIT).tolist()}
            for risk in self.settings.risk
            for pixels in self.settings.pixels
        ]

    def content(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "settings": stored(self.settings),
            "model": self.model.stored(),
            "data_sha256": self.data_sha256,
            "images": self.images,
            "keys": list(self.keys),
            "sizes": [list(size) for size in self.sizes],
            "seed": self.seed,
            "fresh": self.fresh,
            "hierarchy": None if self.hierarchy is None else self.hierarchy.as_dict(),
            "values": [list(pair) for pair in self.values],
            "unit": UNIT,
            "posteriors": POSTERIORS,
            "scores": self.scores.tolist(),
            "class_scores": {name: scores.tolist() for name, scores in self.class_scores.items()},
            "thresholds": self.table(),
            "claim": self.claim(),
        }

    def save(self, path: str | Path) -> None:
        """Write one JSON file, sealed by a SHA-256 of its bytes."""
        write_sealed(Path(path), KIND, self.content())


def require_enough(images: int, settings: CalibrationSettings, of_classes: Mapping[str, int] | None = None) -> None:
    """Refuse fewer images than the promises need, in all or with a chosen class."""
    asked = [("images", images, settings.miss(min(settings.risk)), min(settings.risk))]
    risk = settings.class_risk(min(settings.risk))
    asked += [(f"images with {name}", n, settings.miss(risk), risk) for name, n in (of_classes or {}).items()]
    for what, count, miss, at in asked:
        if threshold_rank(count, miss) < 1:
            least = least_units(miss)
            if least is None:
                raise InputError(
                    f"risk must be reachable, got {at:g}, {settings.covered}: no number of {what} is enough"
                )
            raise InputError(
                f"calibration {what} must be at least {least} for risk {at:g}, {settings.covered}, got "
                f"{count}; add images, or promise less"
            )


def require_seed(seed: int | None) -> None:
    """Refuse what is no seed, before the first pass."""
    require(seed is None or is_whole(seed), "seed", "be a whole number, or left out", seed)
