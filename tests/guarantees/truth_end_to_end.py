"""Promises about the truth through the whole package: images, a network, its noise, sets, and the worst attack.

The score of an image is a rising function of the sum of its pixels, so that the worst perturbation is the same for all:
every pixel darker by r / sqrt(number of values). What is covered is counted in the sets of the attacked images.
"""

from __future__ import annotations

import numpy as np
import torch

import certiseg as cs
from certiseg.truth.settings import CalibrationSettings

from .truth_worlds import Measured

SIDE = 2
VALUES = 3 * SIDE * SIDE


class SumOfPixels(torch.nn.Module):
    """Two classes; the true one, 0, the likelier the brighter the image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        level = (images.sum((1, 2, 3)) - VALUES / 2) / VALUES**0.5
        scores = torch.stack([level, -level], 1) * 2
        return scores[:, :, None, None].expand(-1, -1, SIDE, SIDE)


def measure(
    settings: CalibrationSettings, *, images: int, calibrations: int, tests: int, spread: float = 0.05, seed: int = 0
) -> Measured:
    """Coverage of attacked images by the sets of the package; spread: of the brightness, between images."""
    rng, model = np.random.default_rng(seed), cs.Segmenter(SumOfPixels(), num_classes=2)
    label = np.zeros((SIDE, SIDE), np.uint8)
    darker = np.float32(settings.radius / VALUES**0.5)
    asked = {"sigma": settings.sigma, "radius": settings.radius, "risk": settings.risk, "score": settings.score}
    covered, clean = np.empty((calibrations, tests)), np.empty((calibrations, tests))
    for c in range(calibrations):
        pictures = [_picture(rng, spread) for _ in range(images)]
        calibration = cs.calibrate(model, pictures, [label] * images, **asked)
        for t in range(tests):
            picture = _picture(rng, spread)
            covered[c, t] = calibration.sets(model, picture - darker)[..., 0].all()
            clean[c, t] = calibration.sets(model, picture)[..., 0].all()
    means, risk = covered.mean(1), settings.risk[0]
    name = f"whole package, {settings.score}: risk {risk:g}, {settings.covered}, {images} images"
    error = float(means.std(ddof=1) / np.sqrt(calibrations))
    return Measured(name, "ours", 1 - risk, float(means.mean()), error, float(clean.mean()))


def _picture(rng: np.random.Generator, spread: float) -> np.ndarray:
    level = 0.5 + np.clip(spread * rng.standard_normal(), -0.3, 0.3) / VALUES**0.5
    return np.clip(level + rng.uniform(-1e-3, 1e-3, (SIDE, SIDE, 3)), 0.2, 0.8).astype(np.float32)
