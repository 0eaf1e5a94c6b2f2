"""Promises hold on pixels whose class shares are those of real votes, and the planting does what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from .broken import broken_variants
from .promises import Cell, Scenario, failures, measure
from .real import best_classes, plantable, planted, real_scenarios, stored_shares, vertex_classes
from .scenarios import ALL, CHAIN_CORRECTIONS, CORRECTIONS

SCENARIOS = real_scenarios()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_promises_hold(scenario: Scenario) -> None:
    assert not failures(measure(scenario.essential(), images=scenario.images(50)))


def test_every_allowed_way_of_certifying_is_judged_on_real_votes() -> None:
    judged = {(cell.method, cell.correction, cell.test) for scenario in SCENARIOS for cell in scenario.cells}
    assert judged == {
        (method, correction, test)
        for method in ALL
        for correction in (CHAIN_CORRECTIONS if method in ("nested", "sets") else CORRECTIONS)
        for test in ("fixed", "anytime")
    }


def test_stored_votes_are_of_many_kinds() -> None:
    shares = stored_shares()
    assert shares.shape[1] == 31
    assert len(shares) >= 2_000
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares.max(axis=1) == 1).any(), "pixels that the model is sure of"
    assert ((shares > 0).sum(axis=1) >= 5).any(), "pixels that it is not"
    assert len(np.unique(shares.argmax(axis=1))) >= 8


@pytest.mark.parametrize("tau", [0.5, 0.75, 0.9])
def test_planted_pixels_are_exactly_at_tau_and_keep_their_proportions(tau: float) -> None:
    shares = stored_shares()
    for inside in (
        *(vertex_classes(shares, level) for level in range(4)),
        *(best_classes(shares, m) for m in (1, 2, 3)),
    ):
        able = plantable(shares, inside)
        before, mask = shares[able], inside[able]
        after = planted(before, mask, tau)
        np.testing.assert_allclose(np.where(mask, after, 0).sum(axis=1), tau, atol=1e-12)
        np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-12)
        for part in (mask, ~mask):
            kept = np.where(part, before, 0) / np.where(part, before, 0).sum(axis=1, keepdims=True)
            then = np.where(part, after, 0) / np.where(part, after, 0).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(then, kept, atol=1e-12)


@pytest.mark.parametrize("name", ["alpha instead of alpha / N", "n - n0 trials in the test, hits over n"])
def test_a_wrong_rule_is_caught_on_real_votes(name: str) -> None:
    wrong = next(broken for broken in broken_variants() if broken.name == name)
    scenario = replace(SCENARIOS[0], cells=(Cell("segcertify"),), spends=())
    (outcome,) = measure(scenario, images=60, certify=wrong.certify)
    assert not outcome.holds, f"{outcome.error:.3f} stays below {outcome.bound:.3f}"
