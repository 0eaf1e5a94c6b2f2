"""One of each threat, small images, and models whose answer is a known function of the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg import threats

DEPTH = np.random.default_rng(5).uniform(0, 2, (9, 12))
ALL: dict[str, threats.Threat] = {
    "fog": threats.fog(0.5, airlight=0.7),
    "fog by depth": threats.fog(0.5, airlight=0.9, depth=DEPTH),
    "dark": threats.dark(0.7),
    "haze": threats.haze(0.4),
    "flat": threats.flat(0.6),
    "blur": threats.blur(1.5),
    "gamma": threats.gamma(0.5),
}
ONE_SIDED = {name: threat for name, threat in ALL.items() if name != "gamma"}


def picture(seed: int = 0, size: tuple[int, int] = (9, 12)) -> NDArray[np.float32]:
    """Random values in [0, 1], black and white pixels among them."""
    pixels = np.random.default_rng(seed).random((*size, 3), np.float32)
    pixels[0, 0], pixels[0, 1] = 0, 1
    return pixels


def moved(threat: threats.Threat, pixels: NDArray[np.float32], t: float) -> Any:
    out = np.empty_like(pixels)
    threat.along(pixels)(t, out)
    return out
