"""Certifying stored votes of 1024x2048x19, per method, against NumPy hits and one vectorised scipy call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio

METHODS: dict[str, dict[str, object]] = {
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
    size = (height, width)
    return cs.Votes(
        candidate=np.ascontiguousarray(ranking[:, 0]).reshape(size),
        gap=certainty.astype(np.float32).reshape(size),
        ranking=ranking.reshape(*size, 5),
        counts=counts.reshape(*size, num_classes),
        n0=10,
        n=n,
        sigma=0.25,
    )


def straightforward(votes: cs.Votes, hierarchy: cs.Hierarchy, method: str) -> np.ndarray:
    """The same decision by NumPy: hits of every label tested, then one scipy.stats.binom.sf over all of them."""
    from scipy.stats import binom

    counts = votes.counts.reshape(-1, votes.num_classes)
    candidate, pixel = votes.candidate.reshape(-1), np.arange(votes.counts.shape[0] * votes.counts.shape[1])
    if method == "segcertify":
        hits = counts[pixel, candidate][None]
    elif method == "sets":
        hits = np.cumsum(counts[pixel[:, None], votes.ranking.reshape(-1, 5)], axis=1).T
    else:
        levels = {"level": [2], "nested": range(hierarchy.num_levels)}.get(method, [0])
        if method == "adaptive":
            levels = [sum((votes.gap.reshape(-1) <= t).astype(int) for t in (0, 0, 0.25))]
        hits = np.stack([(counts * hierarchy.members[hierarchy.ancestors[candidate, k]]).sum(axis=1) for k in levels])
    return binom.sf(hits.astype(np.int64) - 1, votes.n, 0.75) <= 0.001 / len(pixel)


def scene_like(votes: cs.Votes, block: int = 8) -> cs.Votes:
    """The votes of an enlarged image: blocks of pixels alike, as objects are."""

    def enlarged(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.repeat(block, axis=0).repeat(block, axis=1))

    maps = {name: enlarged(getattr(votes, name)) for name in ("candidate", "gap", "ranking", "counts")}
    return replace(votes, **maps)


def measure(height: int = 1024, width: int = 2048, *, repeats: int = 5) -> list[Figure]:
    """How many times faster certify is than the straightforward way, on the same votes."""
    hierarchy = cs.load_hierarchy("cityscapes")
    kinds = {
        "pixels on their own": random_votes(height, width, hierarchy.num_classes),
        "8x8 alike": scene_like(random_votes(height // 8, width // 8, hierarchy.num_classes)),
    }
    figures = []
    for kind, votes in kinds.items():
        for method, options in METHODS.items():
            ratio = interleaved_ratio(
                lambda v=votes, m=method: straightforward(v, hierarchy, m),
                lambda v=votes, m=method, o=options: cs.certify(v, hierarchy, method=m, **o),
                repeats=repeats,
            )
            name = f"certify {width}x{height}x19, {method}, {kind}: times faster than numpy + scipy"
            figures.append(Figure(name, ratio, 20.0, ">="))
    return figures
