"""A small regression check of the ratios with generous margins, for CI: under two minutes."""

from __future__ import annotations

from dataclasses import replace

import certiseg as cs
from benchmarks import after_sampling, certify_speed, overhead, sample_memory, scaling
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import street_pixels


def measure() -> list[Figure]:
    """Ratios that a slip in the hot loops would spoil, on small inputs.

    sample over bare passes is not among them: passes in torch scatter from process to process, and the ratio of one
    process was anything from 0.85 to 1.6 on idle cores.
    """
    model, pixels = cs.load_model("compact"), street_pixels()
    longer = interleaved_ratio(scaling.replayed(n=300), scaling.replayed(n=30), repeats=3) / 10
    return [
        replace(overhead.noise_share(model, pixels), aim=0.15),
        *(replace(figure, aim=5.0) for figure in certify_speed.measure(256, 512)),
        *(replace(figure, aim=60.0) for figure in after_sampling.measure(draws=80, repeats=2)),
        Figure("time without the model, n = 300 over n = 30, over 10", longer, 1.4, "<="),
        *(replace(figure, aim=1.1) for figure in [sample_memory.growth((50, 200))]),
    ]
