"""Certifying stored votes of 1024x2048x19, per method, against NumPy hits and one vectorised scipy call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio

METHODS: dict[str, dict[str, Any]] = {
    "segcertify": {},
    "level": {"level": 2},
    "adaptive": {"thresholds": (0, 0, 0.25)},
    "nested": {},
    "sets": {},
}


def random_votes(height: int, width: int, num_classes: int, n: int = 100, seed: int = 0) -> cs.Votes:
    """Votes like those of a street scene: most pixels nearly unanimous, some undecided."""
    rng = np.random.Generator(np.random.Philox(seed))
    pixels = height * width
    ranking = np.argsort(rng.random((pixels, num_classes), np.float32), axis=1)[:, :5].astype(np.uint8)
    left = np.full(pixels, n)
    counts = np.zeros((pixels, num_classes), np.uint16)
    certainty = rng.beta(6, 0.6, pixels)
    for position in range(5):
        hits = left if position == 4 else rng.binomial(left, certainty)
        counts[np.arange(pixels), ranking[:, position]] = hits
        left = left - hits
    gap = certainty.astype(np.float32)
    return votes_of([a.reshape(height, width, *a.shape[1:]) for a in (ranking[:, 0], gap, ranking, counts)], n)


def votes_of(maps: Sequence[NDArray[Any]], n: int, *, block: int = 1) -> cs.Votes:
    """Votes from candidate, gap, ranking and counts; block: each pixel becomes so many alike, as objects are."""
    enlarged = (np.ascontiguousarray(array.repeat(block, axis=0).repeat(block, axis=1)) for array in maps)
    candidate, gap, ranking, counts = enlarged
    return cs.Votes(candidate, gap, ranking, counts, n0=10, n=n, sigma=0.25)


def straightforward(votes: cs.Votes, hierarchy: cs.Hierarchy, method: str) -> NDArray[np.bool_]:
    """The same decision by NumPy: hits of every label tested, then one scipy.stats.binom.sf over all of them."""
    from scipy.stats import binom

    counts = votes.counts.reshape(-1, votes.num_classes)
    candidate, pixel = votes.candidate.reshape(-1), np.arange(len(counts))
    if method == "segcertify":
        hits = counts[pixel, candidate][None]
    elif method == "sets":
        hits = np.cumsum(counts[pixel[:, None], votes.ranking.reshape(-1, 5)], axis=1).T
    else:
        levels: list[Any] = {"level": [2], "nested": [*range(hierarchy.num_levels)]}.get(method, [])
        if method == "adaptive":
            levels = [np.sum([votes.gap.reshape(-1) <= t for t in (0, 0, 0.25)], axis=0)]
        hits = np.stack([(counts * hierarchy.members[hierarchy.ancestors[candidate, k]]).sum(axis=1) for k in levels])
    certified: NDArray[np.bool_] = binom.sf(hits.astype(np.int64) - 1, votes.n, 0.75) <= 0.001 / len(pixel)
    return certified


def measure(height: int = 1024, width: int = 2048, *, repeats: int = 2) -> list[Figure]:
    """How many times faster certify is than the straightforward way, on the same votes."""
    hierarchy = cs.load_hierarchy("cityscapes")
    small = random_votes(height // 8, width // 8, hierarchy.num_classes)
    kinds = {
        "pixels on their own": random_votes(height, width, hierarchy.num_classes),
        "8x8 alike": votes_of([small.candidate, small.gap, small.ranking, small.counts], small.n, block=8),
    }
    figures = []
    for kind, votes in kinds.items():
        for method, options in METHODS.items():
            slow = partial(straightforward, votes, hierarchy, method)
            ratio = interleaved_ratio(slow, partial(cs.certify, votes, hierarchy, method=method, **options), repeats)
            name = f"certify {width}x{height}x19, {method}, {kind}: times faster than numpy + scipy"
            figures.append(Figure(name, ratio, 20.0, ">="))
    return figures
