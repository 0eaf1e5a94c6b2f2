"""The test that stays valid however the number of draws was chosen, looking at the votes included.

For H0: share <= tau, E_n(k) = average over p uniform on (tau, 1) of (p/tau)^k ((1-p)/(1-tau))^(n-k) is a
non-negative supermartingale under H0 that starts at 1. By Ville's inequality P(ever E >= 1/a) <= a, so rejecting
where E at the stop is at least 1/a has error at most a for every stopping rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

_SLACK = 1e-9
"""What log E must exceed its bound by, far above rounding errors and far below any effect."""
_LARGEST_ERROR = 0.36
"""Below 1/e: only then E_tau falls monotonically in tau wherever it exceeds 1/error."""


@dataclass(frozen=True)
class AnytimeTest:
    """Test by the mixture martingale E after n draws; p(k) = min(1, 1 / E_n(k))."""

    n: int
    tau: float

    @cached_property
    def log_evidence(self) -> NDArray[np.float64]:
        """(n+1,): log E_n(k) for every number of hits k."""
        return _log_evidence(np.arange(self.n + 1), self.n, np.float64(self.tau))

    @cached_property
    def p_values(self) -> NDArray[np.float64]:
        return np.exp(-np.maximum(self.log_evidence, 0.0))

    def critical(self, significance: float) -> int | None:
        if not significance > 0:
            return None
        if significance >= 1:
            return 0
        hits = int(np.searchsorted(self.log_evidence, -np.log(significance) + _SLACK))
        return hits if hits <= self.n else None

    def lower_bounds(self, error: float) -> NDArray[np.float64]:
        """inf{tau in [1/2, 1): E_tau < 1/error}, by bisection towards the safe side."""
        needed = -np.log(min(error, _LARGEST_ERROR))
        hits = np.arange(self.n + 1)
        low, high = np.full(self.n + 1, 0.5), np.full(self.n + 1, 1 - 1e-12)
        for _ in range(60):
            middle = (low + high) / 2
            excluded = _log_evidence(hits, self.n, middle) >= needed + _SLACK
            low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)
        return low


@lru_cache(maxsize=64)
def anytime_test(n: int, tau: float) -> AnytimeTest:
    """The anytime test, with its table kept between calls."""
    return AnytimeTest(n, tau)


def _log_evidence(hits: NDArray[np.integer], n: int, tau: np.float64 | NDArray[np.float64]) -> NDArray[np.float64]:
    """log E_n(k) in closed form: the mixture is an incomplete beta integral."""
    from scipy.special import betaincc, betaln

    with np.errstate(divide="ignore"):
        mass = np.log(betaincc(hits + 1.0, n - hits + 1.0, tau))
    evidence: NDArray[np.float64] = (
        betaln(hits + 1.0, n - hits + 1.0) + mass - hits * np.log(tau) - (n - hits + 1.0) * np.log1p(-tau)
    )
    return evidence
