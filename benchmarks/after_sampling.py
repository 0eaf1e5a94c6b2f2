"""Everything after sampling against the published steps from stored logits."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

import certiseg as cs
from benchmarks import pipelines
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import replayed_compact, street_pixels
from certiseg.sampling import draw, start, votes_of
from certiseg.settings import SamplingSettings


def measure(*, draws: int = 100, repeats: int = 2) -> list[Figure]:
    """From sums and counts to a nested certificate, against arg max, mode, comparison and p-values."""
    pixels, camvid = street_pixels(), cs.load_hierarchy("camvid")
    replayed, n0 = replayed_compact(pixels), 10
    segmenter = cs.Segmenter(replayed, num_classes=31)
    tally = start(segmenter, pixels, SamplingSettings(sigma=0.25, n0=n0, n=draws))
    draw(segmenter, pixels, tally, "selection", list(range(n0)))
    draw(segmenter, pixels, tally, "estimation", list(range(draws)))
    logits = torch.empty(n0 + draws, 31, 360, 480)
    for index in range(n0 + draws):
        scores = replayed.scores[index % len(replayed.scores)]
        logits[index] = F.interpolate(scores, size=(360, 480), mode="bilinear")[0]

    def ours() -> Any:
        return cs.certify(votes_of(tally, segmenter), camvid, method="nested")

    ratio = interleaved_ratio(lambda: pipelines.published(logits, n0=n0), ours, repeats=repeats)
    name = f"everything after sampling, 480x360, n = {draws}: times faster than the published steps"
    return [Figure(name, ratio, 300, ">=")]
