"""The synthetic segmenter draws each class with the share it was given."""

from __future__ import annotations

import numpy as np
import pytest

import certiseg as cs
from certiseg.models.synthetic import SyntheticSegmenter, synthetic_scene


def test_observed_shares_are_the_given_ones() -> None:
    shares = np.broadcast_to([0.5, 0.3, 0.15, 0.05, 0.0], (20, 20, 5))
    model = SyntheticSegmenter(shares)
    votes = cs.sample(model, model.image, sigma=0.25, n0=1, n=100)
    observed = votes.counts.sum((0, 1)) / votes.counts.sum()
    assert np.allclose(observed, shares[0, 0], atol=4 * 0.5 / np.sqrt(40_000))
    assert observed[4] == 0


def test_it_is_a_function_of_the_image() -> None:
    scene = synthetic_scene(height=24, width=32)
    assert np.array_equal(scene.predict(scene.image), scene.predict(scene.image))
    assert scene.fingerprint() == synthetic_scene(height=24, width=32).fingerprint()
    assert scene.fingerprint() != synthetic_scene(height=24, width=32, seed=1).fingerprint()


def test_certified_labels_are_the_scene() -> None:
    scene = cs.load_model("synthetic", height=24, width=32)
    votes = cs.sample(scene, scene.image, sigma=0.25, n0=5, n=100)  # type: ignore[attr-defined]
    certificate = cs.certify(votes, cs.load_hierarchy("camvid"), method="segcertify")
    certified = certificate.vertex >= 0
    assert 0.2 < certified.mean() < 1
    assert np.array_equal(certificate.vertex[certified], votes.candidate[certified])


@pytest.mark.parametrize("shares", [np.ones((2, 2, 2)), -np.ones((2, 2, 1)), np.ones(3)])
def test_shares_that_are_none(shares: np.ndarray) -> None:
    with pytest.raises(cs.InputError, match="add up to 1"):
        SyntheticSegmenter(shares)


def test_another_image_is_refused() -> None:
    with pytest.raises(cs.InputError, match="own scene of size"):
        synthetic_scene(height=24, width=32).predict(np.zeros((5, 5, 3), np.uint8))
