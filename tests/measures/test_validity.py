"""Simulated measures with known laws: no bound exceeds the truth more often than alpha allows, and wrong rules do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test
from certiseg.stats.order import order_bounds

TAU, ALPHA, TRIALS = 0.75, 0.1, 1500
Values = NDArray[np.float64]


def critical(n: int, measures: int, alpha: float = ALPHA, tau: float = TAU) -> int | None:
    return binomial_test(n, tau).critical(alpha / measures)


def uniforms(n: int, measures: int, *, dependent: bool, seed: int) -> Values:
    random = np.random.default_rng(seed)
    return np.repeat(random.random((n, 1)), measures, axis=1) if dependent else random.random((n, measures))


LAWS: dict[str, tuple[Callable[[Values], Values], float]] = {
    "an atom exactly at tau": (lambda u: np.where(u < TAU, 1.0, 0.5), 0.5),
    "ties": (lambda u: np.where(u < 0.7, 1.0, np.where(u < TAU, 0.6, 0.2)), 0.2),
    "continuous": (lambda u: 1 - u, 1 - TAU),
}
"""Values from uniform numbers, and the largest bound that is true: the supremum of t with P(m >= t) > tau."""


def errors(bound: Callable[[Values], Values], law: str, n: int, measures: int, *, dependent: bool = False) -> int:
    """In how many trials some bound exceeds the truth."""
    values, truth = LAWS[law]
    wrong = 0
    for trial in range(TRIALS):
        found = bound(values(uniforms(n, measures, dependent=dependent, seed=trial)))
        wrong += bool((found > truth + 1e-12).any())
    return wrong


MOST = int(binom.isf(1e-4, TRIALS, ALPHA))
"""More errors than this would be seen once in 10,000 simulations of a rule with error alpha."""


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "measures"), [(40, 1), (60, 20), (80, 200)])
@pytest.mark.parametrize("dependent", [False, True])
def test_no_bound_exceeds_the_truth_more_often_than_alpha(law: str, n: int, measures: int, dependent: bool) -> None:
    count = critical(n, measures)
    assert errors(lambda v: order_bounds(v, count), law, n, measures, dependent=dependent) <= MOST


def stopped(values: Values, make: Callable[[int, float], object]) -> Values:
    """An adversary looks after every draw and stops as soon as some bound exceeds the truth of the atom law."""
    found = np.zeros(values.shape[1])
    for n in range(5, len(values) + 1):
        found = order_bounds(values[:n], make(n, TAU).critical(ALPHA / values.shape[1]))  # type: ignore[attr-defined]
        if (found > 0.5).any():
            break
    return found


@pytest.mark.parametrize("measures", [1, 5])
def test_anytime_bounds_hold_against_an_adversary_and_fixed_ones_do_not(measures: int) -> None:
    law = "an atom exactly at tau"
    assert errors(lambda v: stopped(v, anytime_test), law, 120, measures) <= MOST
    assert errors(lambda v: stopped(v, binomial_test), law, 120, measures) > MOST


def _twice(values: Values) -> Values:
    doubled = np.concatenate([values, values])
    return order_bounds(doubled, critical(len(doubled), values.shape[1]))


def _fewer(values: Values, by: int) -> Values:
    count = critical(len(values), values.shape[1])
    assert count is not None
    return order_bounds(values, count - by)


def _smallest(values: Values) -> Values:
    count = critical(len(values), values.shape[1])
    assert count is not None
    return np.sort(values, axis=0)[count - 1]


def _selected(values: Values) -> Values:
    """The measure is chosen by the estimation draws, and tested as if it were the only one."""
    best = values.mean(axis=0).argmax()
    return order_bounds(values[:, [best]], critical(len(values), 1))


BROKEN: dict[str, Callable[[Values], Values]] = {
    "two counts fewer": lambda v: _fewer(v, 2),
    "the c-th smallest": _smallest,
    "alpha instead of alpha / M": lambda v: order_bounds(v, critical(len(v), 1)),
    "every draw counted twice": _twice,
    "chosen by the estimation draws": _selected,
    "the largest value": lambda v: v.max(axis=0),
    "the median": lambda v: np.median(v, axis=0),
    "the mean": lambda v: v.mean(axis=0),
    "the tau-quantile itself": lambda v: order_bounds(v, int(np.ceil(TAU * len(v)))),
    "half of the votes": lambda v: order_bounds(v, critical(len(v), v.shape[1], tau=0.5)),
    "the worst draws left out": lambda v: order_bounds(np.sort(v, axis=0)[5:], critical(len(v) - 5, v.shape[1])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_wrong_rules_are_caught(name: str) -> None:
    assert errors(BROKEN[name], "an atom exactly at tau", 60, 20) > MOST


def test_one_count_fewer_is_caught_where_the_test_is_tight() -> None:
    """At n = 46 and 20 measures the c-th value errs with probability 0.092, the one after it with 0.26."""
    law, count = "an atom exactly at tau", critical(46, 20)
    assert errors(lambda v: order_bounds(v, count), law, 46, 20) <= MOST
    assert errors(lambda v: _fewer(v, 1), law, 46, 20) > MOST
