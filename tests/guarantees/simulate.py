"""Images whose class shares under noise are known: their votes, and the truth about what a certificate says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

import certiseg as cs
from certiseg.hierarchy import Hierarchy, hierarchy_from_dict
from certiseg.kernels import counts as counting

EXACTLY = 1e-9
"""Shares this close to tau are at tau: sums of shares carry rounding errors."""

RAGGED = hierarchy_from_dict(
    {
        "classes": list("abcdefghij"),
        "levels": {1: {"ab": ["a", "b"]}, 2: {"abcd": ["ab", "c", "d"]}, 3: {"abcde": ["abcd", "e"]}},
    },
    source="ragged",
)
"""A tree with skipped levels: c and d have no parent at level 1, e none below level 3, f to j none at all."""


@dataclass(frozen=True, eq=False)
class Scene:
    """An image of N pixels of a few kinds; the pixels of a kind have the same, known class shares under noise."""

    hierarchy: Hierarchy
    shares: NDArray[np.float64]
    """(kinds, C)"""
    kind: NDArray[np.int64]
    """(N,)"""
    tau: float
    n0: int
    n: int
    block: int = 1
    """So many neighbouring pixels share all their draws."""
    max_set: int = 5
    sigma: float = 0.25

    @property
    def tested(self) -> int:
        """N, the number of pixels."""
        return len(self.kind)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The classes that are ever drawn."""
        return np.flatnonzero(self.shares.any(axis=0))

    @cached_property
    def unit_shares(self) -> NDArray[np.float64]:
        """(N / block, active classes): the shares of every pixel that has draws of its own."""
        return self.shares[self.kind[:: self.block]][:, self.active]

    @cached_property
    def vertex_shares(self) -> NDArray[np.float64]:
        """(kinds, vertices): the true share of every vertex."""
        return self.shares @ self.hierarchy.members.T.astype(np.float64)


def make_scene(
    hierarchy: Hierarchy,
    kinds: Sequence[tuple[int, Mapping[str, float]]],
    *,
    tau: float,
    n: int,
    n0: int = 10,
    block: int = 1,
    max_set: int = 5,
) -> Scene:
    """A scene of so many pixels of each kind, given by the shares of its classes."""
    shares = np.zeros((len(kinds), hierarchy.num_classes))
    for row, (count, of_class) in enumerate(kinds):
        if count % block or abs(sum(of_class.values()) - 1) > EXACTLY:
            raise ValueError(f"kind {row} must fill whole blocks and have shares that add up to 1")
        for name, share in of_class.items():
            shares[row, hierarchy.id(name)] = share
    kind = np.repeat(np.arange(len(kinds)), [count for count, _ in kinds])
    return Scene(hierarchy, shares, kind, tau, n0, n, block, max_set)


@lru_cache(maxsize=64)
def tight_draws(tested: float, tau: float, alpha: float, *, around: tuple[int, int] = (60, 200)) -> int:
    """The n in a range at which N tests at alpha / N come closest to spending alpha in spite of discreteness."""
    return max(range(*around), key=lambda n: spent(n, tau, alpha, tested))


def spent(n: int, tau: float, alpha: float, tested: float) -> float:
    """N times the probability that a pixel exactly at tau passes the test at alpha / N."""
    critical = cs.critical_count(n, tau, alpha / tested)
    return 0.0 if critical is None else float(tested * binom.sf(critical - 1, n, tau))


# -- votes -------------------------------------------------------------------------------------------------------


def draw_selection(scene: Scene, rng: np.random.Generator) -> NDArray[np.int64]:
    """(N, C): the labels of the n0 selection draws, counted."""
    return _spread(scene, rng.multinomial(scene.n0, scene.unit_shares))


def draw_counts(scene: Scene, rng: np.random.Generator, *, batch: int = 1) -> NDArray[np.int64]:
    """(N, C): the labels of the n estimation draws, counted. batch > 1: so many successive draws share their noise."""
    whole, rest = divmod(scene.n, batch)
    counts = batch * rng.multinomial(whole, scene.unit_shares)
    if rest:
        counts += rest * rng.multinomial(1, scene.unit_shares)
    return _spread(scene, counts)


def make_votes(
    scene: Scene,
    selection: NDArray[np.int64],
    counts: NDArray[np.int64],
    *,
    n: int | None = None,
    stopped: bool = False,
) -> cs.Votes:
    """Votes of a model that gives labels: candidate, gap and ranking from the vote shares of the selection draws."""
    ranking = np.empty((1, scene.tested, scene.max_set), np.uint8)
    lead = np.empty((1, scene.tested), np.int64)
    counting.rank_classes(selection.astype(np.uint32)[None], ranking, lead)
    return cs.Votes(
        candidate=np.ascontiguousarray(ranking[..., 0]),
        gap=lead / scene.n0,
        ranking=ranking,
        counts=counts.astype(np.uint16)[None],
        n0=scene.n0,
        n=scene.n if n is None else n,
        sigma=scene.sigma,
        stopped=stopped,
    )


def draw_votes(scene: Scene, rng: np.random.Generator) -> cs.Votes:
    """The votes of one simulated image, as the definition has them: n0 selection draws, then n others."""
    return make_votes(scene, draw_selection(scene, rng), draw_counts(scene, rng))


def draw_labels(scene: Scene, rng: np.random.Generator, draws: int) -> NDArray[np.uint8]:
    """(draws, N): labels draw by draw, as places in `scene.active`."""
    uniform = rng.random((draws, len(scene.unit_shares)))
    labels = np.zeros(uniform.shape, np.uint8)
    for cut in np.cumsum(scene.unit_shares, axis=1).T[:-1]:
        labels += uniform >= cut
    return np.repeat(labels, scene.block, axis=1)


def draw_predictions(scene: Scene, rng: np.random.Generator, *, concentration: float = 4.0) -> cs.Votes:
    """Votes through the public door for people with draws of their own: random posteriors (Dirichlet) and labels."""
    weights = rng.standard_gamma(
        concentration * scene.shares[scene.kind].T, (scene.n0, scene.hierarchy.num_classes, scene.tested)
    )
    posteriors = weights / weights.sum(axis=1, keepdims=True)
    labels = scene.active[draw_labels(scene, rng, scene.n)]
    return cs.Votes.from_predictions(posteriors[:, :, None], labels[:, None], sigma=scene.sigma, max_set=scene.max_set)


def _spread(scene: Scene, of_units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Counts of the active classes of each unit, as counts of all classes of each pixel."""
    counts = np.zeros((scene.tested, scene.hierarchy.num_classes), np.int64)
    counts[:, scene.active] = np.repeat(of_units, scene.block, axis=0)
    return counts


# -- truth -------------------------------------------------------------------------------------------------------


def certified_shares(scene: Scene, certificate: cs.Certificate) -> NDArray[np.float64]:
    """The true share of what is certified, for every certified pixel."""
    if certificate.settings.method == "sets":
        size = certificate.set_size.reshape(-1)
        certified = np.flatnonzero(size)
        return set_shares(scene, certificate.votes, certified, size[certified])
    vertex = certificate.vertex.reshape(-1)
    certified = np.flatnonzero(vertex != cs.ABSTAIN)
    return scene.vertex_shares[scene.kind[certified], vertex[certified]]


def set_shares(
    scene: Scene, votes: cs.Votes, pixels: NDArray[np.int64], size: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The true share of the best ranked classes, so many of them at each of the pixels."""
    ranking = votes.ranking.reshape(scene.tested, -1)[pixels].astype(np.int64)
    ranked = np.take_along_axis(scene.shares[scene.kind[pixels]], ranking, axis=1)
    return np.where(np.arange(ranked.shape[1]) < size[:, None], ranked, 0.0).sum(axis=1)


def count_false(scene: Scene, certificate: cs.Certificate) -> tuple[int, int]:
    """How many certifications are false (the true share is at most tau), and how many there are."""
    shares = certified_shares(scene, certificate)
    return int((shares <= scene.tau + EXACTLY).sum()), len(shares)


def count_false_radii(scene: Scene, certificate: cs.Certificate) -> int:
    """At how many pixels the radius map exceeds the true radius of the label that it speaks of."""
    votes, pixels = certificate.votes, np.arange(scene.tested)
    if certificate.settings.method == "sets":
        size = certificate.set_size.reshape(-1)
        shares = set_shares(scene, votes, pixels, np.where(size, size, certificate.settings.max_set))
    else:
        vertex = scene.hierarchy.ancestors[votes.candidate.reshape(-1), certificate.level.reshape(-1)]
        shares = scene.vertex_shares[scene.kind, vertex]
    true_radius = scene.sigma * ndtri(np.clip(shares, 0.5, 1.0))
    return int((certificate.radius_map.reshape(-1) > true_radius + EXACTLY).sum())
