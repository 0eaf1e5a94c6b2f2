"""The whole way: an image, its noise, a segmenter with known shares, `cs.sample`, selection, a certificate."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

import certiseg as cs
from certiseg.models.synthetic import SyntheticSegmenter

from .promises import Sampled, Scenario
from .scenarios import CERTAIN, LEAF, NONE_FALSE, ONLY_LEAF, ONLY_LEVEL_1, ONLY_LEVEL_2, every, radii, scenario
from .simulate import Scene, count_false, tight_draws

SIDE = 10
"""Images of 10 x 10 pixels."""


@lru_cache(maxsize=8)
def segmenter_of(scene: Scene) -> SyntheticSegmenter:
    """A model that gives each class of each pixel its share under noise."""
    shares = scene.shares[scene.kind].reshape(SIDE, SIDE, -1)
    return SyntheticSegmenter(shares, sigma=scene.sigma, class_names=scene.hierarchy.classes)


def sample_image(scene: Scene, rng: np.random.Generator, *, stop: Callable[[cs.Votes], bool] | None = None) -> Sampled:
    """One image sampled with a seed of its own, in batches that leave a rest."""
    model = segmenter_of(scene)
    votes = cs.sample(
        model,
        model.image,
        sigma=scene.sigma,
        n0=scene.n0,
        n=scene.n,
        seed=int(rng.integers(2**62)),
        batch_size=20,
        max_set=scene.max_set,
        stop=stop,
        stop_every=20,
    )
    return Sampled(votes)


def sample_until_false(scene: Scene, rng: np.random.Generator, *, alpha: float) -> Sampled:
    """Sampling that is stopped as soon as some label would be falsely certified."""

    def stop(votes: cs.Votes) -> bool:
        if votes.n < 60:
            return False
        certificate = cs.certify(votes, scene.hierarchy, tau=scene.tau, alpha=alpha, correction="holm", test="anytime")
        return count_false(scene, certificate)[0] > 0

    return sample_image(scene, rng, stop=stop)


def end_to_end_scenarios() -> list[Scenario]:
    """Tiny images through the public functions."""
    kinds = [(40, CERTAIN), (20, ONLY_LEAF), (20, ONLY_LEVEL_1), (20, ONLY_LEVEL_2)]
    half, alpha = [(50, CERTAIN), (50, LEAF)], 0.1
    judged = (*every(), *radii("segcertify", "nested"))
    whole = {"draw": sample_image, "weight": 0.5}
    chains = every("nested", "adaptive", "level", level=2)
    return [
        scenario("end to end: leaf at tau", [(100, LEAF)], judged, spends=NONE_FALSE, **whole),
        scenario("end to end: 40 % certain, levels at tau", kinds, chains, n=tight_draws(60, 0.75, alpha), **whole),
        scenario(
            "end to end, stopped at a false label",
            half,
            every(test="anytime"),
            n=300,
            draw=partial(sample_until_false, alpha=alpha),
            weight=0.3,
        ),
    ]
