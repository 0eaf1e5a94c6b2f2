"""Every method and correction keeps its promise when n was fixed beforehand, on scenes that come close to alpha."""

from __future__ import annotations

import pytest

from .end_to_end import end_to_end_scenarios
from .promises import Scenario, failures, measure
from .scenarios import ALL, CHAIN_CORRECTIONS, CORRECTIONS, anytime_scenarios, fixed_scenarios

SCENARIOS = fixed_scenarios()
IMAGES = {"leaf at tau": 500, "100,000 pixels, leaf at tau": 10, "100,000 pixels, 90 % certain": 10}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_promises_hold(scenario: Scenario) -> None:
    judged = scenario if scenario.name == "leaf at tau" else scenario.essential()
    assert not failures(measure(judged, images=IMAGES.get(scenario.name, scenario.images(300))))


def test_every_allowed_way_of_certifying_is_judged() -> None:
    judged = {
        (cell.method, cell.correction, cell.test)
        for scenario in (*SCENARIOS, *anytime_scenarios(), *end_to_end_scenarios())
        for cell in scenario.cells
    }
    assert judged == {
        (method, correction, test)
        for method in ALL
        for correction in (CHAIN_CORRECTIONS if method in ("nested", "sets") else CORRECTIONS)
        for test in ("fixed", "anytime")
    }


def test_scenes_reach_from_a_hundred_to_a_hundred_thousand_pixels() -> None:
    tested = {scenario.scene.tested for scenario in SCENARIOS}
    assert min(tested) <= 100
    assert max(tested) >= 100_000
