"""How time grows with draws, pixels and classes: no worse than in proportion."""

from __future__ import annotations

import warnings
from typing import Any

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import hrnet, replayed_scores, street_pixels
from certiseg.hierarchy import flat_hierarchy


def certificate(segmenter: cs.Segmenter, height: int, width: int, *, n0: int, n: int) -> Any:
    """sample + certify of one image, as a function to be timed."""
    pixels = street_pixels(height, width)
    hierarchy = flat_hierarchy([f"class {index}" for index in range(segmenter.num_classes or 0)])

    def run() -> Any:
        votes = cs.sample(segmenter, pixels, sigma=0.25, n0=n0, n=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cs.certify(votes, hierarchy, method="sets")

    return run


def replayed(height: int = 360, width: int = 480, classes: int = 19, *, n: int = 100) -> Any:
    """Everything but the model."""
    segmenter = cs.Segmenter(replayed_scores(height, width, classes), num_classes=classes)
    return certificate(segmenter, height, width, n0=10, n=n)


def measure(*, repeats: int = 5) -> list[Figure]:
    """Time ratios over the ratio of the sizes; without the model, because the model is none of ours."""
    base = replayed()
    large, small = (certificate(hrnet(classes), 256, 512, n0=1, n=4) for classes in (171, 19))
    return [
        Figure(
            "time without the model, n = 1000 over n = 100, over 10",
            interleaved_ratio(replayed(n=1000), base, repeats=3) / 10,
            1.1,
            "<=",
        ),
        Figure(
            "time without the model, 960x720 over 480x360, over 4",
            interleaved_ratio(replayed(720, 960), base, repeats=repeats) / 4,
            1.1,
            "<=",
        ),
        Figure(
            "time without the model, 171 over 19 classes, over 9",
            interleaved_ratio(replayed(classes=171), base, repeats=repeats) / 9,
            1.0,
            "<=",
        ),
        Figure(
            "time with HRNet-W48 512x256, n = 4, 171 over 19 classes",
            interleaved_ratio(large, small, repeats=3),
            1.3,
            "<=",
        ),
    ]
