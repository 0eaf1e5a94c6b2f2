"""Corrections on histograms of counts against statsmodels, and against their textbook form on sorted p-values."""

import gc
from collections.abc import Iterator
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

import certiseg as cs
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import BinomialTest, binomial_test
from certiseg.stats.correction import cutoff

hits_of_pixels = st.integers(1, 25).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n) | st.just(n), min_size=1, max_size=40))
)
shares = st.sampled_from([0.5, 0.6, 0.75, 0.9])
# Levels that are no dyadic fractions cannot tie with a tail, so that floating point decides like whole numbers do.
errors = st.sampled_from([0.013, 0.05, 0.1, 0.3, 0.7])
tying_errors = st.sampled_from([0.5, 0.25, 0.125, 0.75, 0.05, 0.3])


@pytest.fixture(scope="module", autouse=True)
def _cheap_garbage_collection() -> Iterator[None]:
    """statsmodels collects garbage in every call; what exists already need not be looked through each time."""
    gc.freeze()
    yield
    gc.unfreeze()


def rejected(n: int, hits: list[int], tau: float, *, anytime: bool = False, **options: object) -> np.ndarray:
    """Which pixels the code under test certifies."""
    test = anytime_test(n, tau) if anytime else binomial_test(n, tau)
    critical = cutoff(np.bincount(hits, minlength=n + 1), test, **options)
    return np.zeros(len(hits), bool) if critical is None else np.array(hits) >= critical


def exact_p_values(n: int, hits: list[int], tau: float) -> list[Fraction]:
    t = Fraction(tau)
    return [sum(comb(n, j) * t**j * (1 - t) ** (n - j) for j in range(k, n + 1)) for k in hits]


def step_down(p_values: list[Fraction], levels: list[Fraction]) -> np.ndarray:
    """Reject in order of p while p_(i) <= level_i."""
    decision = np.zeros(len(p_values), bool)
    for index, level in zip(np.argsort(np.array(p_values, float), kind="stable"), levels, strict=True):
        if p_values[index] > level:
            break
        decision[index] = True
    return decision


@given(hits_of_pixels, shares, errors)
def test_bonferroni_holm_and_by_equal_statsmodels(case: tuple[int, list[int]], tau: float, alpha: float) -> None:
    n, hits = case
    p_values = stats.binom.sf(np.array(hits) - 1, n, tau)
    for ours, theirs in (("bonferroni", "bonferroni"), ("holm", "holm"), ("by", "fdr_by")):
        expected = multipletests(p_values, alpha, method=theirs)[0]
        np.testing.assert_array_equal(rejected(n, hits, tau, alpha=alpha, correction=ours), expected, err_msg=ours)


@given(hits_of_pixels, shares, errors)
def test_holm_and_by_equal_statsmodels_for_the_anytime_test(
    case: tuple[int, list[int]], tau: float, alpha: float
) -> None:
    n, hits = case
    evidence = [stats.beta.sf(tau, k + 1, n - k + 1) / ((n + 1) * stats.binom.pmf(k, n, tau) * (1 - tau)) for k in hits]
    p_values = np.minimum(1, 1 / np.array(evidence))
    for ours, theirs in (("bonferroni", "bonferroni"), ("holm", "holm"), ("by", "fdr_by")):
        expected = multipletests(p_values, alpha, method=theirs)[0]
        found = rejected(n, hits, tau, anytime=True, alpha=alpha, correction=ours)
        np.testing.assert_array_equal(found, expected, err_msg=ours)


@given(hits_of_pixels, st.sampled_from([0.5, 0.75]), tying_errors)
def test_holm_equals_its_textbook_form_in_exact_arithmetic(
    case: tuple[int, list[int]], tau: float, alpha: float
) -> None:
    n, hits = case
    levels = [Fraction(alpha / (len(hits) - i)) for i in range(len(hits))]
    expected = step_down(exact_p_values(n, hits, tau), levels)
    np.testing.assert_array_equal(rejected(n, hits, tau, alpha=alpha, correction="holm"), expected)


@given(hits_of_pixels, st.sampled_from([0.5, 0.75]), tying_errors, st.integers(1, 6))
def test_kfwer_equals_lehmann_and_romano_in_exact_arithmetic(
    case: tuple[int, list[int]], tau: float, alpha: float, k: int
) -> None:
    n, hits = case
    total, k = len(hits), min(k, len(hits))
    levels = [Fraction(k * alpha / total if i <= k else k * alpha / (total + k - i)) for i in range(1, total + 1)]
    expected = step_down(exact_p_values(n, hits, tau), levels)
    np.testing.assert_array_equal(rejected(n, hits, tau, alpha=alpha, correction="kfwer", k=k), expected)


@given(hits_of_pixels, st.sampled_from([0.5, 0.75]), errors)
def test_by_equals_its_textbook_form_in_exact_arithmetic(case: tuple[int, list[int]], tau: float, alpha: float) -> None:
    n, hits = case
    total, p_values = len(hits), exact_p_values(*case, tau)
    harmonic = sum(Fraction(1, i) for i in range(1, total + 1))
    ordered = sorted(p_values)
    reached = [r for r in range(1, total + 1) if ordered[r - 1] <= r * Fraction(alpha) / (total * harmonic)]
    expected = np.array([bool(reached) and p <= ordered[reached[-1] - 1] for p in p_values])
    np.testing.assert_array_equal(rejected(n, hits, tau, alpha=alpha, correction="by"), expected)


@given(hits_of_pixels, shares, tying_errors)
def test_holm_contains_bonferroni_and_kfwer_contains_holm(
    case: tuple[int, list[int]], tau: float, alpha: float
) -> None:
    n, hits = case
    for anytime in (False, True):
        options = {"alpha": alpha, "anytime": anytime}
        bonferroni = rejected(n, hits, tau, correction="bonferroni", **options)
        holm = rejected(n, hits, tau, correction="holm", **options)
        assert (bonferroni <= holm).all()
        np.testing.assert_array_equal(rejected(n, hits, tau, correction="kfwer", k=1, **options), holm)
        before = holm
        for k in range(2, min(5, len(hits)) + 1):
            more = rejected(n, hits, tau, correction="kfwer", k=k, **options)
            assert (before <= more).all()
            before = more


@given(st.integers(1, 25), shares, tying_errors)
def test_one_pixel_needs_no_correction(n: int, tau: float, alpha: float) -> None:
    for hits in range(n + 1):
        expected = (cs.critical_count(n, tau, alpha) or n + 1) <= hits
        for correction in ("bonferroni", "holm", "kfwer", "by"):
            assert rejected(n, [hits], tau, alpha=alpha, correction=correction).item() == expected, correction


def test_many_pixels_cost_no_more_than_their_histogram() -> None:
    n, tau, alpha = 100, 0.75, 0.001
    rng = np.random.default_rng(1)
    hits = rng.binomial(n, rng.choice([0.6, 0.75, 0.97, 1.0], 300_000))
    p_values = stats.binom.sf(hits - 1, n, tau)
    histogram = np.bincount(hits, minlength=n + 1)
    for ours, theirs in (("bonferroni", "bonferroni"), ("holm", "holm"), ("by", "fdr_by")):
        expected = multipletests(p_values, alpha, method=theirs)[0]
        critical = cutoff(histogram, BinomialTest(n, tau), alpha=alpha, correction=ours)
        np.testing.assert_array_equal(hits >= critical, expected, err_msg=ours)


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "kfwer"])
def test_nothing_is_certified_where_unanimity_is_not_enough(correction: str) -> None:
    histogram = np.bincount([5] * 100, minlength=6)
    assert cutoff(histogram, binomial_test(5, 0.75), alpha=0.001, correction=correction, k=3) is None


def test_by_can_certify_everything_where_no_single_pixel_could() -> None:
    unanimous, mixed = np.bincount([40] * 1000), np.bincount([40] + [0] * 999)
    assert cutoff(unanimous, binomial_test(40, 0.75), alpha=0.01, correction="by") is not None
    assert cutoff(mixed, binomial_test(40, 0.75), alpha=0.01, correction="by") is None
