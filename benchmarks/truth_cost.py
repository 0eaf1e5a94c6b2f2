"""What sets that hold the truth cost beside the one pass that they need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, hrnet, street_pixels
from benchmarks.overhead import bare_passes
from certiseg.models.segmenter import Segmenter
from certiseg.truth.calibration import Calibration
from certiseg.truth.identity import identity_of
from certiseg.truth.scores import UNIT
from certiseg.truth.settings import CalibrationSettings


def measure(*, repeats: int = 21) -> list[Figure]:
    """`Calibration.answers` of several images over as many bare passes, at a made-up threshold of one per cent.

    And `answer`, of one image alone: what a camera that waits for every answer gets.
    """
    figures = []
    for model, pixels, which, images, times in (
        (compact(), street_pixels(), "compact 480x360", 16, repeats),
        (hrnet(), street_pixels(512, 1024), "HRNet-W48 1024x512", 4, 3),
    ):
        scores = np.full((60, 1), UNIT // 100, np.uint32)
        calibration = Calibration(CalibrationSettings(), identity_of(model, pixels.shape[:2]), "", 0, scores, {})
        many = partial(_answered, calibration, model, [pixels] * images)
        alone = partial(calibration.answer, model, pixels)
        for made, count, how in ((many, images, f"{images} images"), (alone, 1, "one image alone")):
            ratio = interleaved_ratio(made, bare_passes(model, pixels, count), repeats=times)
            name = f"sets that hold the truth over bare forward passes, {which}, {how}"
            figures.append(Figure(name, ratio, 1.05, "<="))
    return figures


def _answered(calibration: Calibration, model: Segmenter, images: Sequence[NDArray[np.float32]]) -> None:
    for _ in calibration.answers(model, images):
        pass
