"""Noise, sampling, selection and certificate together keep the promise on images with known shares."""

from __future__ import annotations

import numpy as np
import pytest

import certiseg as cs

from .end_to_end import end_to_end_scenarios, sample_image
from .promises import Scenario, failures, measure

SCENARIOS = end_to_end_scenarios()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_promises_hold(scenario: Scenario) -> None:
    assert not failures(measure(scenario.essential(), images=scenario.images(240)))


def test_votes_have_the_shares_of_the_scene() -> None:
    scene = SCENARIOS[1].scene
    rng = np.random.default_rng(0)
    votes = [sample_image(scene, rng).looks(SCENARIOS[1].cells[0])[0] for _ in range(20)]
    total = sum(v.counts.reshape(scene.tested, -1).astype(np.int64) for v in votes)
    for kind in range(len(scene.shares)):
        draws = 20 * scene.n * int((scene.kind == kind).sum())
        drawn = total[scene.kind == kind].sum(axis=0) / draws
        error = np.sqrt(scene.shares[kind] * (1 - scene.shares[kind]) / draws)
        assert np.all(abs(drawn - scene.shares[kind]) <= 4.5 * error)


def test_stopped_votes_are_marked_and_refused_by_the_fixed_test() -> None:
    stopped = SCENARIOS[2]
    (votes,) = stopped.draw(stopped.scene, np.random.default_rng(0)).looks(stopped.cells[0])
    assert votes.stopped
    with pytest.raises(cs.InputError, match="stopped by looking"):
        cs.certify(votes, stopped.scene.hierarchy, method="segcertify", test="fixed")
