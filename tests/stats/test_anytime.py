"""The anytime test against exact integrals, and its error over all stopping rules by exact recursion."""

from fractions import Fraction
from functools import cache
from math import comb, log

import mpmath
import numpy as np
import pytest
from scipy import stats

from certiseg.stats.anytime import anytime_test


@cache
def exact_evidence(n: int, k: int, tau: Fraction) -> Fraction:
    """E_n(k): the polynomial p^k (1-p)^(n-k), integrated term by term from tau to 1."""
    integral = sum(Fraction((-1) ** j * comb(n - k, j), k + j + 1) * (1 - tau ** (k + j + 1)) for j in range(n - k + 1))
    return integral / ((1 - tau) * tau**k * (1 - tau) ** (n - k))


def log_evidence_at(n: int, k: int, tau: float) -> float:
    """The same for many draws, k > n tau, at 50 digits: the integral is a binomial tail, summed term by term."""
    with mpmath.workdps(50):
        t = mpmath.mpf(tau)
        point = mpmath.exp(mpmath.log(mpmath.binomial(n, k)) + k * mpmath.log(t) + (n - k + 1) * mpmath.log(1 - t))
        tail, term, hits = mpmath.mpf(0), point * t / (1 - t) * (n + 1) / (k + 1), k + 1
        while hits <= n + 1 and term > mpmath.mpf(10) ** -45:
            tail, term, hits = tail + term, term * (n + 1 - hits) / (hits + 1) * t / (1 - t), hits + 1
        return float(mpmath.log((1 - tail) / ((n + 1) * point)))


@cache
def bounds_of(error: float) -> list[np.ndarray]:
    return [anytime_test(n, 0.75).lower_bounds(error) for n in range(1, 121)]


def chance_of_ever_rejecting(share: float, rejects: list[int | None]) -> float:
    """P(at some n the hits reach rejects[n]) for independent draws with the given share, exactly."""
    alive, lost = np.array([1.0]), 0.0
    for critical in rejects:
        moved = np.zeros(len(alive) + 1)
        moved[:-1] += alive * (1 - share)
        moved[1:] += alive * share
        if critical is not None:
            lost += moved[critical:].sum()
            moved[critical:] = 0
        alive = moved
    return float(lost)


@pytest.mark.parametrize("tau", [0.5, 0.6, 0.75, 0.9])
@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
def test_evidence_is_the_integral_of_the_design(n: int, tau: float) -> None:
    for k, value in enumerate(anytime_test(n, tau).log_evidence):
        exact = exact_evidence(n, k, Fraction(tau))
        assert value == pytest.approx(log(exact.numerator) - log(exact.denominator), abs=1e-9)


@pytest.mark.parametrize("n", [3, 40])
def test_evidence_is_the_mean_likelihood_ratio_by_numerical_integration(n: int) -> None:
    for k in (0, n // 2, n - 1, n):
        for tau in (0.5, 0.75):
            ratio = lambda p, k=k, tau=tau: (p / tau) ** k * ((1 - p) / (1 - tau)) ** (n - k)  # noqa: E731
            mean = mpmath.quad(ratio, mpmath.linspace(tau, 1, 9)) / (1 - tau)
            assert anytime_test(n, tau).log_evidence[k] == pytest.approx(float(mpmath.log(mean)), abs=1e-9)


@pytest.mark.parametrize(("n", "tau"), [(1000, 0.75), (10_000, 0.5), (65_535, 0.75), (65_535, 0.99)])
def test_evidence_of_many_draws_is_accurate_to_half_its_slack(n: int, tau: float) -> None:
    computed = anytime_test(n, tau).log_evidence
    for k in sorted({int(n * tau) + 1, int(n * (tau + 1) / 2), int(n * (0.1 * tau + 0.9)), n - 1, n}):
        assert computed[k] == pytest.approx(log_evidence_at(n, k, tau), abs=5e-10)


@pytest.mark.parametrize("n", [1, 17, 300, 5000])
def test_evidence_grows_with_hits_and_p_values_fall(n: int) -> None:
    for tau in (0.5, 0.75, 0.95):
        test = anytime_test(n, tau)
        first = int(np.argmax(test.log_evidence > 0))
        assert (np.diff(test.log_evidence[first:]) > 0).all()
        assert (test.log_evidence[:first] <= 0).all(), "rounding far below one must not look like evidence"
        assert (np.diff(test.p_values) <= 0).all()
        assert (test.p_values[:first] == 1).all()


def test_design_figures_for_480_by_360() -> None:
    level = 0.001 / (480 * 360)
    assert [anytime_test(n, 0.75).critical(level) for n in (100, 500, 1000)] == [98, 434, 836]
    assert [int(np.argmax(stats.binom.sf(np.arange(-1, n), n, 0.75) <= level)) for n in (100, 500, 1000)] == [
        97,
        428,
        826,
    ]


@pytest.mark.parametrize("tau", [0.5, 0.75])
@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
def test_critical_is_the_least_count_whose_evidence_suffices(n: int, tau: float) -> None:
    for level in (0.9, 0.5, 0.1, 0.05, 1e-3, 1e-6):
        enough = [k for k in range(n + 1) if exact_evidence(n, k, Fraction(tau)) >= 1 / Fraction(level)]
        assert anytime_test(n, tau).critical(level) == (enough[0] if enough else None)


def test_levels_at_the_ends() -> None:
    assert anytime_test(10, 0.75).critical(1.0) == 0
    assert anytime_test(10, 0.75).critical(2.0) == 0
    assert anytime_test(10, 0.75).critical(0.0) is None
    assert anytime_test(10, 0.75).critical(-1.0) is None
    assert anytime_test(10, 0.75).critical(float("nan")) is None
    assert anytime_test(3, 0.75).critical(1e-3) is None


@pytest.mark.parametrize("tau", [0.5, 0.75, 0.9])
@pytest.mark.parametrize("level", [0.3, 0.1, 0.01])
def test_no_stopping_rule_rejects_a_true_null_more_often_than_the_level(tau: float, level: float) -> None:
    rejects = [anytime_test(n, tau).critical(level) for n in range(1, 401)]
    at_tau = chance_of_ever_rejecting(tau, rejects)
    assert level / 20 < at_tau <= level, "stopping at the first rejection is the worst rule there is"
    assert chance_of_ever_rejecting(tau - 0.05, rejects) < at_tau


def test_the_fixed_test_would_not_survive_looking_after_every_draw() -> None:
    rejects = []
    for n in range(1, 401):
        reached = np.flatnonzero(stats.binom.sf(np.arange(-1, n), n, 0.75) <= 0.1)
        rejects.append(int(reached[0]) if reached.size else None)
    assert chance_of_ever_rejecting(0.75, rejects) > 0.2


def test_simulated_paths_reach_one_over_a_with_chance_at_most_a() -> None:
    rng = np.random.default_rng(5)
    hits = np.cumsum(rng.random((4000, 200)) < 0.75, axis=1)
    evidence = np.stack([anytime_test(n, 0.75).log_evidence[hits[:, n - 1]] for n in range(1, 201)])
    for level in (0.5, 0.2, 0.05):
        share = (evidence.max(axis=0) >= -np.log(level)).mean()
        assert share <= level + 3 * np.sqrt(level * (1 - level) / 4000)


@pytest.mark.parametrize("share", [0.5, 0.6, 0.75, 0.95])
@pytest.mark.parametrize("error", [0.3, 0.05])
def test_lower_bounds_hold_at_all_times_at_once(share: float, error: float) -> None:
    rejects = []
    for bounds in bounds_of(error):
        beyond = np.flatnonzero(bounds > share)
        rejects.append(int(beyond[0]) if beyond.size else None)
    assert 0 < chance_of_ever_rejecting(share, rejects) <= error


@pytest.mark.parametrize("n", [1, 6, 30])
@pytest.mark.parametrize("error", [0.9, 0.36, 0.05, 1e-4])
def test_lower_bounds_are_where_the_evidence_crosses_one_over_the_error(n: int, error: float) -> None:
    bounds = anytime_test(n, 0.75).lower_bounds(error)
    assert (np.diff(bounds) >= 0).all()
    assert ((bounds >= 0.5) & (bounds < 1)).all()
    spent = min(error, 0.36)
    for k, bound in enumerate(bounds):
        if bound > 0.5:
            assert exact_evidence(n, k, Fraction(bound)) >= 1 / Fraction(spent)
        above = Fraction(bound + 1e-7)
        assert exact_evidence(n, k, above) < 1 / Fraction(spent)


def test_evidence_falls_with_tau_wherever_it_exceeds_e() -> None:
    taus = np.linspace(0.5, 0.999, 400)
    for n in (3, 10, 50, 400):
        evidence = np.stack([anytime_test(n, float(tau)).log_evidence for tau in taus])
        large = evidence[1:] > 1.0
        assert large.any()
        assert (evidence[1:][large] <= evidence[:-1][large]).all()
    anytime_test.cache_clear()


def test_a_bound_beyond_tau_and_a_rejected_tau_are_the_same_thing() -> None:
    for n in (10, 100, 1000):
        for tau in (0.5, 0.6, 0.75, 0.9):
            for error in (0.05, 1e-4, 1e-9):
                beyond = np.flatnonzero(anytime_test(n, tau).lower_bounds(error) > tau)
                assert (int(beyond[0]) if beyond.size else None) == anytime_test(n, tau).critical(error)


def test_smaller_errors_give_smaller_bounds() -> None:
    test = anytime_test(50, 0.75)
    tight, loose = test.lower_bounds(1e-6), test.lower_bounds(0.1)
    assert (tight <= loose).all()
    assert (tight < loose).any()
