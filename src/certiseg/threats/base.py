"""What a threat is: a change of the image with one parameter t that composes, T_s T_t = T_(s+t).

Every draw takes a parameter of its own at random and asks the model about T_beta x. What then holds for a whole range
of t, and why, stands in docs/threats.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError
from certiseg.images import ImageLike, read_image
from certiseg.stats.radius import radius as l2_radius
from certiseg.words import rounded_down

Law = Literal["none", "exponential", "normal"]
Pixels = NDArray[np.float32]
Path = Callable[[float, Pixels], None]
"""Writes T_t x into an array of the image's shape."""


@dataclass(frozen=True, eq=False)
class Threat(ABC):
    """A change of the image with one parameter t; scale: the mean of the exponential law of t, in units of t."""

    scale: float
    name: ClassVar[str]
    law: ClassVar[Law] = "exponential"
    """How t is drawn: exponential for t >= 0, normal for t of either sign, none for pixel noise alone."""

    def __post_init__(self) -> None:
        good = isinstance(self.scale, int | float | np.number) and np.isfinite(self.scale) and self.scale > 0
        if not good:
            raise InputError(f"scale must be a positive number, got {self.scale!r}")
        object.__setattr__(self, "scale", float(self.scale))

    @abstractmethod
    def along(self, pixels: Pixels) -> Path:
        """T_t x as a function of t, with what does not depend on t computed once."""

    @abstractmethod
    def words(self, t: float) -> str:
        """What a parameter up to t means to people."""

    def extent(self, end: float, radius: float) -> str:
        """What is covered up to the end of a range, in a few words: R = 0.1686, or fog of density up to 29 %."""
        if self.law == "none":
            return f"R = {rounded_down(radius, 4)}"
        return self.words(end) + (f" and R = {rounded_down(radius, 4)}" if radius else "")

    def apply(self, image: ImageLike, t: float) -> Pixels:
        """T_t x, for an image in [0, 1]: real values, not rounded to 8 bits."""
        pixels = read_image(image)
        self.require_fits(pixels)
        self.require_parameter(t)
        changed = np.empty_like(pixels)
        self.along(pixels)(float(t), changed)
        return changed

    def require_fits(self, pixels: Pixels) -> None:
        """Refuse an image that the threat cannot be applied to, or does nothing to."""
        if pixels.ndim != 3:
            raise InputError(f"image must have the shape (H, W, channels), got {pixels.shape}")

    def require_parameter(self, t: float) -> None:
        """Refuse a parameter that the threat does not have."""
        if not (np.isfinite(t) and (t >= 0 or self.law == "normal")):
            raise InputError(f"t must be a number{'' if self.law == 'normal' else ' >= 0'}, got {t!r}")

    def reach(self, share: ArrayLike, *, radius: float = 0.0, sigma: float = 0.0) -> NDArray[np.float64]:
        """How far t may go from where a share is exceeded so that more than half stay: lam ln(Phi(-r/sigma) / (1-p)).

        Beta + delta has e^(delta/lam) times the density of beta on [delta, inf), so a share p becomes at least
        1 - e^(delta/lam) (1 - p). Pixel noise makes p at least Phi(Phi^-1(p) - r/sigma) first, which is convex.
        0 where nothing is proven.
        """
        from scipy.special import log_ndtr

        _require_radius(radius, sigma)
        kept = log_ndtr(-radius / sigma) if radius > 0 else np.log(0.5)
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(self.scale * (kept - np.log1p(-np.asarray(share, np.float64))), 0.0))

    def range(self, tau: float, radius: float = 0.0, sigma: float = 0.0) -> tuple[float, float]:
        """The least and the largest t at which more than half of the draws keep a label whose share exceeds tau.

        radius: l2 size of a perturbation of the pixels that is covered at the same time, by pixel noise of sigma.
        """
        if not 0.5 <= tau < 1:
            raise InputError(f"tau must lie in [0.5, 1), got {tau!r}")
        _require_radius(radius, sigma)
        if radius > 0 and radius > (most := l2_radius(sigma, tau)):
            raise InputError(
                f"radius must be at most sigma * Phi^-1(tau) = {most:.4f}, where the range ends, got {radius!r}"
            )
        high = float(self.reach(tau, radius=radius, sigma=sigma))
        return (-high if self.law == "normal" else 0.0), high

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The threat as JSON, and the arrays that belong to it."""
        return {"name": self.name, "scale": self.scale}, {}

    @property
    def identity(self) -> str:
        """What tells this threat from every other: it goes into the key of the noise and into digests."""
        return json.dumps(self.pack()[0], sort_keys=True)

    def describe(self) -> str:
        """The threat with all that belongs to it, as claims state it."""
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Threat) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


def _require_radius(radius: float, sigma: float) -> None:
    if not (np.isfinite(radius) and radius >= 0):
        raise InputError(f"radius must be a number >= 0, got {radius!r}")
    if radius > 0 and not sigma > 0:
        raise InputError(f"radius must be 0 without pixel noise, got {radius!r}; draw with sigma > 0")
