"""What sets that hold the truth cost beside the one pass that they need."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, street_pixels
from benchmarks.overhead import bare_passes
from certiseg.truth.calibration import Calibration
from certiseg.truth.identity import identity_of
from certiseg.truth.scores import UNIT
from certiseg.truth.settings import CalibrationSettings


def measure(*, repeats: int = 21) -> list[Figure]:
    """`Calibration.answer` of one image over one bare pass; the thresholds are made up, which changes no time."""
    pixels, model = street_pixels(), compact()
    scores = np.full((60, 1), UNIT // 100, np.uint32)
    calibration = Calibration(CalibrationSettings(), identity_of(model, pixels.shape[:2]), "", 0, scores, {})
    ratio = interleaved_ratio(lambda: calibration.answer(model, pixels), bare_passes(model, pixels, 1), repeats=repeats)
    return [Figure("sets that hold the truth over a bare forward pass, compact 480x360", ratio, 1.05, "<=")]
