"""What can be known before anything is drawn."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

import certiseg as cs
from certiseg.planning import plan, require_certifiable
from certiseg.stats.anytime import anytime_test

DESIGN = {"pixels": 480 * 360, "n": 100, "tau": 0.75, "alpha": 0.001, "sigma": 0.25}


def test_design_figures() -> None:
    found = plan(**DESIGN)
    assert (found.critical, found.misses) == (97, 3)
    assert found.radius == pytest.approx(0.25 * stats.norm.ppf(0.75))
    assert plan(**{**DESIGN, "test": "anytime"}).critical == 98
    assert [
        plan(**{**DESIGN, "n": n, "test": test}).critical for n in (500, 1000) for test in ("fixed", "anytime")
    ] == [
        428,
        434,
        826,
        836,
    ]


@pytest.mark.parametrize("test", ["fixed", "anytime"])
@pytest.mark.parametrize(
    ("pixels", "tau", "alpha"), [(1, 0.5, 0.5), (1, 0.9, 0.01), (10**6, 0.75, 0.001), (1, 0.99, 1e-9)]
)
def test_the_least_n_certifies_and_one_less_does_not(pixels: int, tau: float, alpha: float, test: str) -> None:
    least = plan(pixels=pixels, n=1, tau=tau, alpha=alpha, test=test).least_n
    assert least is not None
    assert plan(pixels=pixels, n=least, tau=tau, alpha=alpha, test=test).critical is not None
    if least > 1:
        assert plan(pixels=pixels, n=least - 1, tau=tau, alpha=alpha, test=test).critical is None
        assert plan(pixels=pixels, n=least - 1, tau=tau, alpha=alpha, test=test).misses is None


def test_the_least_n_is_where_unanimity_is_rare_enough() -> None:
    level = 0.001 / (480 * 360)
    least = plan(**DESIGN).least_n
    assert 0.75**least <= level < 0.75 ** (least - 1)
    anytime = plan(**{**DESIGN, "test": "anytime"}).least_n
    assert anytime_test(anytime, 0.75).critical(level) == anytime
    assert anytime > least


def test_a_share_that_65535_draws_cannot_show_has_no_least_n() -> None:
    found = plan(pixels=10**6, n=100, tau=0.9999, alpha=0.001)
    assert (found.least_n, found.critical) == (None, None)
    with pytest.raises(cs.InputError, match="n must be more than 65535, which is not supported"):
        require_certifiable(pixels=10**6, n=100, tau=0.9999, alpha=0.001, sigma=0.25, test="fixed")


def test_too_few_draws_are_refused_with_the_least_that_would_do() -> None:
    settings = {**DESIGN, "test": "fixed"}
    least = plan(**DESIGN).least_n
    with pytest.raises(cs.InputError, match=f"n must be at least {least} to certify anything at tau = 0.75"):
        require_certifiable(**{**settings, "n": least - 1})
    require_certifiable(**{**settings, "n": least})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tau": 0.4}, r"tau must lie in \[0\.5, 1\)"),
        ({"tau": 1.0}, "tau must lie in"),
        ({"tau": float("nan")}, "tau must lie in"),
        ({"alpha": 0.0}, r"alpha must lie in \(0, 1\)"),
        ({"alpha": 1.0}, "alpha must lie in"),
        ({"sigma": 0.0}, "sigma must be a positive number"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"sigma": float("nan")}, "sigma must be a positive number"),
        ({"sigma": float("inf")}, "sigma must be a positive number"),
        ({"pixels": 0}, "pixels must be at least 1"),
        ({"n": 0}, r"n must be in 1\.\.65535"),
        ({"n": 65_536}, r"n must be in 1\.\.65535"),
        ({"test": "sometimes"}, "test must be fixed or anytime, got 'sometimes'"),
    ],
)
def test_bad_settings_are_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(cs.InputError, match=words):
        plan(**{**DESIGN, **changes})


def test_a_plan_keeps_its_promise_for_certify() -> None:
    import numpy as np

    from tests.conftest import random_votes

    votes = random_votes(0, num_classes=3, n=100, size=(30, 40))
    for test in ("fixed", "anytime"):
        planned = plan(pixels=1200, n=100, tau=0.6, alpha=0.01, test=test)
        cert = cs.certify(votes, method="segcertify", tau=0.6, alpha=0.01, test=test)
        assert cert.critical == planned.critical
        assert cert.radius == planned.radius
        hits = np.take_along_axis(votes.counts, votes.candidate[..., None].astype(int), axis=-1)[..., 0]
        np.testing.assert_array_equal(cert.vertex >= 0, 100 - hits.astype(int) <= planned.misses)
