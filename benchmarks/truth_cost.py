"""What sets that hold the truth cost beside the one pass that they need."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, hrnet, street_pixels
from benchmarks.overhead import bare_passes
from certiseg.truth.calibration import Calibration
from certiseg.truth.identity import identity_of
from certiseg.truth.scores import UNIT
from certiseg.truth.settings import CalibrationSettings


def measure(*, repeats: int = 21) -> list[Figure]:
    """`Calibration.answer` of one image over one bare pass, at a made-up threshold of one per cent."""
    figures = []
    for model, pixels, which, times in (
        (compact(), street_pixels(), "compact 480x360", repeats),
        (hrnet(), street_pixels(512, 1024), "HRNet-W48 1024x512", 3),
    ):
        scores = np.full((60, 1), UNIT // 100, np.uint32)
        calibration = Calibration(CalibrationSettings(), identity_of(model, pixels.shape[:2]), "", 0, scores, {})
        made, bare = partial(calibration.answer, model, pixels), bare_passes(model, pixels, 1)
        ratio = interleaved_ratio(made, bare, repeats=times)
        figures.append(Figure(f"sets that hold the truth over a bare forward pass, {which}", ratio, 1.05, "<="))
    return figures
