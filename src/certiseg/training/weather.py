"""Fog, darkness, blur and other threats of light and weather on training images, each of a random strength."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certiseg import threats as of_certification
from certiseg.errors import InputError
from certiseg.threats import NAMES


def parse_threats(text: str) -> tuple[tuple[str, float], ...]:
    """Names and scales of `fog:0.7,blur:3`."""
    threats = []
    for entry in filter(None, text.split(",")):
        name, _, scale = entry.partition(":")
        try:
            value = float(scale)
        except ValueError:
            value = 0.0
        if name not in NAMES or not 0 < value <= 100:
            raise InputError(
                f"threat must be NAME:SCALE with a name of {', '.join(NAMES)} and a scale in (0, 100], got {entry!r}; "
                "write it like fog:0.7,blur:3"
            )
        threats.append((name, value))
    return tuple(threats)


def expose(
    image: NDArray[np.float32], threats: Sequence[tuple[str, float]], rng: np.random.Generator
) -> NDArray[np.float32]:
    """The image (h, w, 3) in [0, 1] under one of the threats, of a strength as certification draws it."""
    name, scale = threats[int(rng.integers(len(threats)))]
    t = rng.normal(0, scale) if name == "gamma" else rng.exponential(scale)
    options = {"airlight": rng.uniform(0.6, 1)} if name == "fog" else {}
    exposed = np.empty_like(image)
    of_certification.named(name, scale, **options).along(image)(t, exposed)
    return exposed
