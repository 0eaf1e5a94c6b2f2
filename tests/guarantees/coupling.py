"""Worst joint laws of the pixels: groups that fail together, exactly as large as a correction finds hardest.

Every pixel alone has Binomial(n, tau) hits. The corrections promise their error for any dependence between pixels,
so also for these laws, which no network is likely to have; under them the promises of bonferroni, kfwer and by are
nearly spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import certiseg as cs

from .promises import Cell, Sampled, Scenario
from .simulate import RAGGED, Scene, draw_selection, make_scene, make_votes

GroupSize = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""For each p-value: how many pixels must have it together to be rejected; infinite where no number is enough."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """Either a group of pixels has the same many hits, or all pixels have few."""

    tested: int
    hits: NDArray[np.int64]
    """(events,): the hits of the group in each event."""
    sizes: NDArray[np.int64]
    """(events,): the number of pixels in the group."""
    chances: NDArray[np.float64]
    """(events,): the probability of each event."""
    rest: NDArray[np.float64]
    """(n + 1,): law of the hits of a pixel outside the group."""

    @property
    def error(self) -> float:
        """P(some group is large enough)."""
        return float(self.chances.sum())

    def draw(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """(N,): hits of all pixels."""
        hits = rng.choice(len(self.rest), self.tested, p=self.rest)
        event = int(np.searchsorted(np.cumsum(self.chances), rng.random(), side="right"))
        if event < len(self.hits):
            hits[rng.permutation(self.tested)[: self.sizes[event]]] = self.hits[event]
        return hits


def couple(n: int, tau: float, tested: int, group_size: GroupSize) -> Coupling:
    """The joint law in which each number of hits comes in groups that are just large enough to be rejected."""
    hits = np.arange(n + 1)
    law, sizes = binom.pmf(hits, n, tau), group_size(binom.sf(hits - 1, n, tau))
    grouped = sizes <= tested
    chances = tested * law[grouped] / sizes[grouped]
    rest = np.where(grouped, 0.0, law)
    return Coupling(tested, hits[grouped], sizes[grouped].astype(np.int64), chances, rest / rest.sum())


def groups_for(level: Callable[[NDArray[np.int64]], NDArray[np.float64]], tested: int, *, least: int = 1) -> GroupSize:
    """The least number of pixels r >= `least` with p <= level(r), where level rises with r."""
    levels = level(np.arange(1, tested + 1))
    levels[: least - 1] = 0.0

    def group_size(p: NDArray[np.float64]) -> NDArray[np.float64]:
        rank = np.searchsorted(levels, p, side="left") + 1.0
        return np.where(rank <= tested, rank, np.inf)

    return group_size


def coupled_scenario(
    name: str, group_size: GroupSize, *, cells: tuple[Cell, ...], n: int, alpha: float, spends: tuple[str, ...] = ()
) -> Scenario:
    """100 pixels exactly at tau under the joint law that is worst for a correction."""
    scene = make_scene(RAGGED, [(100, {"a": 0.75, "f": 0.25})], tau=0.75, n=n, n0=200)
    coupling = couple(scene.n, scene.tau, scene.tested, group_size)

    def draw(scene: Scene, rng: np.random.Generator) -> Sampled:
        return Sampled(_coupled_votes(scene, coupling, rng))

    return Scenario(name, scene, alpha, cells, draw, spends=spends)


def _coupled_votes(scene: Scene, coupling: Coupling, rng: np.random.Generator) -> cs.Votes:
    hits = coupling.draw(rng)
    counts = np.zeros((scene.tested, scene.hierarchy.num_classes), np.int64)
    counts[:, scene.active[0]], counts[:, scene.active[1]] = hits, scene.n - hits
    return make_votes(scene, draw_selection(scene, rng), counts)
