"""Gamma: another exponent of brightness, T_t x = x^(exp t), of either sign of t."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError
from certiseg.stats.radius import reach
from certiseg.threats.base import Path, Pixels, Threat
from certiseg.words import no_less, no_more


@dataclass(frozen=True, eq=False)
class Gamma(Threat):
    """T_t x = x^(exp t), a group; scale: the deviation s of the Gaussian law of t."""

    name = "gamma"
    law = "normal"

    def along(self, pixels: Pixels) -> Path:
        with np.errstate(divide="ignore"):
            logarithm = np.log(pixels)  # -inf at 0, which every exponent keeps at 0

        def power(t: float, out: Pixels) -> None:
            np.multiply(logarithm, np.float32(np.exp(t)), out=out)
            np.exp(out, out=out)

        return power

    def reach(self, share: ArrayLike, *, radius: float = 0.0, sigma: float = 0.0) -> NDArray[np.float64]:
        """|t| <= s Phi^-1(p), as for pixel noise, but along one parameter."""
        if radius > 0 or sigma > 0:
            raise InputError(
                f"sigma and radius must be 0 for gamma, got {sigma!r} and {radius!r}: near black it stretches changes "
                "of a pixel without bound"
            )
        return reach(self.scale, share)

    def words(self, t: float) -> str:
        return f"gamma between {no_less(np.exp(-abs(t)), 2)} and {no_more(np.exp(abs(t)), 2)}"

    def describe(self) -> str:
        return "another exponent (gamma) of the pixel values in [0, 1]"
