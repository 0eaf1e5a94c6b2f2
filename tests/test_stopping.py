"""Stopping when few pixels are undecided: what counts as such, and what is recorded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg.models.synthetic import SyntheticSegmenter
from certiseg.stats.anytime import anytime_test
from certiseg.stopping import EveryRule, MeasureRule, Standing, UndecidedRule, looks

SETTINGS: dict[str, Any] = {"method": "segcertify", "tau": 0.75, "alpha": 0.05}


def votes_with(hits: list[int], n: int) -> cs.Votes:
    """One row of pixels with so many votes for the candidate, class 0."""
    counts = np.array([[[k, n - k] for k in hits]], np.uint16)
    ranking = np.broadcast_to(np.array([0, 1], np.uint8), counts.shape).copy()
    zero = np.zeros(counts.shape[:2])
    return cs.Votes(zero.astype(np.uint8), zero, ranking, counts, n0=1, n=n, sigma=0.25, stopped=True)


def test_pixels_stand_where_their_present_share_leads() -> None:
    now, end = (anytime_test(n, 0.75).critical(0.05 / 4) for n in (100, 1000))
    assert now is not None
    assert end is not None
    least = -(-end // 10)
    assert least < now - 1
    rule = UndecidedRule(0.1, 1000, settings=SETTINGS)
    assert rule.standing(votes_with([now, now - 1, least, least - 1], 100)) == Standing(1, 1, 2)
    assert rule.standing(votes_with([0, 0, 0, 0], 100)) == Standing(0, 4, 0)
    assert rule.standing(votes_with([1, 1, 1, 0], 1)) == Standing(0, 1, 3), "too few draws: nothing is certified"


def test_the_rule_stops_at_its_share_and_only_the_region_counts() -> None:
    votes, seen = votes_with([100, 100, 84, 0], 100), []
    assert not UndecidedRule(0.2, 1000, settings=SETTINGS, watch=seen.append)(votes)
    assert UndecidedRule(0.25, 1000, settings=SETTINGS)(votes)
    assert seen[0].shares() == {"certified": "50.0%", "hopeless": "25.0%", "undecided": "25.0%"}
    region = np.array([[True, True, False, True]])
    assert UndecidedRule(0.0, 1000, settings=SETTINGS, region=region).standing(votes) == Standing(2, 1, 0)
    with pytest.raises(cs.InputError, match="share"):
        UndecidedRule(1.0, 1000)


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
@pytest.mark.parametrize("correction", ["bonferroni", "holm"])
def test_after_the_last_draw_nothing_is_undecided(method: str, correction: str) -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(19, 0.2), (9, 11))
    model = SyntheticSegmenter(shares, image=rng.random((9, 11, 3), np.float32))
    settings = {"method": method, "correction": correction, "alpha": 0.05}
    hierarchy = cs.load_hierarchy("cityscapes")
    standings: list[Standing] = []
    rule = UndecidedRule(0.0, 120, hierarchy, settings, watch=standings.append)
    votes = cs.sample(model, model.image, sigma=0.25, n=120, stop=rule, stop_every=40)
    certificate = cs.certify(votes, hierarchy, test="anytime", **settings)
    assert standings[-1].certified == int((~certificate.abstained).sum())
    assert votes.n == 120 or standings[-1].undecided == 0
    assert rule.standing(cs.sample(model, model.image, sigma=0.25, n=120)).undecided == 0
    assert all(standing.tested == 99 for standing in standings)
    recorded = {"rule": "undecided", "share": 0.0, "n_max": 120, "method": method, "asked_every": 40}
    assert votes.provenance["stop"] == recorded
    assert votes.stopped


def test_other_rules_are_recorded_by_name() -> None:
    shares = np.full((2, 3, 2), 0.5)
    model = SyntheticSegmenter(shares, image=np.zeros((2, 3, 3), np.float32))
    votes = cs.sample(model, model.image, sigma=0.25, n=60, stop=lambda votes: votes.n >= 30, stop_every=10)
    assert votes.n == 30
    assert "lambda" in votes.provenance["stop"]["rule"]
    assert "stop" not in cs.sample(model, model.image, sigma=0.25, n=3).provenance


def test_every_rule_must_be_content_each_with_its_own_tau_and_method() -> None:
    votes = votes_with([100, 100, 84, 0], 100)
    content = UndecidedRule(0.25, 1000, settings=SETTINGS)
    strict = UndecidedRule(0.2, 1000, settings=SETTINGS)
    elsewhere = UndecidedRule(0.2, 1000, settings=SETTINGS | {"tau": 0.9})
    assert EveryRule((content, content))(votes)
    assert elsewhere(votes), "at tau 0.9 the third pixel is hopeless"
    assert not EveryRule((content, strict))(votes)
    assert not EveryRule((strict, elsewhere))(votes)
    assert EveryRule((content, elsewhere))(votes)
    with pytest.raises(cs.InputError, match="measures"):
        EveryRule((content, MeasureRule(0.1, 1000)))(votes)
    assert [rule["share"] for rule in EveryRule((content, strict)).rule["of"]] == [0.25, 0.2]


@pytest.mark.parametrize("n_max", [1, 63, 64, 65, 200, 1000, 65535])
def test_looks_rise_to_n_max_and_are_never_far_apart(n_max: int) -> None:
    found = looks(n_max)
    assert found[0] == min(64, n_max)
    assert found[-1] == n_max
    assert all(0 < b - a <= max(32, a / 9) for a, b in pairwise(found))
    assert all(look % 32 == 0 for look in found[:-1]), "no batch of 1, 2, ..., 32 ends half full"
    assert len(found) < 100
