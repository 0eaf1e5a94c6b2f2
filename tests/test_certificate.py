"""Certificates: stored and loaded whole, what they say in words, and what they exclude."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg.archive import read_archive, write_archive
from certiseg.certify import NothingCertifiable
from certiseg.hierarchy import hierarchy_from_dict
from tests.conftest import random_votes

TREE = hierarchy_from_dict(
    {
        "name": "small",
        "classes": ["road", "grass", "car", "bus"],
        "levels": {1: {"vehicle": ["car", "bus"]}, 2: {"thing": ["vehicle", "grass"]}},
        "thresholds": [0.1, 0.25],
    },
    source="small",
)
SETTINGS: list[dict[str, Any]] = [
    {"method": "segcertify", "correction": "by"},
    {"method": "level", "level": 1, "correction": "kfwer", "k": 3},
    {"method": "adaptive", "thresholds": (0.1, 0.5)},
    {"method": "adaptive"},
    {"method": "nested", "correction": "holm", "test": "anytime"},
    {"method": "sets", "max_set": 2},
]


def certify(*arguments: Any, **options: Any) -> cs.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        return cs.certify(*arguments, **options)


def votes_of(counts: Any, ranking: Any, **changes: Any) -> cs.Votes:
    """Votes of one row of pixels."""
    counts, ranking = np.array([counts], np.uint16), np.array([ranking], np.uint8)
    fields = {"n0": 5, "n": int(counts[0, 0].sum()), "sigma": 0.25}
    return cs.Votes(ranking[..., 0].copy(), np.ones(counts.shape[:2]), ranking, counts, **{**fields, **changes})


def fully_ranked(votes: cs.Votes) -> cs.Votes:
    """The same counts with all classes ranked by them."""
    ranking = np.argsort(-votes.counts.astype(int), axis=-1, kind="stable").astype(np.uint8)
    return replace(votes, ranking=ranking, candidate=ranking[..., 0].copy())


@pytest.mark.parametrize("options", SETTINGS, ids=lambda o: o["method"])
@pytest.mark.parametrize("with_region", [False, True])
def test_a_certificate_survives_its_file(options: dict[str, Any], with_region: bool, tmp_path: Path) -> None:
    votes = fully_ranked(random_votes(7, num_classes=4, n=40, size=(5, 6), classes=TREE.classes))
    region = np.random.default_rng(0).random((5, 6)) < 0.7 if with_region else None
    cert = certify(votes, TREE, tau=0.6, alpha=0.1, region=region, **options)
    cert.save(tmp_path / "c.npz")
    again = cs.load_certificate(tmp_path / "c.npz")
    for name in ("vertex", "level", "set_size", "radius_map", "abstained"):
        np.testing.assert_array_equal(getattr(again, name), getattr(cert, name), err_msg=name)
    assert (again.settings, again.radius, again.critical) == (cert.settings, cert.radius, cert.critical)
    assert (again.claim(), again.radius_map_statement) == (cert.claim(), cert.radius_map_statement)
    assert again.hierarchy.as_dict() == cert.hierarchy.as_dict()
    assert again.hierarchy.thresholds == TREE.thresholds
    assert again.votes.digest() == votes.digest()
    assert (again.region is None) == (region is None)
    assert (again.tested, again.abstain_rate) == (cert.tested, cert.abstain_rate)
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "c.npz").read_bytes()


def test_labels_names_masks_and_rates() -> None:
    counts = [[100, 0, 0, 0], [0, 0, 60, 40], [0, 30, 35, 35], [25, 25, 25, 25], [50, 0, 50, 0]]
    ranking = [[0, 1, 2, 3], [2, 3, 0, 1], [2, 3, 1, 0], [0, 1, 2, 3], [0, 2, 1, 3]]
    votes = votes_of(counts, ranking)
    nested = cs.certify(votes, TREE, method="nested")
    assert [nested.labels_at(0, j) for j in range(5)] == [("road",), ("vehicle",), ("thing",), (), ()]
    assert nested.level.tolist() == [[0, 1, 2, 2, 2]]
    assert nested.set_size.tolist() == [[0] * 5]
    assert nested.abstained.tolist() == [[False, False, False, True, True]]
    assert nested.abstain_rate == 0.4
    assert nested.within("vehicle").tolist() == [[False, True, False, False, False]]
    assert nested.within("thing").tolist() == [[False, True, True, False, False]]
    assert nested.within("road").tolist() == [[True, False, False, False, False]]
    assert nested.excludes("car").tolist() == [[True, False, False, False, False]]
    assert nested.excludes("road").tolist() == [[False, True, True, False, False]]
    assert nested.excludes("grass").tolist() == [[True, True, False, False, False]]

    sets = cs.certify(votes, TREE, method="sets", max_set=3)
    assert [sets.labels_at(0, j) for j in range(5)] == [
        ("road",),
        ("car", "bus"),
        ("car", "bus", "grass"),
        (),
        ("road", "car"),
    ]
    assert sets.set_size.tolist() == [[1, 2, 3, 0, 2]]
    assert [TREE.vertices[v] for v in sets.vertex[0, :3]] == ["road", "vehicle", "thing"]
    assert sets.vertex[0, 3:].tolist() == [cs.ABSTAIN, cs.ROOT]
    assert sets.abstained.tolist() == [[False, False, False, True, False]]
    assert sets.within("vehicle").tolist() == [[False, True, False, False, False]]
    assert sets.excludes("grass").tolist() == [[True, True, False, False, True]]
    assert sets.excludes("thing").tolist() == [[True, False, False, False, False]]
    with pytest.raises(cs.InputError, match="vertex must be one of small's, got 'tram'"):
        sets.excludes("tram")


def test_the_claim_says_what_each_correction_promises() -> None:
    votes = votes_of([[100, 0, 0, 0]] * 20, [[0, 1, 2, 3]] * 20)
    words = {
        "bonferroni": "With probability at least 0.999, at every certified pixel at once among 20 pixels of the image",
        "holm": "With probability at least 0.999, at every certified pixel at once among 20 pixels of the image",
        "kfwer": "With probability at least 0.999, for all but at most 2 of the certified among 20 pixels of the image",
        "by": "the expected share of false ones is at most 0.001",
    }
    for correction, promise in words.items():
        text = cs.certify(votes, method="segcertify", correction=correction, k=3).claim()
        assert promise in text
        assert "more than half of the model's predictions under Gaussian noise of sigma = 0.25 lie" in text
        assert "Certifying the perturbed image anew may abstain" in text
        assert "the same output" not in text
    assert "at every certified pixel at once" in cs.certify(votes, method="segcertify", correction="kfwer", k=1).claim()


def test_the_claim_says_what_the_radius_means_in_grey_levels() -> None:
    votes = votes_of([[100, 0, 0, 0]] * 20, [[0, 1, 2, 3]] * 20)
    cert = cs.certify(votes, method="segcertify", tau=0.75)
    single, spread = cert.radius * 255, cert.radius * 255 / np.sqrt(60)
    assert "R = 0.1686 " in cert.claim()
    assert single == pytest.approx(42.998, abs=1e-3), "below 43, so 43.0 would be too much"
    assert "R is 42.9 grey levels of 255 if a single value changes" in cert.claim()
    assert spread == pytest.approx(5.5511, abs=1e-4)
    assert "5.551 grey levels RMS if all 60 values do" in cert.claim()


def test_the_claim_names_sets_regions_and_stopping() -> None:
    votes = votes_of([[100, 0, 0, 0]] * 20, [[0, 1, 2, 3]] * 20)
    region = np.zeros((1, 20), bool)
    region[0, :7] = True
    text = cs.certify(votes, method="sets", region=region).claim()
    assert "inside the certified set of classes" in text
    assert "among 7 pixels of a region fixed before the votes" in text
    assert "were fixed beforehand" in text
    stopped = replace(votes, stopped=True)
    text = cs.certify(stopped, TREE, test="anytime").claim()
    assert "may have been stopped by looking at the votes" in text
    assert "under the certified label" in text


def test_saving_votes_beside_stores_them_once(tmp_path: Path) -> None:
    votes = random_votes(7, num_classes=4, n=40, size=(40, 50))
    votes.save(tmp_path / "votes.npz")
    cert = certify(votes, TREE, alpha=0.1)
    cert.save(tmp_path / "inside.npz")
    cert.save(tmp_path / "beside.npz", votes_path="votes.npz")
    assert (tmp_path / "beside.npz").stat().st_size < (tmp_path / "inside.npz").stat().st_size / 3
    again = cs.load_certificate(tmp_path / "beside.npz")
    np.testing.assert_array_equal(again.vertex, cert.vertex)
    np.testing.assert_array_equal(again.votes.counts, votes.counts)


def test_other_votes_beside_are_refused_on_loading(tmp_path: Path) -> None:
    votes = random_votes(7, num_classes=4, n=40, size=(4, 5))
    votes.save(tmp_path / "votes.npz")
    certify(votes, TREE, alpha=0.1).save(tmp_path / "c.npz", votes_path="votes.npz")
    random_votes(8, num_classes=4, n=40, size=(4, 5)).save(tmp_path / "votes.npz")
    with pytest.raises(cs.InputError, match=r"c\.npz: its votes must be those it was computed from"):
        cs.load_certificate(tmp_path / "c.npz")


def test_damaged_and_forged_certificates_are_one_sentence(tmp_path: Path) -> None:
    votes = random_votes(7, num_classes=4, n=40, size=(4, 5))
    certify(votes, TREE, alpha=0.1).save(tmp_path / "c.npz")
    with pytest.raises(cs.InputError, match="certificate must be a file"):
        cs.load_certificate(tmp_path / "missing.npz")
    content = (tmp_path / "c.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(cs.InputError, match=r"cut\.npz: must be an undamaged certificate file"):
        cs.load_certificate(tmp_path / "cut.npz")
    stored = read_archive(tmp_path / "c.npz", kind="certificate", version=1)
    meta, arrays = stored.meta, stored.arrays
    for odd_meta, odd_arrays in (
        ({**meta, "settings": {**meta["settings"], "odd": 1}}, arrays),
        ({**meta, "settings": None}, arrays),
        ({**meta, "hierarchy": {**meta["hierarchy"], "levels": {"one": {}}}}, arrays),
        ({**meta, "hierarchy": {**meta["hierarchy"], "levels": []}}, arrays),
        ({**meta, "hierarchy": {**meta["hierarchy"], "classes": ["a"]}}, arrays),
        ({**meta, "radius": "far"}, arrays),
        ({**meta, "votes": None}, arrays),
        ({**meta, "votes": {**meta["votes"], "n": 41}}, arrays),
        ({**meta, "votes_path": 3}, arrays),
        (meta, {**arrays, "vertex": arrays["vertex"][:2]}),
        (meta, {**arrays, "region": np.ones((2, 2), bool)}),
        (meta, {name: array for name, array in arrays.items() if name != "level"}),
        (meta, {name: array for name, array in arrays.items() if name != "votes.counts"}),
    ):
        write_archive(tmp_path / "odd.npz", kind="certificate", version=1, meta=odd_meta, arrays=odd_arrays)
        with pytest.raises(cs.InputError, match=r"odd\.npz"):
            cs.load_certificate(tmp_path / "odd.npz")
