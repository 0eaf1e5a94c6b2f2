"""From hits to a certified radius: R = sigma * Phi^-1(lower confidence bound of the share)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def radius(sigma: float, share: float) -> float:
    """R = sigma * Phi^-1(share): within it more than half of the noisy predictions stay, if the share is exceeded."""
    from scipy.special import ndtri

    return float(sigma * ndtri(share))


def deviation(sigma: float) -> float:
    """Sigma as Gaussian noise has it: noise is scaled in 32 bits, so R must not rest on anything above that."""
    return min(sigma, float(np.float32(sigma)))


def reach(sigma: float, shares: ArrayLike) -> NDArray[np.float64]:
    """The radius of every share, 0 where none is proven."""
    from scipy.special import ndtri

    return np.asarray(sigma * ndtri(np.maximum(shares, 0.5)))


def agree_with_test(table: NDArray[np.float64], *, radius: float, critical: int | None) -> NDArray[np.float64]:
    """The table with `radius <= table[k]` exactly where k >= critical.

    At one and the same error both are the same statement; only rounding at the very edge can part them.
    """
    table, first = table.copy(), len(table) if critical is None else critical
    table[first:] = np.maximum(table[first:], radius)
    table[:first] = np.minimum(table[:first], np.nextafter(radius, 0))
    return table
