"""Bounds of measures by simulation: values with known laws, an adversary who stops, and rules broken on purpose.

A bound is false if it exceeds the truth, the supremum of t with P(m >= t) > tau. Laws sit where that is easiest: an
atom exactly at tau, ties around it, and a continuous law, for one measure or many, independent or all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import CountTest, binomial_test
from certiseg.stats.order import order_bounds

TAU, ALPHA = 0.75, 0.1
SURE = 1e-4
"""Chance that a rule with error alpha is reported as broken."""
Values = NDArray[np.float64]
Rule = Callable[[Values], Values]
ATOM = "an atom exactly at tau"
LAWS: dict[str, tuple[Callable[[Values], Values], float]] = {
    ATOM: (lambda u: np.where(u < TAU, 1.0, 0.5), 0.5),
    "ties": (lambda u: np.where(u < 0.7, 1.0, np.where(u < TAU, 0.6, 0.2)), 0.2),
    "continuous": (lambda u: 1 - u, 1 - TAU),
}
"""Values from uniform numbers, and the largest bound that is true."""


@dataclass(frozen=True)
class World:
    """M measures of n draws by a law; at the further anchors, where there are some, every value is 1."""

    law: str = ATOM
    n: int = 60
    measures: int = 20
    dependent: bool = False
    anchors: int = 1

    @property
    def name(self) -> str:
        many = "1 measure" if self.measures == 1 else f"{self.measures} measures"
        same = ", all the same" if self.dependent else ""
        anchors = f", the worst of {self.anchors} anchors" if self.anchors > 1 else ""
        return f"{self.law}, {many}{same}, n = {self.n}{anchors}"

    def draw(self, seed: int) -> Values:
        """(anchors, n, M), or (n, M) where there is one anchor."""
        random = np.random.default_rng(seed)
        shape = self.n, 1 if self.dependent else self.measures
        values = LAWS[self.law][0](np.broadcast_to(random.random(shape), (self.n, self.measures)))
        return values if self.anchors == 1 else np.stack([*np.ones((self.anchors - 1, *values.shape)), values])


@dataclass(frozen=True)
class Measured:
    """How often some bound exceeded the truth."""

    name: str
    trials: int
    wrong: int

    @property
    def most(self) -> int:
        """What a rule with error alpha stays at or below, but for the error of the simulation."""
        return int(binom.isf(SURE, self.trials, ALPHA))

    @property
    def holds(self) -> bool:
        return self.wrong <= self.most


def measure(world: World, rule: Rule, trials: int, name: str | None = None) -> Measured:
    """Bounds of fresh values, over and over."""
    truth = LAWS[world.law][1]
    wrong = sum(bool((rule(world.draw(trial)) > truth + 1e-12).any()) for trial in range(trials))
    return Measured(name or world.name, trials, wrong)


@cache
def critical(
    n: int,
    measures: int,
    alpha: float = ALPHA,
    tau: float = TAU,
    make: Callable[[int, float], CountTest] = binomial_test,
) -> int | None:
    return make(n, tau).critical(alpha / measures)


def ours(values: Values) -> Values:
    """The rule of the package, at fixed n."""
    return order_bounds(values, critical(*values.shape))


def ours_at_anchors(values: Values) -> Values:
    """The least of the bounds at the anchors."""
    return np.minimum.reduce([ours(at_anchor) for at_anchor in values])


def stopped(make: Callable[[int, float], CountTest]) -> Rule:
    """An adversary looks after every draw and stops as soon as some bound exceeds the truth of the atom law."""

    def rule(values: Values) -> Values:
        found = np.zeros(values.shape[1])
        for n in range(5, len(values) + 1):
            found = order_bounds(values[:n], critical(n, values.shape[1], make=make))
            if (found > 0.5).any():
                break
        return found

    return rule


def worlds() -> list[World]:
    """All laws with 1 to 200 measures, independent and all the same, and along a threat."""
    sizes = ((40, 1), (50, 5), (60, 20), (70, 80), (80, 200))
    found = [World(law, n, m, same) for law in LAWS for n, m in sizes for same in (False, True)]
    return [*found, *(World(law, 60, m, anchors=3) for law in LAWS for m in (1, 20))]


def stopped_worlds() -> list[World]:
    return [World(n=120, measures=measures) for measures in (1, 5, 50)]


# -- broken rules ------------------------------------------------------------------------------------------------


def fewer(by: int) -> Rule:
    def rule(values: Values) -> Values:
        count = critical(*values.shape)
        assert count is not None
        return order_bounds(values, count - by)

    return rule


def _smallest(values: Values) -> Values:
    count = critical(*values.shape)
    assert count is not None
    return np.sort(values, axis=0)[count - 1]


def _twice(values: Values) -> Values:
    doubled = np.concatenate([values, values])
    return order_bounds(doubled, critical(*doubled.shape))


def _selected(values: Values) -> Values:
    """The measure is chosen by the estimation draws, and tested as if it were the only one."""
    best = values.mean(axis=0).argmax()
    return order_bounds(values[:, [best]], critical(len(values), 1))


def _best_half(values: Values) -> Values:
    """Two halves of the draws, and the better bound of the two."""
    half = len(values) // 2
    return np.maximum(ours(values[:half]), ours(values[half:]))


BROKEN: dict[str, Rule] = {
    "two counts fewer": fewer(2),
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
    "stopped by looking, at fixed n": stopped(binomial_test),
}
"""Wrong rules of 20 measures with an atom exactly at tau, n = 60."""
BROKEN_AT_ANCHORS: dict[str, Rule] = {
    "the best anchor": lambda v: np.maximum.reduce([ours(each) for each in v]),
    "the mean over the anchors": lambda v: np.mean([ours(each) for each in v], axis=0),
    "the draws of all anchors together": lambda v: ours(v.reshape(-1, v.shape[2])),
}
TIGHT = World(n=46)
"""Here the c-th value errs with probability 0.092, the one after it with 0.26."""


def promised(trials: int) -> list[Measured]:
    """Every promise of the package."""
    found = [measure(world, ours if world.anchors == 1 else ours_at_anchors, trials) for world in worlds()]
    few = max(trials // 5, 1)
    found += [measure(world, ours, trials, f"tight: {world.name}") for world in (TIGHT,)]
    return found + [
        measure(world, stopped(anytime_test), few, f"stopped by an adversary: {world.name}")
        for world in stopped_worlds()
    ]


def wrong(trials: int) -> list[Measured]:
    """Every rule that is broken on purpose."""
    found = [measure(World(), rule, trials, name) for name, rule in BROKEN.items()]
    found += [measure(World(anchors=3), rule, trials, name) for name, rule in BROKEN_AT_ANCHORS.items()]
    return [*found, measure(TIGHT, fewer(1), trials, "one count fewer, where the test is tight")]
