"""The fixed-n test of H0: share <= tau, from the number of hits among n independent draws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

MAX_DRAWS = 65535
"""Counts are kept in 16 bits."""

Test = Literal["fixed", "anytime"]

_NEAR = 1e-9
"""Relative distance of a tail probability from a significance within which floating point does not decide."""
_EXACT_WORK = 2**33
"""Bits of an integer times terms of a sum up to which the exact comparison is made: seconds at most."""


class CountTest(Protocol):
    """A test of H0: share <= tau by hits among n draws; more hits are more evidence."""

    @property
    def n(self) -> int: ...

    @property
    def p_values(self) -> NDArray[np.float64]:
        """(n+1,): a valid p-value for each number of hits, non-increasing."""
        ...

    def critical(self, significance: float) -> int | None:
        """Least number of hits with a p-value <= significance, None where not even n hits reach it."""
        ...

    def lower_bounds(self, error: float) -> NDArray[np.float64]:
        """(n+1,): for each number of hits a bound that the share undercuts with probability <= error."""
        ...


@dataclass(frozen=True)
class BinomialTest:
    """One-sided exact binomial test with n fixed before the draws; p(k) = P(Bin(n, tau) >= k)."""

    n: int
    tau: float

    @cached_property
    def p_values(self) -> NDArray[np.float64]:
        from scipy.special import betainc

        hits = np.arange(1, self.n + 1, dtype=np.float64)
        return np.concatenate([[1.0], betainc(hits, self.n - hits + 1, self.tau)])

    def critical(self, significance: float) -> int | None:
        if not significance > 0:
            return None
        if significance >= 1:
            return 0
        hits = self.n + 1 - int(np.searchsorted(self.p_values[::-1], significance * (1 + _NEAR), side="right"))
        while hits <= self.n and not self._rejects(hits, significance):
            hits += 1
        return hits if hits <= self.n else None

    def lower_bounds(self, error: float) -> NDArray[np.float64]:
        """Clopper-Pearson: the p with P(Bin(n, p) >= k) = error."""
        from scipy.special import betaincinv

        hits = np.arange(1, self.n + 1, dtype=np.float64)
        return np.concatenate([[0.0], betaincinv(hits, self.n - hits + 1, error)])

    def _rejects(self, hits: int, significance: float) -> bool:
        p = self.p_values[hits]
        if abs(p - significance) > _NEAR * significance:
            return bool(p < significance)
        return self._rejects_exactly(hits, significance)

    def _rejects_exactly(self, hits: int, significance: float) -> bool:
        """P(Bin(n, tau) >= hits) <= significance in integers; where those grow too large, no (the safe side)."""
        tau, bound = Fraction(self.tau), Fraction(significance)
        yes, no = tau.numerator, tau.denominator - tau.numerator
        if self.n * tau.denominator.bit_length() * (self.n - hits + 1) > _EXACT_WORK:
            return False
        tail = term = yes**self.n
        for k in range(self.n - 1, hits - 1, -1):
            term = term * ((k + 1) * no) // ((self.n - k) * yes)  # C(n, k) yes^k no^(n-k), an exact division
            tail += term
        return bool(tail * bound.denominator <= bound.numerator * tau.denominator**self.n)


@lru_cache(maxsize=64)
def binomial_test(n: int, tau: float) -> BinomialTest:
    """The fixed-n test, with its table of p-values kept between calls."""
    return BinomialTest(n, tau)


def critical_count(n: int, tau: float, significance: float) -> int | None:
    """crit(n, tau, a): least k with P(Bin(n, tau) >= k) <= a; None where not even n hits of n are enough."""
    if not (isinstance(n, int | np.integer) and 1 <= n <= MAX_DRAWS):
        raise InputError(f"n must be a whole number in 1..{MAX_DRAWS}, got {n}")
    if not 0 < tau < 1:
        raise InputError(f"tau must lie in (0, 1), got {tau}")
    return binomial_test(int(n), float(tau)).critical(float(significance))
