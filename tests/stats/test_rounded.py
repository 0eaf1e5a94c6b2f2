"""The law of rounded noise: against mpmath to the last bit, against SciPy, and the stated distance."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from certiseg.stats.rounded import BITS, rounded_normal

DEVIATIONS = [Fraction(1, 3), Fraction(3, 2), 255 * Fraction(0.05), 255 * Fraction(0.25)]


def exact_share(j: int, deviation: Fraction) -> mpmath.mpf:
    """2^128 P(rounded value <= j), with 400 bits."""
    with mpmath.workprec(400):
        z = mpmath.mpf(2 * j + 1) * deviation.denominator / (2 * deviation.numerator)
        return mpmath.ncdf(z) * 2**BITS


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=float)
def test_every_threshold_is_the_nearest_whole_number(deviation: Fraction) -> None:
    law = rounded_normal(deviation)
    for place in range(0, len(law.thresholds), max(1, len(law.thresholds) // 60)):
        with mpmath.workprec(400):
            error = abs(law.thresholds[place] - exact_share(law.least + place, deviation))
            assert error <= mpmath.mpf("0.5000001")


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=float)
def test_the_table_ends_where_a_tail_rounds_to_nothing(deviation: Fraction) -> None:
    law = rounded_normal(deviation)
    assert exact_share(law.least - 1, deviation) <= 0.5 < exact_share(law.least, deviation)
    assert 1 <= law.thresholds[0] == (1 << BITS) - law.thresholds[-1]


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=float)
def test_probabilities_are_those_of_scipy_and_add_up_to_one(deviation: Fraction) -> None:
    law, s = rounded_normal(deviation), float(deviation)
    values = np.arange(law.least - 2, -law.least + 3)
    table = [law.probability(int(value)) for value in values]
    assert sum(table) == 1
    assert table[0] == table[-1] == 0
    middle = abs(values) < 8 * s
    exact = norm.cdf(-(abs(values) - 0.5) / s) - norm.cdf(-(abs(values) + 0.5) / s)  # no cancellation in either tail
    np.testing.assert_allclose(np.array(table, float)[middle], exact[middle], rtol=1e-9)
    np.testing.assert_array_equal(table, table[::-1])


def test_the_stated_distance_bounds_the_true_one() -> None:
    deviation = Fraction(3, 2)
    law = rounded_normal(deviation)
    with mpmath.workprec(400):
        beyond = range(law.least - 40, -law.least + 41)
        exact = [exact_share(j, deviation) - exact_share(j - 1, deviation) for j in beyond]
        table = [law.probability(j).numerator * (2**BITS // law.probability(j).denominator) for j in beyond]
        distance = sum(abs(e - t) for e, t in zip(exact, table, strict=True)) / 2 / mpmath.mpf(2) ** BITS
        assert 0 < distance <= law.distance
    assert law.distance < 2.0**-121


def test_a_gaussian_far_below_half_a_level_is_rounded_to_zero() -> None:
    law = rounded_normal(Fraction(1, 1000))
    assert (law.thresholds, law.least) == ((), 0)
    assert law.probability(0) == 1
    with pytest.raises(ValueError, match="positive"):
        rounded_normal(Fraction(0))
