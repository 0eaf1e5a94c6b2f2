"""Radii against SciPy's normal distribution, and their agreement with the test."""

import numpy as np
import pytest
from scipy import stats

from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test
from certiseg.stats.radius import agree_with_test, radius, reach

MAKERS = [binomial_test, anytime_test]


@pytest.mark.parametrize("sigma", [0.1, 0.25, 1.0])
def test_radius_is_sigma_times_the_normal_quantile(sigma: float) -> None:
    for share in (0.5, 0.6, 0.75, 0.999999):
        assert radius(sigma, share) == pytest.approx(sigma * stats.norm.ppf(share), rel=1e-12, abs=1e-15)
    assert radius(sigma, 0.5) == 0


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n", [1, 20, 500])
def test_tables_are_the_radii_of_the_lower_bounds(make: type, n: int) -> None:
    for error in (0.1, 1e-5):
        bounds = make(n, 0.75).lower_bounds(error)
        table = reach(0.25, bounds)
        assert (table[bounds <= 0.5] == 0).all()
        np.testing.assert_allclose(table[bounds > 0.5], 0.25 * stats.norm.ppf(bounds[bounds > 0.5]), rtol=1e-9)
        assert (np.diff(table) >= 0).all()
        assert np.isfinite(table).all()


@pytest.mark.parametrize("make", MAKERS)
def test_a_pixel_reaches_the_radius_exactly_where_it_is_certified(make: type) -> None:
    for n in (30, 100, 1000):
        for tau in (0.6, 0.75, 0.95):
            for error in (0.05, 1e-4, 1e-9):
                critical, wanted = make(n, tau).critical(error), radius(0.25, tau)
                table = reach(0.25, make(n, tau).lower_bounds(error))
                certified = np.arange(n + 1) >= (n + 1 if critical is None else critical)
                agreed = agree_with_test(table, radius=wanted, critical=critical)
                np.testing.assert_array_equal(agreed >= wanted, certified)
                np.testing.assert_allclose(agreed, table, atol=1e-9), "only rounding may be mended"


def test_agreement_moves_a_value_at_the_edge_to_its_side() -> None:
    table = np.array([0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(agree_with_test(table, radius=0.2, critical=2), table)
    assert agree_with_test(table, radius=0.2, critical=3)[2] < 0.2
    assert agree_with_test(table, radius=0.2, critical=1)[1] == 0.2
    assert (agree_with_test(table, radius=0.2, critical=None) < 0.2).all()
    np.testing.assert_array_equal(table, [0.0, 0.1, 0.2, 0.3])
