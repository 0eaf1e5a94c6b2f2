"""Anchors cover a range without holes, and the range ends at the first one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certiseg import threats
from certiseg.errors import InputError
from certiseg.stats.binomial import binomial_test
from certiseg.threats.anchors import MOST_ANCHORS, covered, place_anchors, reach_table, require_anchors


@pytest.mark.parametrize("threat", [threats.dark(0.5), threats.gamma(0.3)], ids=lambda t: t.name)
@given(tau=st.floats(0.55, 0.99), ranges=st.floats(0.01, 60))
def test_anchors_cover_the_range_they_were_placed_for(threat: threats.Threat, tau: float, ranges: float) -> None:
    low, high = threat.range(tau)
    up_to = ranges * high
    anchors = place_anchors(threat, up_to, tau=tau)
    found = covered(anchors, low, high)
    assert anchors[0] == 0
    assert found.used == tuple(range(len(anchors)))
    assert found.high >= up_to * (1 - 1e-8)
    assert found.low == pytest.approx(-found.high if threat.name == "gamma" else 0)
    fewer = covered(anchors[: -2 if threat.name == "gamma" else -1], low, high) if len(anchors) > 2 else None
    assert fewer is None or fewer.high < up_to, "no anchor is wasted"


@given(ranges=st.integers(1, 64), scale=st.floats(0.01, 10))
def test_a_whole_number_of_ranges_needs_as_many_anchors(ranges: int, scale: float) -> None:
    threat = threats.fog(scale)
    assert len(place_anchors(threat, ranges * threat.range(0.75)[1], tau=0.75)) == ranges


@pytest.mark.parametrize("sigma", [0.25, 0.35, 0.7])
def test_anchors_are_placed_for_the_noise_as_it_is_drawn(sigma: float) -> None:
    """In 32 bits 0.35 and 0.7 are less than in 64, and beside a radius the range shortens with them."""
    fog, radius = threats.fog(0.5), 0.3 * sigma
    anchors = place_anchors(fog, 1.0, tau=0.75, radius=radius, sigma=sigma)
    low, high = fog.range(0.75, radius, min(sigma, float(np.float32(sigma))))
    found = covered(anchors, low, high)
    assert found.used == tuple(range(len(anchors)))
    assert found.high >= 1.0


def test_ranges_end_at_the_first_hole() -> None:
    anchors = (0.0, 1.0, 2.0, 3.5)
    assert covered(anchors, 0, 1.0).high == 3.0
    assert covered(anchors, 0, 1.0).used == (0, 1, 2)
    assert covered(anchors, 0, 0.9).high == 0.9
    assert covered(anchors, 0, 1.5).used == (0, 1, 2, 3)
    both = (0.0, 2.0, -2.0, 4.5, -4.0)
    found = covered(both, -1.0, 1.0)
    assert (found.low, found.high, found.used) == (-5.0, 3.0, (0, 1, 2, 4))


def test_a_range_that_needs_too_many_anchors_names_a_scale_that_would_do() -> None:
    for threat in (threats.fog(0.5), threats.gamma(0.1)):
        with pytest.raises(InputError, match="up_to must need at most 64 anchors") as caught:
            place_anchors(threat, 60.0, tau=0.75)
        scale = float(str(caught.value).rsplit("a scale of ", 1)[1].split()[0])
        assert len(place_anchors(threats.named(threat.name, scale), 60.0, tau=0.75)) <= MOST_ANCHORS
        with pytest.raises(InputError, match="at most 64"):
            place_anchors(threats.named(threat.name, 0.95 * scale), 60.0, tau=0.75)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: place_anchors(threats.l2(), 1, tau=0.75), "up_to must come with a threat"),
        (lambda: place_anchors(threats.fog(1), 0, tau=0.75), "up_to must be a positive number, got 0"),
        (lambda: place_anchors(threats.fog(1), 1, tau=0.5), "tau must be above 0.5"),
        (lambda: require_anchors(threats.fog(1), (0.0, 0.0)), "different numbers"),
        (lambda: require_anchors(threats.fog(1), (0.0, -1.0)), "t must be a number >= 0"),
        (lambda: require_anchors(threats.l2(), (0.0, 1.0)), "anchors must be left out for l2"),
    ],
)
def test_bad_anchors_are_one_sentence(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_tables_of_ranges_per_hits() -> None:
    test, fog = binomial_test(200, 0.75), threats.fog(0.5)
    alone = reach_table(test, fog, anchors=(0.0,), radius=0.0, sigma=0.0, error=1e-4)
    bounds = test.lower_bounds(1e-4)
    np.testing.assert_allclose(alone, np.maximum(0, -0.5 * np.log(2 * (1 - bounds))), atol=1e-12)
    anchors = place_anchors(fog, 1.0, tau=0.75)
    several = reach_table(test, fog, anchors=anchors, radius=0.0, sigma=0.0, error=1e-4)
    linked = alone >= anchors[1]
    np.testing.assert_allclose(several[linked], anchors[-1] + alone[linked])
    np.testing.assert_allclose(several[~linked], alone[~linked])
