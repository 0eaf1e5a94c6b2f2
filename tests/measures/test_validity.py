"""Simulated measures with known laws: no bound exceeds the truth more often than alpha allows, and wrong rules do."""

from __future__ import annotations

from pathlib import Path

import pytest

from certiseg.stats.anytime import anytime_test
from tests.guarantees import measures_report
from tests.guarantees.measures_worlds import (
    BROKEN,
    BROKEN_AT_ANCHORS,
    TIGHT,
    World,
    fewer,
    measure,
    ours,
    ours_at_anchors,
    promised,
    stopped,
    stopped_worlds,
    worlds,
    wrong,
)

TRIALS = 600


@pytest.mark.parametrize("world", worlds(), ids=lambda world: world.name)
def test_no_bound_exceeds_the_truth_more_often_than_alpha(world: World) -> None:
    assert measure(world, ours if world.anchors == 1 else ours_at_anchors, TRIALS).holds


@pytest.mark.parametrize("world", stopped_worlds()[:2], ids=lambda world: world.name)
def test_anytime_bounds_hold_against_an_adversary(world: World) -> None:
    assert measure(world, stopped(anytime_test), TRIALS).holds


@pytest.mark.parametrize("name", BROKEN)
def test_wrong_rules_are_caught(name: str) -> None:
    assert not measure(World(), BROKEN[name], TRIALS).holds


@pytest.mark.parametrize("name", BROKEN_AT_ANCHORS)
def test_wrong_rules_over_anchors_are_caught(name: str) -> None:
    assert not measure(World(anchors=3), BROKEN_AT_ANCHORS[name], TRIALS).holds


def test_one_count_fewer_is_caught_where_the_test_is_tight() -> None:
    assert measure(TIGHT, ours, TRIALS).holds
    assert not measure(TIGHT, fewer(1), TRIALS).holds


def test_the_report_is_written(tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    assert measures_report.main(["--trials", "3", "--out", str(out)]) == 1, "3 trials catch nothing"
    text = out.read_text("utf-8")
    assert "broken rule not caught" in text
    assert text.count("| 3 |") >= len(wrong(0)) + len(promised(0)) - len(stopped_worlds())
