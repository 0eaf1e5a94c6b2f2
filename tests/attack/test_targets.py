"""Targets: the weakest certified pixel and patch, and the classes that certificates allow, as a person would say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import certiseg as cs
from certiseg.attack.targets import PATCH, allowed_classes, target_of

from ..conftest import random_votes
from .small import certificate


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_allowed_classes_are_those_of_the_certified_label(method: str) -> None:
    hierarchy = cs.load_hierarchy("camvid")
    rng = np.random.default_rng(0)
    shares = 0.9 * np.eye(31)[rng.integers(0, 31, 42)] + 0.1 * rng.dirichlet(np.full(31, 0.2), 42)
    labels = np.stack([rng.choice(31, 200, p=share) for share in shares], axis=1).reshape(200, 6, 7)
    posteriors = np.moveaxis(np.eye(31)[labels[:5]], -1, 1)
    votes = cs.Votes.from_predictions(posteriors, labels, sigma=0.25, classes=hierarchy.classes)
    made = cs.certify(votes, hierarchy, method=method, alpha=0.9, tau=0.5)
    allowed = allowed_classes(made)
    for row, column in np.ndindex(6, 7):
        leaves = {int(leaf) for name in made.labels_at(row, column) for leaf in hierarchy.leaves(name)}
        assert set(np.flatnonzero(allowed[row, column])) == leaves
    assert allowed.any(axis=-1).any()


def test_the_weakest_pixel_has_the_fewest_votes_of_all_certified() -> None:
    made = certificate()
    target = target_of(made, "pixel")
    assert target.tested == 1
    hits = made.votes.counts.max(axis=-1)
    certified = made.vertex >= 0
    assert hits[target.pixels][0] == hits[certified].min() < hits[certified].max()
    assert (target.pixels & certified).sum() == 1


def test_the_patch_has_the_most_misses_of_all_patches() -> None:
    made = certificate()
    target = target_of(made, "patch")
    certified = made.vertex >= 0
    misses = np.where(certified, 1 + made.votes.n - made.votes.counts.max(axis=-1), 0)
    sums = {
        (row, column): misses[row : row + PATCH, column : column + PATCH].sum()
        for row in range(made.votes.size[0] - PATCH + 1)
        for column in range(made.votes.size[1] - PATCH + 1)
    }
    rows, columns = np.nonzero(target.pixels)
    assert misses[target.pixels].sum() == max(sums.values())
    assert rows.max() - rows.min() < PATCH
    assert columns.max() - columns.min() < PATCH
    assert not (target.pixels & ~certified).any()


def test_images_smaller_than_a_patch_are_one_patch() -> None:
    votes = random_votes(1, num_classes=4, n=60, size=(5, 9))
    made = cs.certify(votes, method="sets", alpha=0.9, tau=0.5)
    assert np.array_equal(target_of(made, "patch").pixels, target_of(made, "all").pixels)


def test_a_certificate_without_a_certified_pixel_is_refused() -> None:
    made = certificate()
    empty = replace(made, vertex=np.full_like(made.vertex, cs.ABSTAIN))
    with pytest.raises(cs.InputError, match="certified pixel to be attacked"):
        target_of(empty, "all")
