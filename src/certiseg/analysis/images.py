"""The images of a run one by one: their scores, and how much a method wins over segcertify on each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import BASELINE
from certiseg.runs.manifest import Setting


@dataclass(frozen=True)
class ImageScores:
    """CIG and abstain rate of one image, by method; every image of a run has a pixel to score."""

    name: str
    cig: dict[str, float]
    abstain: dict[str, float]

    def gain(self, method: str) -> float:
        """CIG of the method minus that of segcertify; 0 where the run has no segcertify."""
        return self.cig[method] - self.cig[BASELINE] if BASELINE in self.cig else 0.0


def image_scores(pools: Pools, setting: Setting) -> list[ImageScores]:
    """Every image of the run at one setting, in the run's order."""
    found = [ImageScores(name, {}, {}) for name in pools.images]
    for method in pools.manifest.methods:
        sums = pools.pool(method, setting).by_class
        pixels = np.maximum(sums["pixels"].sum(axis=1), 1)
        for name in ("cig", "abstain"):
            of_images = sums["gain" if name == "cig" else "abstained"].sum(axis=1) / pixels
            for image, value in zip(found, of_images, strict=True):
                getattr(image, name)[method] = float(value)
    return found


def by_gain(scores: list[ImageScores], method: str) -> list[ImageScores]:
    """The images where the method wins most first; ties as listed."""
    return sorted(scores, key=lambda image: -image.gain(method))
