"""How time grows with draws, pixels and classes: no worse than in proportion."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import hrnet, replayed_scores, street_pixels
from certiseg.hierarchy import flat_hierarchy


def certificate(segmenter: cs.Segmenter, height: int, width: int, *, n0: int, n: int) -> Callable[[], cs.Certificate]:
    """sample + certify of one image, as a function to be timed."""
    pixels = street_pixels(height, width)
    hierarchy = flat_hierarchy([f"class {index}" for index in range(segmenter.num_classes or 0)])

    def run() -> cs.Certificate:
        votes = cs.sample(segmenter, pixels, sigma=0.25, n0=n0, n=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cs.certify(votes, hierarchy, method="sets")

    return run


def replayed(height: int = 360, width: int = 480, classes: int = 19, *, n: int = 100) -> Callable[[], cs.Certificate]:
    """Everything but the model."""
    segmenter = cs.Segmenter(replayed_scores(height, width, classes), num_classes=classes)
    return certificate(segmenter, height, width, n0=10, n=n)


def measure(*, repeats: int = 3) -> list[Figure]:
    """Time ratios over the ratio of the sizes; mostly without the model, whose time is its own."""
    base, alone = replayed(), "time without the model"
    draws = interleaved_ratio(replayed(n=1000), base, 1, (base,)) / 10
    pixels = interleaved_ratio(replayed(720, 960), base, repeats) / 4
    classes = interleaved_ratio(replayed(classes=171), base, repeats) / 9
    large, small = (certificate(hrnet(count), 256, 512, n0=1, n=2) for count in (171, 19))
    with_model = interleaved_ratio(large, small, 1)
    return [
        Figure(f"{alone}, n = 1000 over n = 100, over 10", draws, 1.1, "<="),
        Figure(f"{alone}, 960x720 over 480x360, over 4", pixels, 1.1, "<="),
        Figure(f"{alone}, 171 over 19 classes, over 9", classes, 1.0, "<="),
        Figure("time with HRNet-W48 512x256, n = 2, 171 over 19 classes", with_model, 1.3, "<="),
    ]
