"""Scores against loops over pixels, and mean IoU against torchmetrics."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import isnan, log
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.classification import MulticlassJaccardIndex

import certiseg as cs
from certiseg.certify import NothingCertifiable
from certiseg.hierarchy import Hierarchy, hierarchy_from_dict
from certiseg.scores import boundary, score_prediction, sum_pixels
from tests.conftest import random_votes, tree_documents

METHODS = ("segcertify", "level", "adaptive", "nested", "sets")


def certify(*arguments: Any, **options: Any) -> cs.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        return cs.certify(*arguments, **options)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[cs.Certificate], list[np.ndarray]]:
    """Certificates of a few images by one method over one tree, and ground truth with void."""
    tree = hierarchy_from_dict(draw(tree_documents()), source="random")
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    method = draw(st.sampled_from(METHODS))
    options = {"level": int(rng.integers(tree.num_levels)), "thresholds": (0.25,)[: tree.num_levels - 1]}
    certificates, labels = [], []
    for _ in range(draw(st.integers(1, 3))):
        size = (int(rng.integers(1, 5)), int(rng.integers(1, 6)))
        votes = random_votes(int(rng.integers(2**32)), num_classes=tree.num_classes, n=20, size=size)
        if rng.random() < 0.8:
            votes = replace(votes, prediction=rng.integers(0, tree.num_classes, size).astype(np.uint8))
        region = rng.random(size) < 0.7
        region[0, 0] = True
        used = region if rng.random() < 0.5 else None
        certificates.append(certify(votes, tree, method=method, tau=0.5, alpha=0.3, region=used, **options))
        label = np.where(rng.random(size) < 0.5, votes.candidate, rng.integers(0, tree.num_classes, size))
        labels.append(np.where(rng.random(size) < rng.choice([0.0, 0.2, 1.0], p=[0.4, 0.5, 0.1]), 255, label))
    return certificates, labels


def covered(cert: cs.Certificate, row: int, column: int) -> set[int]:
    """The classes under what is certified at a pixel."""
    tree = cert.hierarchy
    return {
        y for y in range(tree.num_classes) for name in cert.labels_at(row, column) if tree.members[tree.id(name), y]
    }


def by_the_book(certificates: list[cs.Certificate], labels: list[np.ndarray], masks: Any = None) -> dict[str, Any]:
    """Every score of section 7, pixel after pixel."""
    tree, method = certificates[0].hierarchy, certificates[0].settings.method
    pixels: list[tuple[int, bool, bool, float, int, int | None, int, bool | None]] = []
    for number, (cert, label) in enumerate(zip(certificates, labels, strict=True)):
        for i, j in np.ndindex(label.shape):
            if label[i, j] == 255 or (cert.region is not None and not cert.region[i, j]):
                continue
            if masks is not None and not masks[number][i, j]:
                continue
            truth, names = int(label[i, j]), cert.labels_at(i, j)
            certified = bool(names)
            if method == "sets":
                right, generality = tree.vertices[truth] in names, max(len(names), 1)
            else:
                stand_in = tree.ancestor(truth, int(cert.level[i, j]))
                right = certified and int(cert.vertex[i, j]) == stand_in
                generality = tree.generality(names[0]) if certified else 1
            gain = (1 - log(generality) / log(tree.num_classes)) if right else 0.0
            claimed = (
                tree.id(names[0]) if certified and len(names) == 1 and tree.level_of[tree.id(names[0])] == 0 else None
            )
            agrees = None if cert.votes.prediction is None else bool(cert.votes.prediction[i, j] in covered(cert, i, j))
            pixels.append((truth, certified, right, gain, int(cert.level[i, j]), claimed, generality, agrees))
    total, present = len(pixels), sorted({p[0] for p in pixels})

    def mean(values: list[float]) -> float:
        return sum(values) / len(values) if values else float("nan")

    intersections = {c: sum(p[2] for p in pixels if p[0] == c) for c in range(tree.num_classes)}
    unions = {c: sum(p[0] == c or p[5] == c for p in pixels) for c in range(tree.num_classes)}
    return {
        "cig": mean([p[3] for p in pixels]),
        "ccig": mean([mean([p[3] for p in pixels if p[0] == c]) for c in present]),
        "abstain": mean([not p[1] for p in pixels]),
        "class_abstain": mean([mean([not p[1] for p in pixels if p[0] == c]) for c in present]),
        "accuracy": mean([p[2] for p in pixels]),
        "wrong": mean([p[1] and not p[2] for p in pixels]),
        "set_size": mean([p[6] for p in pixels if p[1]]),
        "agreement": mean([p[7] for p in pixels if p[1] and p[7] is not None]),
        "miou": mean([intersections[c] / unions[c] for c in range(tree.num_classes) if unions[c]]),
        "per_level": [
            tuple(
                mean([p[4] == level and condition(p) for p in pixels])
                for condition in (lambda p: p[1], lambda p: not p[1], lambda p: p[1] and not p[2])
            )
            for level in range(tree.num_levels)
        ],
        "pixels": total,
    }


def assert_scores(found: cs.Scores, expected: dict[str, Any], *, flat: bool) -> None:
    for name in ("cig", "ccig", "abstain", "class_abstain", "accuracy", "wrong", "set_size", "agreement", "pixels"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=1e-12, nan_ok=True), name
    np.testing.assert_allclose(np.array(found.per_level), np.array(expected["per_level"]), atol=1e-12)
    if flat:
        assert found.miou == pytest.approx(expected["miou"], abs=1e-12, nan_ok=True)
    else:
        assert found.miou is None


def is_flat(cert: cs.Certificate) -> bool:
    single = cert.settings.method == "segcertify" or cert.settings.level == 0
    return cert.settings.method != "sets" and (single or cert.hierarchy.num_levels == 1)


@given(scenes())
def test_scores_are_those_of_a_loop_over_all_pixels_of_all_images(case: Any) -> None:
    certificates, labels = case
    flat = all(is_flat(cert) for cert in certificates)
    assert_scores(cs.score(certificates, labels), by_the_book(certificates, labels), flat=flat)
    for cert, label in zip(certificates, labels, strict=True):
        assert_scores(cs.score(cert, label), by_the_book([cert], [label]), flat=flat)


@given(scenes(), st.integers(0, 2**32))
def test_masks_leave_pixels_out(case: Any, seed: int) -> None:
    certificates, labels = case
    rng = np.random.default_rng(seed)
    masks = [rng.random(label.shape) < 0.5 for label in labels]
    flat = all(is_flat(cert) for cert in certificates)
    assert_scores(cs.score(certificates, labels, where=masks), by_the_book(certificates, labels, masks), flat=flat)
    assert (
        cs.score(certificates[0], labels[0], where=masks[0]).pixels
        == by_the_book(certificates[:1], labels[:1], masks[:1])["pixels"]
    )


@given(scenes())
def test_class_scores_are_nan_exactly_for_classes_that_do_not_occur(case: Any) -> None:
    certificates, labels = case
    scores = cs.score(certificates, labels)
    scored = [
        label[(label != 255) & (True if cert.region is None else cert.region)]
        for cert, label in zip(certificates, labels, strict=True)
    ]
    occurs = np.isin(np.arange(certificates[0].hierarchy.num_classes), np.concatenate(scored))
    np.testing.assert_array_equal(~np.isnan(scores.class_cig), occurs)
    np.testing.assert_array_equal(~np.isnan(scores.class_abstained), occurs)
    if occurs.any():
        assert scores.ccig == pytest.approx(scores.class_cig[occurs].mean())
        values = [scores.cig, scores.ccig, scores.abstain, scores.class_abstain, scores.accuracy]
        assert all(0 <= value <= 1 + 1e-12 for value in values)


@given(scenes())
def test_claimed_are_the_pixels_certified_as_a_single_class(case: Any) -> None:
    for cert, label in zip(*case, strict=True):
        scored = (label != 255) & (True if cert.region is None else cert.region)
        names = [cert.labels_at(row, column) for row, column in np.argwhere(scored)]
        classes = cert.hierarchy.classes
        claimed = [sum(name == (single,) for name in names) for single in classes]
        assert sum_pixels(cert, label).claimed.tolist() == claimed


TREE = hierarchy_from_dict(
    {"classes": ["a", "b", "c", "d"], "levels": {1: {"ab": ["a", "b"]}, 2: {"abc": ["ab", "c"]}}}, source="x"
)


def sure_votes(label: np.ndarray, *, num_classes: int = 4, n: int = 100) -> cs.Votes:
    """Votes that all go to the given class."""
    counts = np.zeros((*label.shape, num_classes), np.uint16)
    np.put_along_axis(counts, label[..., None], n, axis=-1)
    ranking = np.stack([label, (label + 1) % num_classes], axis=-1).astype(np.uint8)
    return cs.Votes(ranking[..., 0].copy(), np.ones(label.shape), ranking, counts, n0=1, n=n, sigma=0.25)


@given(st.integers(0, 2**32))
def test_miou_of_flat_methods_equals_torchmetrics_where_nothing_abstains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = (6, 7)
    prediction, label = rng.integers(0, 4, size), rng.integers(0, 4, size)
    label = np.where(rng.random(size) < 0.2, 255, label)
    metric = MulticlassJaccardIndex(num_classes=4, ignore_index=255)
    expected = float(metric(torch.from_numpy(prediction), torch.from_numpy(label)))
    cert = cs.certify(sure_votes(prediction), method="segcertify")
    assert not cert.abstained.any()
    assert cs.score(cert, label).miou == pytest.approx(expected, abs=1e-6)
    plain = score_prediction(prediction, label, num_classes=4)
    assert plain.miou == pytest.approx(expected, abs=1e-6)
    assert plain.accuracy == pytest.approx((prediction == label)[label != 255].mean())
    assert plain.abstain == 0


def test_an_abstention_is_a_miss_and_never_a_false_positive() -> None:
    label = np.array([[0, 0, 1, 1]])
    votes = sure_votes(np.array([[0, 1, 1, 1]]))
    counts = votes.counts.copy()
    counts[0, 1] = [50, 50, 0, 0]  # would be a wrong 1, but abstains
    counts[0, 3] = [50, 50, 0, 0]  # would be a right 1, but abstains
    uncertain = cs.Votes(votes.candidate, votes.gap, votes.ranking, counts, n0=1, n=100, sigma=0.25)
    scores = cs.score(cs.certify(uncertain, method="segcertify"), label)
    assert scores.miou == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert (scores.accuracy, scores.abstain) == (0.5, 0.5)


def test_scores_are_pooled_over_pixels_not_averaged_over_images() -> None:
    large, small = np.zeros((1, 9), int), np.zeros((1, 1), int)
    certificates = [
        cs.certify(sure_votes(large), method="segcertify"),
        cs.certify(sure_votes(small + 1), method="segcertify"),
    ]
    scores = cs.score(certificates, [large, small])
    assert scores.accuracy == pytest.approx(0.9)
    assert scores.cig == pytest.approx(0.9)
    assert scores.ccig == pytest.approx(0.9)
    assert scores.miou == pytest.approx((9 / 10 + 0) / 2)


def test_classes_are_pooled_over_images_before_they_are_averaged() -> None:
    first, second = np.array([[0, 0, 0, 1]]), np.array([[0, 1, 1, 1]])
    certificates = [cs.certify(sure_votes(np.zeros((1, 4), int)), method="segcertify") for _ in range(2)]
    scores = cs.score(certificates, [first, second])
    assert scores.ccig == pytest.approx((4 / 4 + 0 / 4) / 2)


def test_information_gain_of_vertices_and_sets() -> None:
    label = np.array([[0, 0, 0, 3]])
    votes = sure_votes(label)
    for level, gain in ((0, 1.0), (1, 1 - log(2) / log(4)), (2, 1 - log(3) / log(4))):
        scores = cs.score(cs.certify(votes, TREE, method="level", level=level), label)
        assert scores.cig == pytest.approx((3 * gain + 1) / 4)
        assert scores.accuracy == 1
        assert (scores.miou is None) == (level > 0)


def test_a_vertex_is_right_when_it_stands_for_the_truth_and_wrong_when_it_does_not() -> None:
    votes, label = sure_votes(np.array([[0, 0, 3]])), np.array([[1, 2, 2]])
    scores = cs.score(cs.certify(votes, TREE, method="level", level=1), label)
    assert scores.accuracy == pytest.approx(1 / 3)
    assert scores.per_level[1] == pytest.approx((1.0, 0.0, 2 / 3))
    coarse = cs.score(cs.certify(votes, TREE, method="level", level=2), label)
    assert coarse.accuracy == pytest.approx(2 / 3)


def test_images_of_void_alone_leak_no_nan_into_a_pool_and_warn_of_nothing() -> None:
    certificates = [cs.certify(sure_votes(np.zeros((2, 3), int)), method="segcertify") for _ in range(2)]
    void, known = np.full((2, 3), 255), np.zeros((2, 3), int)
    nothing = cs.score(certificates[0], void)
    assert nothing.pixels == 0
    assert all(isnan(v) for v in (nothing.cig, nothing.ccig, nothing.abstain, nothing.class_abstain, nothing.accuracy))
    assert isnan(nothing.miou)
    assert np.isnan(nothing.class_cig).all()
    pooled = cs.score(certificates, [void, known])
    assert (pooled.cig, pooled.ccig, pooled.abstain, pooled.class_abstain, pooled.miou) == (1, 1, 0, 0, 1)


def test_sets_have_no_iou_even_over_classes_without_a_hierarchy() -> None:
    tree = hierarchy_from_dict({"classes": ["a", "b", "c", "d"], "levels": {}}, source="x")
    label = np.arange(4).repeat(4).reshape(4, 4)
    found = [cs.score(cs.certify(sure_votes(label), tree, method=m), label).miou for m in ("sets", "nested")]
    assert found == [None, 1.0]


def test_an_image_of_one_class_has_scores_of_that_class() -> None:
    label = np.full((2, 3), 2)
    scores = cs.score(cs.certify(sure_votes(label), TREE, method="nested"), label)
    assert (scores.cig, scores.ccig, scores.accuracy, scores.abstain) == (1, 1, 1, 0)
    assert scores.miou is None


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (np.full((2, 3), 4), r"label must hold classes 0\.\.3 or 255 for void, got 4"),
        (np.full((2, 3), -1), "label must hold classes"),
        (np.full((2, 3), 254), "label must hold classes"),
        (np.zeros((3, 2), int), r"label must be whole numbers of shape \(2, 3\)"),
        (np.zeros((2, 3)), "label must be whole numbers"),
        (np.zeros((2, 3, 1), int), "label must be whole numbers of shape"),
    ],
)
def test_labels_that_cannot_be_are_one_sentence(label: np.ndarray, words: str) -> None:
    cert = cs.certify(sure_votes(np.zeros((2, 3), int)), method="segcertify")
    with pytest.raises(cs.InputError, match=words):
        cs.score(cert, label)
    with pytest.raises(cs.InputError, match=words):
        score_prediction(np.zeros((2, 3), int), label, num_classes=4)


def test_lists_of_other_lengths_masks_and_trees_are_refused() -> None:
    label = np.zeros((2, 3), int)
    cert = cs.certify(sure_votes(label), method="segcertify")
    with pytest.raises(cs.InputError, match="must be equally many"):
        cs.score([cert, cert], [label])
    with pytest.raises(cs.InputError, match="must be equally many"):
        cs.score([], [])
    with pytest.raises(cs.InputError, match="where must be a boolean mask"):
        cs.score(cert, label, where=np.ones((2, 3), int))
    with pytest.raises(cs.InputError, match="where must be a boolean mask"):
        cs.score(cert, label, where=np.ones((3, 2), bool))
    other = cs.certify(sure_votes(label), TREE, method="segcertify")
    with pytest.raises(cs.InputError, match="must be over the same classes and levels"):
        cs.score([cert, other], [label, label])


@pytest.mark.parametrize("prediction", [np.full((2, 3), 4), np.full((2, 3), -1), np.full((2, 3), 255)])
def test_predictions_of_unknown_classes_are_refused(prediction: np.ndarray) -> None:
    with pytest.raises(cs.InputError, match=r"prediction must hold classes 0\.\.3"):
        score_prediction(prediction, np.zeros((2, 3), int), num_classes=4)


# -- boundaries --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_boundaries_are_where_a_window_holds_another_label(seed: int, margin: int, paper: bool) -> None:
    rng = np.random.default_rng(seed)
    size = (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
    label = rng.choice([0, 1, 255], size, p=[0.9, 0.07, 0.03]).astype(rng.choice([np.uint8, np.int64]))
    found = boundary(label, margin=margin, paper_compatible=paper)
    for i, j in np.ndindex(size):
        window = label[max(i - margin, 0) : i + margin + 1, max(j - margin, 0) : j + margin + 1]
        expected = window.max() != label[i, j] if paper else (window != label[i, j]).any()
        assert found[i, j] == expected


def test_the_default_margin_is_ten_and_the_papers_test_is_one_sided() -> None:
    label = np.zeros((1, 40), np.uint8)
    label[0, 20:] = 1
    np.testing.assert_array_equal(np.flatnonzero(boundary(label)), np.arange(10, 30))
    np.testing.assert_array_equal(np.flatnonzero(boundary(label, paper_compatible=True)), np.arange(10, 20))
    assert not boundary(np.ones((5, 5), np.uint8)).any()
    with pytest.raises(cs.InputError, match="margin must be at least 1"):
        boundary(label, margin=0)


def test_boundary_and_inside_scores_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, (12, 12)) // 2
    cert = certify(random_votes(1, num_classes=4, n=20, size=(12, 12)), TREE, method="nested", tau=0.5, alpha=0.5)
    near = boundary(label, margin=1)
    near[:, :5] = False
    parts = [cs.score(cert, label, where=near), cs.score(cert, label, where=~near)]
    whole = cs.score(cert, label)
    assert sum(part.pixels for part in parts) == whole.pixels
    assert sum(part.cig * part.pixels for part in parts) == pytest.approx(whole.cig * whole.pixels)


def test_class_255_of_a_large_model_is_still_void() -> None:
    classes = [f"c{i}" for i in range(300)]
    tree: Hierarchy = hierarchy_from_dict({"classes": classes}, source="x")
    label = np.array([[255, 256, 299]])
    votes = sure_votes(np.array([[255, 256, 299]]), num_classes=300)
    ranking = label[..., None].astype(np.uint16)
    votes = cs.Votes(ranking[..., 0].copy(), votes.gap, ranking, votes.counts, n0=1, n=100, sigma=0.25)
    scores = cs.score(cs.certify(votes, tree, method="segcertify"), label)
    assert (scores.pixels, scores.accuracy) == (2, 1)
