"""The torchmetrics classes: the same numbers as cs.score, and what torchmetrics expects of a metric."""

from __future__ import annotations

import copy
from math import isnan
from typing import Any

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg import metrics
from certiseg.hierarchy import hierarchy_from_dict
from tests.conftest import random_votes

TREE = hierarchy_from_dict(
    {"classes": ["a", "b", "c", "d"], "levels": {1: {"ab": ["a", "b"]}, 2: {"abc": ["ab", "c"]}}}, source="x"
)
CLASSES = {
    "cig": metrics.CertifiedInformationGain,
    "ccig": metrics.ClassCertifiedInformationGain,
    "abstain": metrics.AbstainRate,
    "accuracy": metrics.CertifiedAccuracy,
    "miou": metrics.CertifiedMeanIoU,
}


def images(method: str, count: int = 4) -> tuple[list[cs.Certificate], list[np.ndarray]]:
    certificates, labels = [], []
    for seed in range(count):
        votes = random_votes(seed, num_classes=4, n=30, size=(3, 4 + seed))
        certificates.append(cs.certify(votes, TREE, method=method, tau=0.5, alpha=0.5))
        rng = np.random.default_rng(seed)
        labels.append(np.where(rng.random(votes.size) < 0.2, 255, rng.integers(0, 4, votes.size)))
    return certificates, labels


def metric_of(name: str) -> Any:
    return CLASSES[name](num_classes=TREE.num_classes, num_levels=TREE.num_levels)


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_metric_equals_evaluate_over_all_images(name: str, method: str) -> None:
    certificates, labels = images(method)
    metric = metric_of(name)
    for cert, label in zip(certificates, labels, strict=True):
        metric.update(cert, torch.from_numpy(label))
    expected = getattr(cs.score(certificates, labels), name)
    if expected is None:
        assert isnan(float(metric.compute()))
    else:
        assert metric.compute().dtype == torch.float64
        assert float(metric.compute()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_forward_gives_the_score_of_one_image_and_keeps_the_sum(name: str) -> None:
    certificates, labels = images("segcertify")
    metric = metric_of(name)
    for cert, label in zip(certificates, labels, strict=True):
        single = getattr(cs.score(cert, label), name)
        assert float(metric(cert, label)) == pytest.approx(single, abs=1e-12)
    assert float(metric.compute()) == pytest.approx(getattr(cs.score(certificates, labels), name), abs=1e-12)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_reset_forgets_everything_and_leaves_the_defaults_alone(name: str) -> None:
    certificates, labels = images("segcertify")
    metric = metric_of(name)
    metric.update(certificates[0], labels[0])
    metric.reset()
    metric.update(certificates[1], labels[1])
    expected = getattr(cs.score(certificates[1], labels[1]), name)
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-12)
    metric.reset()
    assert int(metric.pixels.sum()) == 0


def test_all_scores_are_there_at_once() -> None:
    certificates, labels = images("nested")
    metric = metric_of("cig")
    for cert, label in zip(certificates, labels, strict=True):
        metric.update(cert, label)
    found, expected = metric.scores(), cs.score(certificates, labels)
    assert (found.cig, found.ccig, found.abstain, found.accuracy) == pytest.approx(
        (expected.cig, expected.ccig, expected.abstain, expected.accuracy)
    )
    np.testing.assert_allclose(found.per_level, expected.per_level)
    assert (found.miou, found.pixels) == (None, expected.pixels)


def test_states_of_two_processes_add_up() -> None:
    certificates, labels = images("segcertify")
    first, second, whole = (metric_of("miou") for _ in range(3))
    for index, (cert, label) in enumerate(zip(certificates, labels, strict=True)):
        (first if index % 2 else second).update(cert, label)
        whole.update(cert, label)
    merged = copy.deepcopy(first)
    merged.merge_state(second)
    assert float(merged.compute()) == pytest.approx(float(whole.compute()), abs=1e-12)


def test_flat_and_other_images_together_have_no_miou() -> None:
    metric = metric_of("miou")
    for method in ("segcertify", "nested"):
        certificates, labels = images(method, count=1)
        metric.update(certificates[0], labels[0])
    assert isnan(float(metric.compute()))


def test_higher_is_better_but_for_abstentions() -> None:
    assert [CLASSES[name].higher_is_better for name in sorted(CLASSES)] == [False, True, True, True, True]


def test_certificates_over_another_tree_are_refused() -> None:
    certificates, labels = images("segcertify", count=1)
    metric = metrics.CertifiedAccuracy(num_classes=4, num_levels=2)
    with pytest.raises(cs.InputError, match="must be over the metric's classes and levels"):
        metric.update(certificates[0], labels[0])
    assert int(metric.pixels.sum()) == 0
