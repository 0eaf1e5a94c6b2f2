"""Everything but the model against a straightforward pipeline: time with replayed scores, memory with `compact`."""

from __future__ import annotations

from typing import Any

import certiseg as cs
from benchmarks import pipelines
from benchmarks.measure import Figure, interleaved_ratio, peak_memory
from benchmarks.models import replayed_compact, street_pixels

_MODEL = """
import numpy as np, torch, scipy.stats, certiseg as cs
from benchmarks.models import street_pixels
from benchmarks.pipelines import straightforward
pixels, model = street_pixels(), cs.load_model("compact")
cs.certify(cs.sample(model, pixels[:32, :32], sigma=0.25, n0=1, n=60), cs.load_hierarchy("camvid"))
model(torch.from_numpy(pixels).permute(2, 0, 1)[None])
"""
_OURS = 'cs.certify(cs.sample(model, pixels, sigma=0.25, n0=10, n={n}), cs.load_hierarchy("camvid"))'
_THEIRS = "straightforward(model.model, pixels, sigma=0.25, n0=10, n={n})"


def measure(*, draws: int = 100, repeats: int = 3) -> list[Figure]:
    """Times faster, and times less memory beyond libraries, the model and one pass of it."""
    pixels, camvid = street_pixels(), cs.load_hierarchy("camvid")
    replayed = replayed_compact(pixels)
    segmenter = cs.Segmenter(replayed, num_classes=31)

    def ours() -> Any:
        return cs.certify(cs.sample(segmenter, pixels, sigma=0.25, n0=10, n=draws), camvid, method="segcertify")

    ratio = interleaved_ratio(
        lambda: pipelines.straightforward(replayed, pixels, sigma=0.25, n0=10, n=draws), ours, repeats=repeats
    )
    model, mine, theirs = (peak_memory(_MODEL + code.format(n=draws)) for code in ("", _OURS, _THEIRS))
    what = f"compact 480x360, n = {draws}"
    return [
        Figure(f"everything but the passes, {what}: times faster than a straightforward pipeline", ratio, 5, ">="),
        Figure(f"peak memory beyond the model, {what}: times less", (theirs - model) / (mine - model), 20, ">="),
    ]
