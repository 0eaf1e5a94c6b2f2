"""Everything but the model, with replayed scores, against a straightforward pipeline."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import certiseg as cs
from benchmarks import pipelines
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import replayed_compact, street_pixels


def measure(*, draws: int = 100, repeats: int = 1) -> list[Figure]:
    """Times faster."""
    pixels, camvid = street_pixels(), cs.load_hierarchy("camvid")
    replayed = replayed_compact(pixels)
    segmenter = cs.Segmenter(replayed, num_classes=31)

    def ours(n: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the few draws that warm up certify nothing
            return cs.certify(cs.sample(segmenter, pixels, sigma=0.25, n0=10, n=n), camvid, method="segcertify")

    def theirs(n: int) -> Any:
        return pipelines.straightforward(replayed, pixels, sigma=0.25, n0=10, n=n)

    warm = (partial(theirs, 5), partial(ours, 5))
    ratio = interleaved_ratio(partial(theirs, draws), partial(ours, draws), repeats=repeats, warm=warm)
    name = f"everything but the passes, compact 480x360, n = {draws}: times faster than a straightforward pipeline"
    return [Figure(name, ratio, 5, ">=")]
