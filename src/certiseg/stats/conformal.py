"""Conformal calibration under attack: how many of J + 1 exchangeable units may be missed, and which score that makes.

Let u(x) be the chance over the noise that a unit x is covered, and E u >= 1 - miss by calibration. Whatever an attack
does within its bounds, a covered chance u stays at least Psi(1 - e^growth (1 - u)), Psi(p) = Phi(Phi^-1(p) - shift):
shift = r / sigma for an l2 perturbation of size r (or delta / s along a threat drawn from a normal law), growth =
delta / lam along a threat drawn from an exponential law. The bound is convex and rises in u, so that by Jensen its mean
is at least its value at 1 - miss; `allowed_miss` makes that value 1 - risk. Nothing here has heard of images.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

_ROUNDING = Fraction(1, 10**12)
"""Relative error of a computed probability, many times over: what is allowed is rounded down by it."""


def allowed_miss(risk: float, *, shift: float = 0.0, growth: float = 0.0) -> Fraction:
    """The largest chance of a miss without attack that an attack cannot raise above `risk`.

    e^-growth Phi(-(Phi^-1(1 - risk) + shift)); without attack it is the risk itself, exactly.
    """
    from scipy.special import ndtr, ndtri

    if shift == growth == 0:
        return Fraction(repr(float(risk)))
    return Fraction(math.exp(-growth) * float(ndtr(ndtri(risk) - shift))) * (1 - _ROUNDING)


def least_units(miss: Fraction) -> int | None:
    """The fewest calibration units that can promise a chance of a miss of at most `miss`; None where none can."""
    return math.ceil(1 / miss) - 1 if miss > 0 else None


def threshold_rank(units: int, miss: Fraction) -> int:
    """Which of the calibration scores, from the smallest on (1 is the smallest), is the threshold; 0: there is none.

    A new exchangeable unit has a score below the m-th smallest of J with probability at most m / (J + 1).
    """
    return math.floor((units + 1) * miss)


def threshold(scores: NDArray[np.uint32], miss: Fraction) -> int:
    """The score that a new exchangeable unit stays below with probability at most `miss`."""
    rank = threshold_rank(len(scores), miss)
    assert rank >= 1, "too few scores are refused before"
    return int(np.sort(scores)[rank - 1])


def enough_of(count: int, share: float) -> int:
    """The fewest of so many that are at least a share of them, without rounding."""
    return math.ceil(Fraction(repr(float(share))) * count)


def share_score(values: NDArray[np.uint32], share: float) -> int:
    """The largest q that at least a share of the values reach; small is bad."""
    reach = enough_of(len(values), share)
    return int(np.partition(values, len(values) - reach)[len(values) - reach])
