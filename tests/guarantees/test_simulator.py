"""The simulator itself: votes have the shares they are said to have, and the truth is told as a person would."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import certiseg as cs

from .coupling import couple, groups_for
from .promises import Cell
from .scenarios import CERTAIN, LEAF, LEVEL_1, ONLY_LEAF, SET_3, TEN_EQUAL, couplings
from .simulate import (
    EXACTLY,
    RAGGED,
    Scene,
    count_false,
    draw_labels,
    draw_predictions,
    draw_votes,
    make_scene,
    spent,
    tight_draws,
)
from .stopping import Stopped

SCENE = make_scene(RAGGED, [(400, LEVEL_1), (400, SET_3)], tau=0.75, n=50, block=2)


def _close(drawn: np.ndarray, shares: np.ndarray, draws: int) -> bool:
    return bool(np.all(abs(drawn - shares) <= 4.5 * np.sqrt(shares * (1 - shares) / draws)))


def test_counts_have_the_shares_of_their_kind() -> None:
    counts = draw_votes(SCENE, np.random.default_rng(0)).counts[0].astype(np.int64)
    for kind, shares in enumerate(SCENE.shares):
        drawn = counts[SCENE.kind == kind].mean(axis=0) / SCENE.n
        assert _close(drawn, shares, SCENE.n * 200)
    np.testing.assert_array_equal(counts[::2], counts[1::2], "pixels of a block share their draws")
    assert len(np.unique(counts[::2], axis=0)) > 100


def test_labels_draw_by_draw_have_the_shares_of_their_kind() -> None:
    labels = SCENE.active[draw_labels(SCENE, np.random.default_rng(0), 300)]
    for kind, shares in enumerate(SCENE.shares):
        drawn = np.bincount(labels[:, SCENE.kind == kind].reshape(-1), minlength=10) / (300 * 400)
        assert _close(drawn, shares, 300 * 200)


def test_selection_varies_between_images() -> None:
    scene = make_scene(RAGGED, [(100, TEN_EQUAL)], tau=0.5, n=20)
    votes = draw_votes(scene, np.random.default_rng(0))
    assert len(np.unique(votes.candidate)) == 10
    assert len(np.unique(votes.gap)) > 2
    assert len(np.unique(draw_predictions(scene, np.random.default_rng(0)).candidate)) > 5


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_false_labels_are_counted_as_a_person_would(method: str) -> None:
    scene = make_scene(RAGGED, [(60, LEAF), (60, ONLY_LEAF), (60, SET_3), (60, CERTAIN)], tau=0.75, n=30, n0=3)
    votes = draw_votes(scene, np.random.default_rng(1))
    certificate = cs.certify(votes, RAGGED, method=method, tau=0.55, alpha=0.9)
    false = certified = 0
    for pixel in range(scene.tested):
        names = certificate.labels_at(0, pixel)
        leaves = {leaf for name in names for leaf in RAGGED.leaves(name)}
        share = sum(scene.shares[scene.kind[pixel], leaf] for leaf in leaves)
        certified += bool(names)
        false += bool(names) and share <= scene.tau + EXACTLY
    assert 0 < false < certified
    assert count_false(scene, certificate) == (false, certified)


@pytest.mark.parametrize("tested", [100, 1000, 100_000])
def test_draws_are_chosen_so_that_alpha_is_nearly_spent(tested: int) -> None:
    n = tight_draws(tested, 0.75, 0.1)
    assert 0.095 <= spent(n, 0.75, 0.1, tested) <= 0.1


def test_coupled_pixels_are_binomial_each() -> None:
    tested, n = 100, 500
    coupling = couple(n, 0.75, tested, groups_for(lambda r: r * 0.1 / (5.2 * tested), tested))
    law = np.zeros(n + 1)
    law[coupling.hits] = coupling.chances * coupling.sizes / tested
    law += coupling.rest * (1 - law.sum())
    np.testing.assert_allclose(law, binom.pmf(np.arange(n + 1), n, 0.75), atol=1e-12)
    assert np.isclose(coupling.rest.sum(), 1)


def test_coupled_pixels_follow_that_law_when_drawn() -> None:
    scenario = couplings()[3]
    rng = np.random.default_rng(0)
    hits = np.concatenate(
        [scenario.draw(scenario.scene, rng).looks(scenario.cells[0])[0].counts[0, :, 0] for _ in range(300)]
    )
    assert abs(hits.mean() - 0.75 * scenario.scene.n) < 5
    assert 0.9 < hits.std() / np.sqrt(scenario.scene.n * 0.75 * 0.25) < 1.1


def test_the_adversary_beats_waiting_to_the_end() -> None:
    scene: Scene = make_scene(RAGGED, [(50, LEAF)], tau=0.75, n=300)
    cell = Cell("segcertify", test="anytime")
    gained = []
    for seed in range(20):
        image = Stopped(scene, np.random.default_rng(seed), alpha=0.1)
        (worst,) = image.looks(cell)
        last = image.votes_at(scene.n)
        assert worst.stopped
        assert worst.counts.sum() == worst.n * scene.tested
        gained.append((worst.counts[..., 0] / worst.n).max() - (last.counts[..., 0] / last.n).max())
    assert np.mean(gained) > 0.01
