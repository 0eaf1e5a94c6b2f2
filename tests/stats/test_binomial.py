"""The fixed-n test against exact rational arithmetic and SciPy."""

from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb, inf, nextafter

import numpy as np
import pytest
from scipy import stats

import certiseg as cs
from certiseg.stats.binomial import MAX_DRAWS, binomial_test

TAUS = (0.5, 0.55, 0.6, 2 / 3, 0.75, 0.9, 0.99, 0.25, 0.01)
LEVELS = (0.9, 0.5, 0.25, 0.1, 0.05, 0.001, 1e-6, 1e-9, 1e-12, 1e-12 / 3, 5e-324)


@cache
def exact_tails(n: int, tau: float) -> tuple[list[int], int]:
    """P(Bin(n, tau) >= k) for k = 0..n as numerators over one denominator, in whole numbers only."""
    yes, total = tau.as_integer_ratio()
    terms = [comb(n, k) * yes**k * (total - yes) ** (n - k) for k in range(n + 1)]
    return list(accumulate(reversed(terms)))[::-1], total**n


def exact_critical(n: int, tau: float, level: float) -> int | None:
    tails, denominator = exact_tails(n, tau)
    top, bottom = level.as_integer_ratio()
    return next((k for k, tail in enumerate(tails) if tail * bottom <= top * denominator), None)


@pytest.mark.parametrize("tau", TAUS)
def test_critical_count_equals_exact_rational_arithmetic_for_all_n_up_to_60(tau: float) -> None:
    for n in range(1, 61):
        unanimous = float(Fraction(tau) ** n)
        near = (unanimous, nextafter(unanimous, 0), nextafter(unanimous, 1), 2.0**-n, float(1 - Fraction(tau) ** n))
        for level in LEVELS + near:
            assert cs.critical_count(n, tau, level) == exact_critical(n, tau, level), (n, level)


def test_exact_ties_are_rejected_and_the_next_smaller_level_is_not() -> None:
    for n in range(1, 53):
        tails, denominator = exact_tails(n, 0.5)
        for k in range(1, n + 1):
            level = tails[k] / denominator
            assert Fraction(level) == Fraction(tails[k], denominator), "a fair coin's tails are exact floats up to here"
            assert cs.critical_count(n, 0.5, level) == k
            assert cs.critical_count(n, 0.5, nextafter(level, 0)) == (k + 1 if k < n else None)


@pytest.mark.parametrize("n", [100, 173, 1000, 4096, 10_000, 65_534, 65_535])
@pytest.mark.parametrize("tau", [0.5, 0.75, 0.9, 0.999])
def test_critical_count_equals_scipy_for_large_n(n: int, tau: float) -> None:
    tails = stats.binom.sf(np.arange(-1, n), n, tau)
    for level in (0.4, 0.05, 1e-3, 1e-6, 1e-3 / 172_800, 1e-3 / 2_097_152, 1e-12):
        reached = np.flatnonzero(tails <= level)
        assert cs.critical_count(n, tau, level) == (int(reached[0]) if reached.size else None)


@pytest.mark.parametrize("tau", [0.5, 0.75])
def test_tails_of_65535_draws_are_accurate_far_beyond_the_band_that_is_decided_exactly(tau: float) -> None:
    n, (yes, total) = 65_535, tau.as_integer_ratio()
    denominator, p_values = total**n, binomial_test(65_535, tau).p_values
    term, tail, exact = yes**n, 0, {}
    for k in range(n, int(n * tau), -1):
        tail += term
        term = term * k * (total - yes) // ((n - k + 1) * yes)
        if k % 64 == 0 and tail.bit_length() > denominator.bit_length() - 140:
            exact[k] = float(Fraction(tail, denominator))
    assert min(exact.values()) < 1e-30
    for k, value in exact.items():
        assert p_values[k] == pytest.approx(value, rel=1e-10)


def test_a_level_that_no_count_reaches_gives_none() -> None:
    assert cs.critical_count(5, 0.75, 0.75**5 * 0.999) is None
    assert cs.critical_count(1, 0.5, 0.49) is None
    assert cs.critical_count(100, 0.75, 0.0) is None
    assert cs.critical_count(100, 0.75, -1.0) is None
    assert cs.critical_count(100, 0.75, float("nan")) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("level", [1.0, 1.5, inf])
@pytest.mark.parametrize("n", [1, 60, MAX_DRAWS])
def test_a_level_of_one_or_more_is_reached_by_no_hits_at_all(n: int, level: float) -> None:
    assert cs.critical_count(n, 0.6, level) == 0


def test_design_example_of_the_published_codes_mistake() -> None:
    level = 0.001 / (1024 * 2048)
    assert cs.critical_count(100, 0.75, level) == 98
    assert cs.critical_count(90, 0.75, level) == 89


@pytest.mark.parametrize(
    ("n", "tau", "what"),
    [
        (0, 0.75, "n must"),
        (65_536, 0.75, "n must"),
        (10.0, 0.75, "n must"),
        (10, 0.0, "tau must"),
        (10, 1.0, "tau must"),
    ],
)
def test_bad_arguments_are_refused_by_name(n: int, tau: float, what: str) -> None:
    with pytest.raises(cs.InputError, match=what):
        cs.critical_count(n, tau, 0.01)


@pytest.mark.parametrize("n", [1, 7, 100, 2000])
@pytest.mark.parametrize("error", [0.3, 0.05, 1e-3, 1e-9])
def test_lower_bounds_are_those_of_clopper_and_pearson(n: int, error: float) -> None:
    bounds = binomial_test(n, 0.75).lower_bounds(error)
    hits = np.arange(1, n + 1)
    assert bounds[0] == 0
    np.testing.assert_allclose(bounds[1:], stats.beta.ppf(error, hits, n - hits + 1), rtol=1e-9)
    assert (np.diff(bounds) > 0).all()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.75, 0.9, 0.999])
@pytest.mark.parametrize("error", [0.2, 0.01])
def test_lower_bounds_exceed_the_share_with_no_more_than_the_error(share: float, error: float) -> None:
    for n in (1, 5, 30, 200):
        exceeds = binomial_test(n, 0.75).lower_bounds(error) > share
        assert stats.binom.pmf(np.arange(n + 1), n, share)[exceeds].sum() <= error * (1 + 1e-9)


def test_a_bound_beyond_tau_and_a_rejected_tau_are_the_same_thing() -> None:
    for n in (10, 100, 1000):
        for tau in (0.5, 0.6, 0.75, 0.9):
            for error in (0.05, 1e-4, 1e-9):
                critical = cs.critical_count(n, tau, error)
                beyond = np.flatnonzero(binomial_test(n, tau).lower_bounds(error) > tau)
                assert (int(beyond[0]) if beyond.size else None) == critical


def test_a_p_value_at_its_level_that_is_too_large_to_compute_exactly_does_not_reject():
    test = binomial_test(60_000, 0.95)
    level = float(test.p_values[57_000])
    assert 0.4 < level < 0.6
    assert test.critical(level) == 57_001
    assert test.critical(level * (1 + 1e-8)) == 57_000
