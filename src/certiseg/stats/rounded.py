"""The law of a Gaussian rounded to whole numbers, as a table of exact integers.

For Z ~ N(0, s^2) the rounded value is at most j with probability F(j) = Phi((j + 1/2) / s). The table holds the whole
numbers T_j nearest to 2^128 F(j): a uniform 128-bit number U gives the least value plus the number of j with
U >= T_j, so that a value is at most j with probability T_j / 2^128. Where T_j would be 0 or 2^128 the table ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

BITS = 128
_DIGITS = 70
_FAR = 14
"""Deviations beyond which 2^128 times a tail is no longer 1/2."""
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")


@dataclass(frozen=True)
class RoundedNormal:
    """A law on the whole numbers, in units of 2^-128."""

    thresholds: tuple[int, ...]
    """T_j for j = least, least + 1, ...; never falling, each in 1 .. 2^128 - 1."""
    least: int
    """The smallest value, taken where U is below every threshold."""

    @property
    def distance(self) -> float:
        """Total variation between the table and the exact law, at most.

        Each F(j) is off by less than 2^-128, so the values inside the table are together off by (thresholds) * 2^-128
        (half the sum of |T_j - T_(j-1) - exact|, each F(j) counted twice); the two tails beyond hold 2^-129 each.
        """
        return (len(self.thresholds) + 1) * 2.0**-BITS

    def probability(self, value: int) -> Fraction:
        """P(value), exactly as the table has it."""
        edges = (0, *self.thresholds, 1 << BITS)
        place = value - self.least
        inside = 0 <= place <= len(self.thresholds)
        return Fraction(edges[place + 1] - edges[place], 1 << BITS) if inside else Fraction(0)


@lru_cache(maxsize=16)
def rounded_normal(deviation: Fraction) -> RoundedNormal:
    """The table of round(Z) for Z ~ N(0, deviation^2)."""
    if deviation <= 0:
        raise ValueError(f"deviation must be positive, got {deviation}")
    above: list[int] = []
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
        unit = Decimal(deviation.denominator) / Decimal(2 * deviation.numerator)
        while (threshold := _nearest((2 * len(above) + 1) * unit)) < 1 << BITS:
            above.append(threshold)
    below = [(1 << BITS) - threshold for threshold in reversed(above)]
    return RoundedNormal((*below, *above), least=-len(above))


def _nearest(z: Decimal) -> int:
    """The whole number nearest to 2^128 Phi(z), for z >= 0.

    Phi(z) = 1/2 + phi(z) (z + z^3/3 + z^5/(3*5) + ...): every term is positive, so 70 digits are lost nowhere.
    """
    if z > _FAR:
        return 1 << BITS
    square, term, series, odd = z * z, z, z, 1
    while term > series.scaleb(-_DIGITS):
        odd += 2
        term = term * square / odd
        series += term
    share = Decimal("0.5") + (-square / 2).exp() / (2 * _PI).sqrt() * series
    return int((share * (1 << BITS)).to_integral_value())
