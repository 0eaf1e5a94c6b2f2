"""Perturbations of any pixels by l2 size: the threat of the paper, which needs no transformation, only noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError
from certiseg.stats.radius import reach
from certiseg.threats.base import Path, Pixels, Threat

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class L2(Threat):
    """x + delta for every |delta|_2 <= t: no parameter is drawn, the pixel noise alone moves the image."""

    scale: float = 1.0
    """Not used: the noise is sigma."""
    name = "l2"
    law = "none"

    def along(self, pixels: Pixels) -> Path:  # noqa: ARG002 - as all threats
        raise InputError("threat must be one with a transformation to be applied, got l2, which is every perturbation")

    def reach(self, share: ArrayLike, *, radius: float = 0.0, sigma: float = 0.0) -> NDArray[np.float64]:
        """R = sigma * Phi^-1(p)."""
        if radius > 0:
            raise InputError(
                f"radius must be left out for l2, got {radius!r}: R = sigma * Phi^-1(tau) follows from tau"
            )
        return reach(sigma, share)

    def words(self, t: float) -> str:
        return f"perturbations of l2 size up to {t:.4f}"

    def describe(self) -> str:
        return "perturbations of any pixels, by l2 size"

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"name": self.name}, {}
