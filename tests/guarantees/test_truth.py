"""Promises about the truth hold under the worst attack, and wrong rules are caught: a short run of the simulation."""

from __future__ import annotations

import pytest

from certiseg.truth.settings import CalibrationSettings, Score

from . import truth_end_to_end
from .truth_worlds import BROKEN, Rule, World, broken, measure, tight, worlds


@pytest.mark.parametrize("world", worlds(), ids=lambda world: world.name)
def test_the_promise_holds_under_the_worst_attack(world: World) -> None:
    assert measure(world, trials=400).holds


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_fails(rule: Rule) -> None:
    assert measure(broken(rule), trials=1000).holds
    assert not measure(broken(rule), rule=rule, trials=1000).holds


def test_where_images_are_alike_nothing_is_given_away() -> None:
    found = measure(tight(), trials=4000)
    assert found.promised <= found.coverage + 5 * found.error
    assert found.coverage < found.promised + 0.02


@pytest.mark.parametrize("score", ["posterior", "adaptive"])
def test_the_whole_package_keeps_the_promise(score: Score) -> None:
    settings = CalibrationSettings(radius=0.169, risk=(0.3,), score=score)
    found = truth_end_to_end.measure(settings, images=8, calibrations=60, tests=12)
    assert found.holds
    assert found.coverage < found.clean
