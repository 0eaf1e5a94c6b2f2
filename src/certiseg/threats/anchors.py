"""Whole ranges: votes at several anchors a_k, each of which covers the parameters near it.

T_delta T_a = T_(a + delta), so votes at the anchor a promise what they would at 0, for a + delta. A label is promised
for the whole range only if every anchor rejects its null, and the promise is false only if the null of some anchor is
true: that anchor alone then has to reject falsely, which happens with probability alpha at most. No alpha is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.stats.radius import deviation

if TYPE_CHECKING:
    from certiseg.stats.binomial import CountTest
    from certiseg.threats.base import Threat

MOST_ANCHORS = 64
_OVERLAP = 1e-12
"""Anchors lie this much closer, relative to their distance, than they might: rounding must leave no hole."""

_ROUNDING = 1e-9
"""An `up_to` this close, relatively, to a whole number of ranges is taken for it."""


@dataclass(frozen=True)
class Covered:
    """The parameters around 0 that anchors cover without a hole."""

    low: float
    high: float
    used: tuple[int, ...]
    """The anchors that cover them; the others lie beyond a hole, and promise nothing here."""


def place_anchors(
    threat: Threat, up_to: float, *, tau: float, radius: float = 0.0, sigma: float = 0.0
) -> tuple[float, ...]:
    """Anchors from 0 on whose ranges at tau cover every parameter up to `up_to`, of both signs for gamma."""
    if threat.law == "none":
        raise InputError("up_to must come with a threat that has a parameter, got l2")
    if not (np.isfinite(up_to) and up_to > 0):
        raise InputError(f"up_to must be a positive number, got {up_to!r}")
    reach = threat.range(tau, radius, deviation(sigma))[1]
    if reach <= 0:
        raise InputError(f"tau must be above 0.5, and radius below sigma * Phi^-1(tau), for a range, got tau = {tau!r}")
    two_sided, ranges = threat.law == "normal", up_to / reach * (1 - _ROUNDING)
    if two_sided:
        step, count = 2 * reach * (1 - _OVERLAP), 1 + 2 * int(np.ceil(max(ranges - 1, 0) / 2))
    else:
        step, count = reach * (1 - _OVERLAP), int(np.ceil(ranges))
    if count > MOST_ANCHORS:
        scale = threat.scale * up_to / reach / (MOST_ANCHORS - two_sided)
        raise InputError(
            f"up_to must need at most {MOST_ANCHORS} anchors, got {up_to:g}, which needs {count}; "
            f"a scale of {np.ceil(100 * scale) / 100:g} would do"
        )
    if not two_sided:
        return tuple(float(k * step) for k in range(count))
    return (0.0, *(float(sign * k * step) for k in range(1, count // 2 + 1) for sign in (1, -1)))


def covered(anchors: Sequence[float], low: float, high: float) -> Covered:
    """What anchors cover around 0 where each covers [a + low, a + high]; the range ends at the first hole."""
    order = sorted(range(len(anchors)), key=lambda k: anchors[k])
    upward = [k for k in order if anchors[k] >= 0]
    least, most = low, high
    used: list[int] = []
    for k in upward:
        if anchors[k] + low > most:
            break
        most = max(most, anchors[k] + high)
        used.append(k)
    for k in reversed([k for k in order if anchors[k] < 0]):
        if anchors[k] + high < least:
            break
        least = min(least, anchors[k] + low)
        used.append(k)
    return Covered(least, most, tuple(sorted(used)))


def require_anchors(threat: Threat, anchors: Sequence[float]) -> None:
    """Refuse anchors that do not begin with the image itself, are no parameters of the threat or come twice."""
    if not 1 <= len(anchors) <= MOST_ANCHORS or len(set(anchors)) < len(anchors):
        raise InputError(f"anchors must be 1..{MOST_ANCHORS} different numbers, got {list(anchors)[:5]}")
    if threat.law == "none" and tuple(anchors) != (0.0,):
        raise InputError(f"anchors must be left out for l2, got {list(anchors)[:5]}")
    for anchor in anchors:
        threat.require_parameter(anchor)


def reach_table(
    test: CountTest, threat: Threat, *, anchors: tuple[float, ...], radius: float, sigma: float, error: float
) -> NDArray[np.float64]:
    """(n+1,): how far each number of hits at the worst anchor proves a label, wrong with probability <= error."""
    reached = threat.reach(test.lower_bounds(error), radius=radius, sigma=sigma)
    if len(anchors) == 1:
        return reached
    low = -1.0 if threat.law == "normal" else 0.0
    return np.array([covered(anchors, low * high, high).high for high in reached])
