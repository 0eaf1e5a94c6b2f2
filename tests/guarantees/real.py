"""Scenes from real votes: class shares of pixels of CamVid images under noise, some of them planted exactly at tau.

`real_votes.npz` holds vote counts of `compact` at pixels of CamVid test images (no images). Written by
`python -m tests.guarantees.real RUN`, where RUN is a run folder of `certiseg evaluate camvid`.

A pixel's shares are those of its stored votes. To plant one, the share of a label (the leading class, its ancestor at
some level, or the best few classes) is scaled to exactly tau and the share of the rest to 1 - tau; inside both, the
classes keep their proportions. Votes are then drawn anew from the shares, so the truth is known.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import certiseg as cs

from .promises import Cell, Scenario
from .scenarios import NONE_FALSE, every, radii
from .simulate import Scene, tight_draws
from .stopping import Stopped

STORED = Path(__file__).with_name("real_votes.npz")
PER_IMAGE = 600
"""Pixels kept of each image, half of them among those whose votes do not all agree."""


@lru_cache(maxsize=1)
def stored_shares() -> NDArray[np.float64]:
    """(pixels, C): the class shares of the stored votes."""
    with np.load(STORED) as stored:
        counts = stored["counts"].astype(np.float64)
    return counts / counts.sum(axis=1, keepdims=True)


def planted(shares: NDArray[np.float64], inside: NDArray[np.bool_], tau: float) -> NDArray[np.float64]:
    """The shares with those of the `inside` classes scaled to tau in all; both arrays are (pixels, C)."""
    total = np.where(inside, shares, 0.0).sum(axis=1, keepdims=True)
    return np.where(inside, shares * tau / total, shares * (1 - tau) / (1 - total))


def vertex_classes(shares: NDArray[np.float64], level: int) -> NDArray[np.bool_]:
    """(pixels, C): the classes under the ancestor of each pixel's leading class."""
    hierarchy = _tree()
    return hierarchy.members[hierarchy.ancestors[shares.argmax(axis=1), level]]


def best_classes(shares: NDArray[np.float64], size: int) -> NDArray[np.bool_]:
    """(pixels, C): so many classes with the largest shares."""
    inside = np.zeros(shares.shape, bool)
    np.put_along_axis(inside, np.argsort(-shares, axis=1, kind="stable")[:, :size], True, axis=1)
    return inside


def plantable(shares: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels with votes outside the label, or there would be nothing to scale."""
    return np.asarray(np.where(inside, 0.0, shares).sum(axis=1) > 0)


def real_scenarios() -> list[Scenario]:
    """Real pixels, planted at every level and set size, alone and among pixels left as they are."""
    tree = _tree()
    levels = tuple(range(1, tree.num_levels))
    maps = radii("segcertify", "nested", "sets")
    chains = every("nested", "adaptive", "level", level=1)
    stopped = {"n": 400, "draw": partial(Stopped, alpha=0.1), "weight": 0.3}
    anytime = every(test="anytime")
    return [
        _scenario("real votes: leaf planted at tau", (*every(), *maps), leaf=100, spends=NONE_FALSE),
        _scenario("real votes: leaf planted at 0.9", every(), leaf=100, tau=0.9, spends=NONE_FALSE),
        _scenario("real votes: levels planted at tau", (*chains, *radii("nested")), levels={k: 33 for k in levels}),
        _scenario("real votes: sets of 1, 2, 3 planted", every("sets", max_set=3), sets={1: 33, 2: 33, 3: 33}),
        _scenario("real votes: half planted, half as they are", (*every(), *maps), leaf=50, plain=50),
        _scenario("real votes: one in four planted", every(), levels={0: 25, 1: 25}, plain=150),
        _scenario("real votes, stopped: leaf planted at tau", anytime, leaf=60, **stopped),
        _scenario("real votes, stopped: half as they are", anytime, leaf=30, levels={1: 20}, plain=50, **stopped),
    ]


def _scenario(
    name: str,
    judged: tuple[Cell, ...],
    *,
    leaf: int = 0,
    levels: dict[int, int] | None = None,
    sets: dict[int, int] | None = None,
    plain: int = 0,
    tau: float = 0.75,
    alpha: float = 0.1,
    n: int | None = None,
    **other: Any,
) -> Scenario:
    """So many pixels planted at the leaf, at each level and in sets of each size, and so many left as they are."""
    rng = np.random.default_rng(sum(name.encode()))
    wanted = {**(levels or {}), **({0: leaf} if leaf else {})}
    parts = [_planted_pixels(rng, count, tau, partial(vertex_classes, level=level)) for level, count in wanted.items()]
    parts += [
        _planted_pixels(rng, count, tau, partial(best_classes, size=size)) for size, count in (sets or {}).items()
    ]
    null = sum(len(part) for part in parts)
    if plain:
        parts.append(rng.choice(stored_shares(), plain, replace=False))
    shares = np.concatenate(parts)
    n = tight_draws(null if plain else len(shares), tau, alpha) if n is None else n
    scene = Scene(_tree(), shares, np.arange(len(shares)), tau, 10, n, max_set=5)
    return Scenario(name, scene, alpha, judged, **{"weight": 1.2, **other})


def _planted_pixels(rng: np.random.Generator, count: int, tau: float, label: Any) -> NDArray[np.float64]:
    shares = stored_shares()
    inside = label(shares)
    chosen = rng.choice(np.flatnonzero(plantable(shares, inside)), count, replace=True)
    return planted(shares[chosen], inside[chosen], tau)


@lru_cache(maxsize=1)
def _tree() -> cs.Hierarchy:
    return cs.load_hierarchy("camvid")


def store(run: str) -> None:
    """Keep the counts of some pixels of every image of a run."""
    from certiseg.runs.folder import RunFolder

    folder, rng, kept = RunFolder(run), np.random.default_rng(0), []
    for name in folder.finished():
        votes = folder.votes(name, folder.manifest.each_setting()[-1])
        counts = votes.counts.reshape(-1, votes.num_classes)
        unsure = np.flatnonzero(counts.max(axis=1) < votes.n)
        places = [rng.choice(unsure, PER_IMAGE // 2, replace=False), rng.choice(len(counts), PER_IMAGE // 2)]
        kept.append(counts[np.concatenate(places)])
    np.savez_compressed(STORED, counts=np.concatenate(kept))
    print(f"{STORED}: {sum(len(part) for part in kept)} pixels of {len(kept)} images")


if __name__ == "__main__":
    store(sys.argv[1])
