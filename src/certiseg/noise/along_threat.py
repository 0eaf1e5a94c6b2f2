"""Draws along a threat: each takes a parameter of its own, from a stream apart from that of the pixel noise.

Threat and anchor are part of both streams, so that draws at different anchors are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from certiseg.kernels.noise import fill_words
from certiseg.noise.gaussian import add_noise
from certiseg.noise.stream import NoiseStream, noise_stream

if TYPE_CHECKING:
    from certiseg.settings import SamplingSettings, Stage
    from certiseg.threats import Threat

_BITS = 64
"""Of randomness in a parameter."""


def standard_parameter(stream: NoiseStream, draw: int, law: Literal["exponential", "normal"]) -> float:
    """The parameter of one draw at scale 1: -ln u for a uniform u in (0, 1], or a standard normal value."""
    words = np.empty((4, 1), np.uint32)
    fill_words(words, np.uint64(stream.key), np.uint64(stream.nonce), np.uint64(draw), np.uint64(0))
    high, low, sign = (int(words[k, 0]) for k in range(3))
    whole = (high << 32) | low
    if law == "exponential":
        return -math.log((whole + 1) / 2**_BITS)
    from scipy.special import ndtri

    # Half of the line from 64 bits, and its sign from another: no value is infinite, and the tails are exact.
    return float(ndtri((2 * whole + 1) / 2 ** (_BITS + 2))) * (1 if sign & 1 else -1)


def threat_streams(
    threat: Threat, anchor: float, *, seed: int, image_key: str, stage: Stage
) -> tuple[NoiseStream, NoiseStream]:
    """The streams of the parameters and of the pixel noise at an anchor."""
    parameter, pixels = (
        noise_stream(seed=seed, image_key=image_key, stage=stage, along=(threat.identity, repr(anchor), purpose))
        for purpose in ("parameter", "pixels")
    )
    return parameter, pixels


def moved_images(
    pixels: NDArray[np.float32], settings: SamplingSettings, *, image_key: str, stage: Stage
) -> Callable[[int, NDArray[np.float32]], None]:
    """A function that writes T_(a + beta) x + eps for a draw into an array of the image's shape."""
    threat, anchors, sigma = settings.threat, settings.anchors, settings.sigma
    assert threat.law != "none"
    law, move = threat.law, threat.along(pixels)
    streams = [threat_streams(threat, a, seed=settings.seed, image_key=image_key, stage=stage) for a in anchors]

    def write(draw: int, out: NDArray[np.float32]) -> None:
        index, place = divmod(draw, len(anchors))
        of_parameter, of_pixels = streams[place]
        move(anchors[place] + threat.scale * standard_parameter(of_parameter, index, law), out)
        if sigma > 0:
            add_noise(of_pixels, index, out, sigma, out)

    return write
