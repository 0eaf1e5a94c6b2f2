"""Learning rate over a run: linear warm-up, then polynomial or cosine decay, as a share of the largest rate."""

from __future__ import annotations

import math


def learning_rate_share(step: int, total: int, *, schedule: str, warmup: float) -> float:
    """The factor in (0, 1] for a step of `total`; `warmup` is the share of the run that climbs.

    poly: (1 - t)^0.9 after the warm-up, the usual choice in segmentation. one-cycle: half a cosine down to 1/1000.
    """
    climb = warmup * total
    if step < climb:
        return max(0.02, (step + 1) / max(1.0, climb))
    t = (step - climb) / max(1.0, total - climb)
    if schedule == "poly":
        return max(1e-3, (1 - t) ** 0.9)
    return max(1e-3, 0.5 * (1 + math.cos(math.pi * t)))
