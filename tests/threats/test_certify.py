"""Certificates along a threat: range, minimum over the anchors, holes, trade-off with l2, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg import threats
from certiseg.threats.anchors import place_anchors
from certiseg.votes import AnchorVotes

TREE = cs.load_hierarchy("camvid")
METHODS: list[dict[str, Any]] = [
    {"method": "segcertify"},
    {"method": "level", "level": 1},
    {"method": "adaptive", "thresholds": (0, 0.3)},
    {"method": "nested"},
    {"method": "sets"},
]


def votes_at(seed: int, anchors: tuple[float, ...], threat: threats.Threat, sigma: float = 0.0) -> cs.Votes:
    """Votes of 200 draws, others at every anchor, for the same candidates: from hopeless to unanimous."""
    rng, n = np.random.default_rng(seed), 200
    ranking = np.argsort(rng.random((5, 6, len(TREE.classes))), axis=-1)
    most = rng.uniform(0.6, 1.0, (5, 6))
    counts = []
    for _ in anchors:
        lead = np.clip(most + rng.normal(0, 0.05, most.shape), 0.5, 1)
        shares = np.zeros(ranking.shape)
        for rank, part in enumerate((lead, 0.7 * (1 - lead), 0.3 * (1 - lead))):
            np.put_along_axis(shares, ranking[..., rank : rank + 1], part[..., None], axis=-1)
        counts.append(rng.multinomial(n, shares).astype(np.uint16))
    return cs.Votes(
        candidate=ranking[..., 0],
        gap=rng.random((5, 6)),
        ranking=ranking[..., :4],
        counts=counts[0],
        n0=5,
        n=n,
        sigma=sigma,
        classes=TREE.classes,
        threat=threat,
        further=tuple(AnchorVotes(anchor, of) for anchor, of in zip(anchors[1:], counts[1:], strict=True)),
    )


FOG = threats.fog(0.5)
ANCHORS = place_anchors(FOG, 1.0, tau=0.75)


@pytest.mark.parametrize("options", METHODS, ids=lambda o: o["method"])
@pytest.mark.parametrize("correction", ["bonferroni", "holm"])
@given(seed=st.integers(0, 50))
def test_a_label_is_certified_only_where_every_anchor_has_it(options: Any, correction: str, seed: int) -> None:
    votes = votes_at(seed, ANCHORS, FOG)
    cert = cs.certify(votes, TREE, tau=0.75, alpha=0.3, correction=correction, **options)
    assert cert.range == pytest.approx((0, 3 * 0.5 * np.log(2)))
    for alone in votes.by_anchor:
        apart = cs.certify(alone, TREE, tau=0.75, alpha=0.3, correction="bonferroni", **options)
        if correction == "bonferroni":
            assert (apart.vertex[cert.vertex != cs.ABSTAIN] != cs.ABSTAIN).all()
            if options["method"] in ("nested", "sets"):
                better = np.where(apart.vertex == cs.ABSTAIN, 99, apart.level + apart.set_size)
                assert (better <= np.where(cert.vertex == cs.ABSTAIN, 99, cert.level + cert.set_size)).all()
    everywhere = np.all(
        [cs.certify(a, TREE, tau=0.75, alpha=0.3, **options).vertex != cs.ABSTAIN for a in votes.by_anchor], axis=0
    )
    assert (cert.vertex[everywhere] != cs.ABSTAIN).all()


def test_one_anchor_is_the_ordinary_certificate() -> None:
    votes = votes_at(1, (0.0,), FOG)
    plain = cs.certify(replace(votes, threat=threats.l2(), sigma=0.25), TREE, alpha=0.3)
    cert = cs.certify(votes, TREE, alpha=0.3)
    np.testing.assert_array_equal(cert.vertex, plain.vertex)
    assert cert.range == pytest.approx((0, 0.5 * np.log(2)))
    assert (cert.radius, plain.range[1]) == (0.0, plain.radius)
    assert plain.range[0] == 0


def test_at_another_tau_the_range_ends_at_the_first_hole() -> None:
    votes = votes_at(2, ANCHORS, FOG)
    lower = cs.certify(votes, TREE, tau=0.7, alpha=0.3)
    assert lower.range == pytest.approx((0, 0.5 * np.log(0.5 / 0.3)))
    assert lower.covered.used == (0,)
    assert "leave a hole behind t = 0.2554" in lower.claim()
    np.testing.assert_array_equal(lower.vertex, cs.certify(votes.by_anchor[0], TREE, tau=0.7, alpha=0.3).vertex)
    higher = cs.certify(votes, TREE, tau=0.8, alpha=0.3)
    assert higher.range[1] == pytest.approx(ANCHORS[-1] + 0.5 * np.log(0.5 / 0.2))
    assert "hole" not in higher.claim()


def test_gamma_covers_both_signs() -> None:
    gamma = threats.gamma(0.3)
    anchors = place_anchors(gamma, 0.5, tau=0.75)
    cert = cs.certify(votes_at(3, anchors, gamma), TREE, tau=0.75, alpha=0.3)
    assert cert.range == pytest.approx((-3 * 0.2023469, 3 * 0.2023469), abs=1e-6)
    assert "gamma between 0.55 and 1.83" in cert.claim()


def test_a_point_of_the_trade_off_with_l2() -> None:
    votes = votes_at(4, (0.0,), FOG, sigma=0.25)
    wide, both = cs.certify(votes, TREE, alpha=0.3), cs.certify(votes, TREE, alpha=0.3, radius=0.1)
    np.testing.assert_array_equal(wide.vertex, both.vertex)
    assert wide.range[1] > both.range[1] > 0
    assert both.radius == 0.1
    assert "l2 size up to R = 0.1000 before or after it" in both.claim()
    assert "Range against radius" in both.claim()
    assert "R = 0.000: t up to 0.346" in both.claim()
    with pytest.raises(cs.InputError, match="radius must be at most"):
        cs.certify(votes, TREE, alpha=0.3, radius=0.2)
    with pytest.raises(cs.InputError, match="radius must be 0 without pixel noise"):
        cs.certify(replace(votes, sigma=0.0), TREE, alpha=0.3, radius=0.1)
    with pytest.raises(cs.InputError, match="radius must come with a threat"):
        cs.certify(replace(votes, threat=threats.l2()), TREE, alpha=0.3, radius=0.1)


def test_claims_name_the_threat_and_what_is_not_covered() -> None:
    claim = cs.certify(votes_at(5, (0.0,), threats.fog(0.5, airlight=0.7)), TREE, alpha=0.3).claim()
    for words in (
        "for fog of density up to 29 % (every t in [0, 0.3465])",
        "more than half of the model's predictions under a further random fog (t exponential of mean 0.5)",
        "airlight 0.7",
        "before it is rounded to 8 bits",
        "floating point is not covered",
        "It speaks of the smoothed model",
    ):
        assert words in claim
    depth = np.ones((5, 6))
    assert "depth map" in cs.certify(votes_at(5, (0.0,), threats.fog(0.5, depth=depth)), TREE, alpha=0.3).claim()
    several = cs.certify(votes_at(5, ANCHORS, FOG), TREE, alpha=0.3).claim()
    assert "3 of 3 anchors" in several
    assert "n = 200 draws at each anchor" in several


@pytest.mark.parametrize("method", ["segcertify", "nested"])
def test_the_map_of_ranges_reaches_the_end_where_certified(method: str) -> None:
    votes = votes_at(6, ANCHORS, FOG)
    cert = cs.certify(votes, TREE, tau=0.75, alpha=0.3, method=method)
    certified = cert.vertex != cs.ABSTAIN
    if method == "segcertify":
        np.testing.assert_array_equal(cert.radius_map >= cert.range[1], certified)
    assert certified.any()
    assert not certified.all()
    assert "every range of the map holds" in cert.radius_map_statement


def test_votes_at_anchors_must_fit() -> None:
    votes = votes_at(7, ANCHORS, FOG)
    short = AnchorVotes(0.9, votes.counts[:-1])
    wrong = AnchorVotes(0.9, votes.counts + np.uint16(1))
    for further, words in (
        ((short,), "add up"),
        ((wrong,), "add up"),
        ((AnchorVotes(0.0, votes.counts),), "different numbers"),
        ((AnchorVotes(-1.0, votes.counts),), "t must be a number >= 0"),
        ((AnchorVotes(0.9, votes.counts, {5: votes.counts}),), "snapshots must be kept at every anchor"),
    ):
        with pytest.raises(cs.InputError, match=words):
            replace(votes, further=further)
    with pytest.raises(cs.InputError, match="anchors must be left out for l2"):
        replace(votes, threat=threats.l2(), sigma=0.25)


def test_another_threat_or_anchor_is_another_digest() -> None:
    votes = votes_at(8, ANCHORS, FOG)
    moved = (AnchorVotes(ANCHORS[1] + 0.01, votes.further[0].counts), votes.further[1])
    swapped = (replace(votes.further[0], counts=votes.further[1].counts), votes.further[1])
    others = [
        replace(votes, threat=threats.fog(0.6)),
        replace(votes, further=votes.further[:1]),
        replace(votes, further=moved),
        replace(votes, further=swapped),
    ]
    assert len({votes.digest(), *(other.digest() for other in others)}) == 5


@pytest.mark.parametrize("method", ["nested", "sets"])
def test_pages_show_the_worst_anchor_and_the_words_of_the_threat(method: str) -> None:
    from certiseg.chains import chains_of
    from certiseg.report.certificate_report import certificate_report
    from certiseg.viewer.layers import numbers
    from certiseg.viewer.pixel import path_of, sets_of
    from certiseg.viewer.reasons import reason_map

    cert = cs.certify(votes_at(9, ANCHORS, FOG), TREE, tau=0.75, alpha=0.3, method=method)
    hits = chains_of(cert.votes, TREE, cert.settings, None).hits.reshape(-1, 5, 6)
    for row, column in ((0, 0), (2, 3), (4, 5)):
        if method == "sets":
            assert [link["votes"] for link in sets_of(cert, row, column)] == hits[:, row, column].tolist()
        else:
            assert {link["votes"] for link in path_of(cert, row, column)} == set(hits[:, row, column].tolist())
    assert ((reason_map(cert) == 0) == ~cert.abstained).all()
    assert numbers(cert, None)["extent"] == "fog of density up to 64 %"
    page = certificate_report(cert, "street")
    for words in ("for fog of density up to 64 %", "fog of airlight 0.8", "Range of every pixel", "at 3 anchors"):
        assert words in page
    assert "grey levels" not in page
