"""How long moving an image along a threat takes, beside one bare forward pass of `compact`."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, street_pixels
from benchmarks.overhead import bare_passes
from certiseg import threats
from certiseg.noise.along_threat import moved_images
from certiseg.settings import SamplingSettings

AIMS = {"blur": 0.15}
AIM = 0.05


def measure(*, repeats: int = 21) -> list[Figure]:
    """One draw of each threat without pixel noise, 480x360."""
    pixels, model = street_pixels(), compact()
    depth = np.linspace(1, 60, pixels.shape[0] * pixels.shape[1]).reshape(pixels.shape[:2])
    kinds = [threats.named(name, 0.5) for name in threats.NAMES]
    figures = []
    for threat in (*kinds, threats.fog(0.02, depth=depth)):
        settings = SamplingSettings(sigma=0.0, threat=threat)
        write, out = moved_images(pixels, settings, image_key="", stage="estimation"), np.empty_like(pixels)
        ratio = interleaved_ratio(
            lambda write=write, out=out: write(3, out), bare_passes(model, pixels, 1), repeats=repeats
        )
        name = f"{threat.name}{' by depth' if getattr(threat, 'depth', None) is not None else ''}"
        aim = AIMS.get(threat.name, AIM)
        figures.append(Figure(f"{name} of a draw over a bare forward pass, compact 480x360", ratio, aim, "<="))
    return figures
