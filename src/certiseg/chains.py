"""The chains of growing label sets that each method tests at a pixel: one short function per method.

A chain is fixed by the selection draws; its hits, the votes inside each label set, come from the estimation draws.
Where votes were drawn at several anchors of a threat, the hits are those of the worst anchor.
`certify` hands the hits to one procedure, `stats.nested.finest_links`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certiseg.hierarchy import Hierarchy
from certiseg.kernels.hits import level_hits as level_loop
from certiseg.kernels.hits import levels_of_gaps, ranked_hits
from certiseg.kernels.threads import over_pixels
from certiseg.settings import CertificateSettings, Method
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import CountTest, binomial_test
from certiseg.threats.anchors import Covered, covered
from certiseg.votes import Votes, by_pixel


@dataclass(frozen=True)
class Chains:
    """The label sets that a method tests at each pixel."""

    hits: NDArray[np.uint16]
    """(links, N): votes inside each label set, finest first."""
    level: NDArray[np.uint8]
    """Hierarchy level, by pixel (1, N) or by link (links + 1,), abstentions last."""


def chains_of(
    votes: Votes, hierarchy: Hierarchy, settings: CertificateSettings, inside: NDArray[np.bool_] | None
) -> Chains:
    """The chains of a method and their hits, at the pixels of a flat mask or at all.

    With anchors a label is promised only if every one of them rejects: the minimum of their hits decides, and it
    still grows along a chain.
    """
    apart = votes.by_anchor
    chains = [
        _METHODS[settings.method](Tested(apart[anchor], hierarchy, settings, inside))
        for anchor in covered_by(votes, settings).used
    ]
    return chains[0] if len(chains) == 1 else replace(chains[0], hits=np.minimum.reduce([c.hits for c in chains]))


def covered_by(votes: Votes, settings: CertificateSettings) -> Covered:
    """The parameters of the threat that the certificate speaks of, and the anchors that it needs for them."""
    low, high = votes.threat.range(settings.tau, settings.radius or 0.0, votes.deviation)
    return covered(votes.anchors, low, high)


def count_test(votes: Votes, settings: CertificateSettings) -> CountTest:
    """The test of "share <= tau" that the settings ask for."""
    make = binomial_test if settings.test == "fixed" else anytime_test
    return make(votes.n, settings.tau)


@dataclass(frozen=True)
class Tested:
    """The tested pixels of an image, one after the other, and what a method needs to know of them."""

    votes: Votes
    hierarchy: Hierarchy
    settings: CertificateSettings
    inside: NDArray[Any] | None

    def pick(self, name: str) -> NDArray[Any]:
        """An array of the votes at the tested pixels, as (N,) or (N, K)."""
        return pick(getattr(self.votes, name), self.inside)

    def set_hits(self, longest: int) -> NDArray[np.uint16]:
        """(longest, N): votes for the one, two, ... best ranked classes."""
        flat = ranked_hits_of(self.votes)[:longest]
        return flat if self.inside is None else flat[:, self.inside]

    def level_hits(self, level: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """(N,): votes for the leaves under K(candidate, level)."""
        counts, ranking, ranked = self.pick("counts"), self.pick("ranking"), self.set_hits(self.votes.max_set)
        n, masks, hits = np.uint16(self.votes.n), _masks(self.hierarchy), np.empty(len(counts), np.uint16)
        loop = level_loop(self.votes.max_set)
        over_pixels(loop, len(counts), counts, ranking, ranked, n, masks, level, hits)
        return hits

    def everywhere(self, level: int) -> NDArray[np.uint8]:
        """(N,): one level for all pixels."""
        return np.full(self.set_hits(1).shape[1], level, np.uint8)


def _segcertify(tested: Tested) -> Chains:
    """Level 0 everywhere: the candidate class itself."""
    hits = tested.set_hits(1)
    return Chains(hits, np.zeros(hits.shape, np.uint8))


def _level(tested: Tested) -> Chains:
    """Non-adaptive-H_l: the given level everywhere."""
    assert tested.settings.level is not None
    level = tested.everywhere(tested.settings.level)
    return Chains(tested.level_hits(level)[None], level[None])


def _adaptive(tested: Tested) -> Chains:
    """The paper's AdaptiveCertify: the level is the number of thresholds t with gap <= t."""
    gap = tested.pick("gap")
    level = np.empty(len(gap), np.uint8)
    over_pixels(levels_of_gaps, len(gap), gap, rounded_down(tested.settings.thresholds, gap.dtype), level)
    return Chains(tested.level_hits(level)[None], level[None])


def _nested(tested: Tested) -> Chains:
    """Every level of the candidate's path to the root, finest first; abstentions count at the last level."""
    levels = tested.hierarchy.num_levels
    coarser = [tested.level_hits(tested.everywhere(level)) for level in range(1, levels)]
    return Chains(np.stack([*tested.set_hits(1), *coarser]), np.array([*range(levels), levels - 1], np.uint8))


def _sets(tested: Tested) -> Chains:
    """The best ranked class, the two best, ... up to max_set; these sets have no level."""
    longest = tested.settings.max_set
    assert longest is not None
    return Chains(tested.set_hits(longest), np.zeros(longest + 1, np.uint8))


_METHODS: dict[Method, Callable[[Tested], Chains]] = {
    "segcertify": _segcertify,
    "level": _level,
    "adaptive": _adaptive,
    "nested": _nested,
    "sets": _sets,
}


# -- hits --------------------------------------------------------------------------------------------------------


def pick(array: NDArray[Any], inside: NDArray[Any] | None) -> NDArray[Any]:
    """The tested pixels of an (H, W) or (H, W, K) array, as (N,) or (N, K)."""
    flat = np.ascontiguousarray(array).reshape(array.shape[0] * array.shape[1], *array.shape[2:])
    return flat if inside is None else flat[inside]


def rounded_down(thresholds: ArrayLike | None, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The largest numbers of a type that are not above the thresholds: "gap <= t" says the same, and runs faster."""
    exact = np.array(thresholds, np.float64)
    rounded = exact.astype(dtype)
    return np.where(rounded > exact, np.nextafter(rounded, dtype.type(-np.inf)), rounded)


@lru_cache(maxsize=16)
def _masks(hierarchy: Hierarchy) -> NDArray[np.uint16]:
    """(C, L, C and more): all ones at the leaves under K(y, l), zeros behind them up to whole vectors."""
    masks = hierarchy.members[hierarchy.ancestors].astype(np.uint16) * np.uint16(0xFFFF)
    return np.pad(masks, ((0, 0), (0, 0), (0, -hierarchy.num_classes % 16)))


_ranked: WeakKeyDictionary[Votes, NDArray[np.uint16]] = WeakKeyDictionary()


def ranked_hits_of(votes: Votes) -> NDArray[np.uint16]:
    """(max_set, N): votes for the one, two, ... best ranked classes of every pixel, counted once for all methods."""
    if votes not in _ranked:
        counts, ranking = by_pixel(votes.counts), by_pixel(votes.ranking)
        hits = np.empty((votes.max_set, len(counts)), np.uint16)
        over_pixels(ranked_hits, len(counts), counts, ranking, hits)
        _ranked[votes] = hits
    return _ranked[votes]
