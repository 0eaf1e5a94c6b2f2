"""The hot loops against torch and against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from certiseg.kernels import counts as counting
from certiseg.models.outputs import Tile

SIZES = [
    # source, full, crop
    ((1, 1), (1, 1), (1, 1)),
    ((1, 1), (5, 7), (5, 7)),
    ((1, 4), (1, 9), (1, 9)),
    ((5, 1), (11, 3), (10, 2)),
    ((3, 4), (3, 4), (3, 4)),
    ((7, 5), (7, 5), (6, 3)),
    ((5, 7), (20, 28), (19, 25)),
    ((6, 8), (23, 31), (23, 31)),
    ((13, 17), (97, 131), (95, 130)),
    ((8, 8), (64, 64), (1, 1)),
    ((2, 2), (1, 1), (1, 1)),
    ((9, 10), (4, 6), (3, 5)),
    ((30, 40), (120, 160), (120, 160)),
]


def upsampled(scores: torch.Tensor, full: tuple[int, int], crop: tuple[int, int], align: bool) -> torch.Tensor:
    """torch's own interpolation, (B, C, H, W)."""
    if tuple(scores.shape[2:]) != full:
        scores = F.interpolate(scores, size=full, mode="bilinear", align_corners=align)
    return scores[:, :, : crop[0], : crop[1]]


def random_scores(source: tuple[int, int], *, classes: int = 6, batch: int = 2, spread: float = 3.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(source) * 1000 + classes)
    return spread * torch.randn(batch, classes, *source, generator=generator)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("source", "full", "crop"), SIZES)
def test_labels_equal_torch_wherever_the_best_scores_differ(source: Any, full: Any, crop: Any, align: bool) -> None:
    scores = random_scores(source)
    expected = upsampled(scores, full, crop, align)
    found = Tile(scores, "logits", full, crop, align).labels()
    assert found.shape == (2, *crop)
    top = expected.topk(2, dim=1).values
    clear = (top[:, 0] - top[:, 1] > 1e-5).numpy()
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(found[clear], expected.argmax(1).numpy()[clear])


@pytest.mark.parametrize("align", [False, True])
def test_labels_of_large_maps_equal_torch_in_double_precision(align: bool) -> None:
    source, full = (65, 129), (517, 1031)
    scores = random_scores(source, batch=1)
    expected = upsampled(scores.double(), full, full, align)
    top = expected.topk(2, dim=1).values
    clear = (top[:, 0] - top[:, 1] > 1e-5).numpy()
    found = Tile(scores, "logits", full, full, align).labels()
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(found[clear], expected.argmax(1).numpy()[clear])


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("source", "full", "crop"), SIZES)
@pytest.mark.parametrize("temperature", [1.0, 0.25, 7.0])
def test_posteriors_equal_torchs_softmax(source: Any, full: Any, crop: Any, align: bool, temperature: float) -> None:
    scores, unit = random_scores(source), (2**32 - 1) // 2
    sums = np.zeros((*crop, 6), np.uint32)
    Tile(scores, "logits", full, crop, align).add_posteriors(sums, unit=unit, temperature=temperature)
    expected = (upsampled(scores.double(), full, crop, align) / temperature).softmax(1).sum(0)
    np.testing.assert_allclose(sums / unit, expected.permute(1, 2, 0).numpy(), atol=1e-5)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("source", "full", "crop"), SIZES)
def test_probabilities_are_interpolated_and_normalised(source: Any, full: Any, crop: Any, align: bool) -> None:
    probabilities, unit = random_scores(source).softmax(1) * 0.7, 2**31
    sums = np.zeros((*crop, 6), np.uint32)
    Tile(probabilities, "probabilities", full, crop, align).add_posteriors(sums, unit=unit, temperature=9.0)
    expected = upsampled(probabilities.double(), full, crop, align)
    expected = (expected / expected.sum(1, keepdim=True)).sum(0)
    np.testing.assert_allclose(sums / unit, expected.permute(1, 2, 0).numpy(), atol=1e-6)


def test_posteriors_add_up_to_one_and_never_overflow() -> None:
    for n0 in (1, 3, 10, 65_535):
        unit = (2**32 - 1) // n0
        sums = np.zeros((4, 4, 3), np.uint32)
        sure = torch.tensor([80.0, 0.0, -80.0]).view(1, 3, 1, 1).expand(1, 3, 4, 4)
        times = min(n0, 50)
        for _ in range(times):
            Tile(sure, "logits", (4, 4), (4, 4), False).add_posteriors(sums, unit=unit, temperature=1.0)
        totals = sums.sum(axis=-1, dtype=np.uint64)
        assert (totals <= unit * times).all()
        assert (totals >= unit * times - 3 * times).all()
        assert (sums[..., 0] >= unit * times - times).all()


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_scores_of_any_size_give_posteriors_between_zero_and_one(kind: str) -> None:
    values = torch.tensor([[3e38, 0, 1e-30], [1e-38, 1e-38, 1e-38], [0, 0, 0], [1, 1e38, 1]]).T.reshape(1, 3, 2, 2)
    sums = np.zeros((2, 2, 3), np.uint32)
    Tile(values, kind, (2, 2), (2, 2), False).add_posteriors(sums, unit=1 << 30, temperature=1.0)
    totals = sums.sum(axis=-1, dtype=np.uint64)
    nothing = np.array([[False, False], [kind == "probabilities", False]])
    assert (totals[~nothing] <= 1 << 30).all()
    assert (totals[~nothing] >= (1 << 30) - 100).all()
    assert (totals[nothing] == 0).all(), "a pixel without any probability says nothing"
    np.testing.assert_array_equal(np.argmax(sums, axis=-1), [[0, 0], [0, 1]])


def test_ties_go_to_the_lowest_class_in_cells_and_between_them() -> None:
    scores = torch.zeros(1, 4, 3, 3)
    scores[:, 1] = scores[:, 3] = 1.0
    assert (Tile(scores, "logits", (3, 3), (3, 3), False).labels() == 1).all()
    assert (Tile(scores, "logits", (7, 7), (7, 7), False).labels() == 1).all()
    assert (Tile(torch.zeros(1, 4, 3, 3), "logits", (7, 5), (7, 5), True).labels() == 0).all()


def test_more_than_256_classes_keep_their_numbers() -> None:
    scores = torch.zeros(1, 400, 2, 2)
    scores[:, 399] = 1
    assert (Tile(scores, "logits", (2, 2), (2, 2), False).labels() == 399).all()


@pytest.mark.parametrize(("source", "full", "crop"), [((3, 4), (3, 4), (2, 3)), ((3, 4), (9, 12), (8, 11))])
def test_labels_are_extended_to_their_nearest_neighbour(source: Any, full: Any, crop: Any) -> None:
    labels = torch.arange(12).view(1, 3, 4)
    expected = F.interpolate(labels[None].float(), size=full, mode="nearest")[0, 0, : crop[0], : crop[1]]
    found = Tile(labels, "labels", full, crop, False).labels()[0]
    np.testing.assert_array_equal(found, expected.long().numpy())


@given(st.integers(0, 2**32), st.integers(2, 9), st.sampled_from([np.uint8, np.int32, np.int64, np.uint16]))
def test_counts_are_those_of_a_plain_loop(seed: int, classes: int, kind: type) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, (7, 3, 4)).astype(kind)
    counts = rng.integers(0, 100, (3, 4, classes)).astype(np.uint16)
    expected = counts + np.stack([(labels == c).sum(axis=0) for c in range(classes)], axis=-1)
    counting.count_labels(labels, counts)
    np.testing.assert_array_equal(counts, expected)


def test_counts_reach_65535_without_wrapping() -> None:
    counts = np.zeros((1, 1, 2), np.uint16)
    counting.count_labels(np.ones((65_535, 1, 1), np.uint8), counts)
    assert counts.tolist() == [[[0, 65_535]]]
    assert counting.totals_are(0, 1, counts.reshape(1, 2), 65_535)
    assert not counting.totals_are(0, 1, np.array([[65_535, 1]], np.uint16), 0)
    assert not counting.totals_are(0, 2, np.array([[3, 4], [3, 5]], np.uint16), 7)


@given(st.integers(0, 2**32), st.integers(2, 8))
def test_ranks_follow_the_sums_with_ties_by_class_index(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    sums = rng.choice([0, 1, 5, 2**31, 2**32 - 1], (3, 4, classes)).astype(np.uint32)
    for length in range(1, classes + 1):
        ranking, lead = np.empty((3, 4, length), np.uint8), np.empty((3, 4), np.int64)
        counting.rank_classes(sums, ranking, lead)
        for row, column in np.ndindex(3, 4):
            pixel = [int(value) for value in sums[row, column]]
            order = sorted(range(classes), key=lambda c, pixel=pixel: (-pixel[c], c))
            assert ranking[row, column].tolist() == order[:length]
            assert lead[row, column] == pixel[order[0]] - pixel[order[1]]


def test_the_exponential_is_accurate_over_its_whole_range() -> None:
    logits = np.linspace(-86, 0, 4000, dtype=np.float32)
    scores = torch.zeros(1, 2, 1, len(logits))
    scores[0, 1, 0] = torch.from_numpy(logits)
    sums = np.zeros((1, len(logits), 2), np.uint32)
    Tile(scores, "logits", (1, len(logits)), (1, len(logits)), False).add_posteriors(
        sums, unit=2**32 - 1, temperature=1.0
    )
    expected = 1 / (1 + np.exp(-logits.astype(np.float64)))
    large = expected > 1e-4
    np.testing.assert_allclose(sums[0, large, 1] / (2**32 - 1), expected[large], rtol=2e-6)
    np.testing.assert_allclose(sums[0, :, 1] / (2**32 - 1), expected, atol=2e-7)
