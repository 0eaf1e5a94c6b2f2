"""Every method and correction keeps its promise when the draws were stopped by looking, whatever the rule.

By simulation against an adversary, and exactly for one pixel: the law of the hits is followed draw by draw.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from certiseg.stats.anytime import AnytimeTest
from certiseg.stats.binomial import BinomialTest

from .promises import Scenario, failures, measure
from .scenarios import anytime_scenarios


@pytest.mark.parametrize("scenario", anytime_scenarios(), ids=lambda scenario: scenario.name)
def test_promises_hold_against_the_worst_stop(scenario: Scenario) -> None:
    judged = scenario if scenario.name == "stopped: leaf at tau" else scenario.essential()
    assert not failures(measure(judged, images=scenario.images(350)))


def chance_of_ever(rejects: Callable[[int], NDArray[np.bool_]], *, share: float, horizon: int) -> float:
    """P(after some n <= horizon draws the hits k have rejects(n)[k]), exactly."""
    law, gone = np.zeros(horizon + 1), 0.0
    law[0] = 1.0
    for n in range(1, horizon + 1):
        law[1:] = law[1:] * (1 - share) + law[:-1] * share
        law[0] *= 1 - share
        rejected = np.flatnonzero(rejects(n))
        gone += law[rejected].sum()
        law[rejected] = 0.0
    return float(gone)


def rejects_at(tau: float, level: float) -> Callable[[int], NDArray[np.bool_]]:
    def rejects(n: int) -> NDArray[np.bool_]:
        critical = AnytimeTest(n, tau).critical(level)
        return np.arange(n + 1) >= (n + 1 if critical is None else critical)

    return rejects


@pytest.mark.parametrize("tau", [0.5, 0.75, 0.9])
@pytest.mark.parametrize("level", [0.2, 0.01, 1e-4])
def test_chance_that_the_evidence_ever_suffices(tau: float, level: float) -> None:
    at_tau = chance_of_ever(rejects_at(tau, level), share=tau, horizon=300)
    assert level / 5 <= at_tau <= level
    assert chance_of_ever(rejects_at(tau, level), share=0.97 * tau, horizon=300) < at_tau


@pytest.mark.parametrize("tau", [0.5, 0.75, 0.95])
@pytest.mark.parametrize("n", [0, 1, 7, 60])
def test_evidence_is_a_supermartingale_for_every_share_up_to_tau(tau: float, n: int) -> None:
    now = np.exp(AnytimeTest(n, tau).log_evidence)
    then = np.exp(AnytimeTest(n + 1, tau).log_evidence)
    for share in np.linspace(0, 1, 21) * tau:
        expected = share * then[1:] + (1 - share) * then[:-1]
        assert np.all(expected <= now * (1 + 1e-9))
    np.testing.assert_allclose(tau * then[1:] + (1 - tau) * then[:-1], now, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
def test_evidence_grows_with_hits_and_excludes_an_interval_of_shares(n: int) -> None:
    shares = np.linspace(0.5, 0.999, 500)
    table = np.array([AnytimeTest(n, share).log_evidence for share in shares])
    assert np.all(np.diff(table, axis=1) > 0)
    for level in (0.36, 0.01, 1e-6):
        excluded = table >= -np.log(level)
        assert np.all(excluded[1:] <= excluded[:-1]), "a share was excluded above one that was not"


def test_chance_that_a_radius_of_stopped_votes_is_ever_too_large() -> None:
    error, horizon = 0.01, 100
    bounds = [AnytimeTest(n, 0.5).lower_bounds(error) for n in range(1, horizon + 1)]
    for share in (0.5, 0.6, 0.75, 0.9, 0.99):
        chance = chance_of_ever(lambda n, share=share: bounds[n - 1] > share, share=share, horizon=horizon)
        assert chance <= error
        assert share > 0.95 or chance >= error / 5


@pytest.mark.parametrize("share", [0.51, 0.6, 0.75, 0.9, 0.99])
def test_chance_that_a_radius_of_a_fixed_number_of_draws_is_too_large(share: float) -> None:
    n, error = 300, 0.01
    too_large = BinomialTest(n, 0.5).lower_bounds(error) > share
    assert binom.pmf(np.arange(n + 1), n, share)[too_large].sum() <= error
