"""What the segmenter does around a model: all of it is checked against plain torch."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.models.outputs import tensor_of
from certiseg.models.preparation import describe, windows
from certiseg.models.segmenter import as_batch
from certiseg.models.settings import ModelSettings
from tests.models.tiny import NAMES, SIZE, TinyNet, noisy_batch, picture

NET = TinyNet().eval()


def plain(images: torch.Tensor, size: tuple[int, int], *, align_corners: bool = False) -> np.ndarray:
    """The arg max of the network's scores at the wanted size, by torch alone."""
    with torch.inference_mode():
        scores = F.interpolate(NET(images), size=size, mode="bilinear", align_corners=align_corners)
    return scores.argmax(1).numpy()


@pytest.mark.parametrize("align_corners", [False, True])
def test_scores_at_lower_resolution_are_upsampled(align_corners: bool) -> None:
    images = noisy_batch()
    found = cs.Segmenter(NET, align_corners=align_corners)(images).labels()
    assert (found == plain(images, SIZE, align_corners=align_corners)).mean() > 0.999


def test_normalisation_uses_mean_and_std() -> None:
    images, mean, std = noisy_batch(), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    normal = (images - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)
    assert torch.equal(cs.Segmenter(NET, mean=mean, std=std)(images).values, cs.Segmenter(NET)(normal).values)


def test_blue_first_flips_after_normalisation() -> None:
    images = noisy_batch()
    seen = cs.Segmenter(NET, bgr=True, mean=(0.1, 0.2, 0.3))(images).values
    flipped = (images - torch.tensor((0.1, 0.2, 0.3)).view(1, 3, 1, 1)).flip(1)
    assert torch.equal(seen, cs.Segmenter(NET)(flipped).values)


@pytest.mark.parametrize("size", [(24, 32), (33, 65), (31, 64), (1, 1)])
def test_sides_are_padded_to_a_multiple_and_cropped(size: tuple[int, int]) -> None:
    seen = []

    def model(images: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(images.shape[2:]))
        return NET(images)

    images = noisy_batch(size)
    found = cs.Segmenter(model, divisible_by=32)(images).labels()
    padded = F.pad(images, (0, -size[1] % 32, 0, -size[0] % 32))
    assert seen == [tuple(padded.shape[2:])]
    assert all(side % 32 == 0 for side in seen[0])
    expected = plain(padded, tuple(padded.shape[2:]))[:, : size[0], : size[1]]
    assert found.shape == (3, *size)
    assert (found == expected).mean() > 0.999


@pytest.mark.parametrize("how, antialias", [("bilinear", False), ("antialiased", True)])
def test_fixed_input_size_resizes_in_and_out(how: Any, antialias: bool) -> None:
    images = noisy_batch((30, 50))
    found = cs.Segmenter(NET, input_size=(16, 20), resize=how)(images).labels()
    resized = F.interpolate(images, size=(16, 20), mode="bilinear", antialias=antialias)
    assert (found == plain(resized, (30, 50))).mean() > 0.999


def test_shorter_side_keeps_the_shape() -> None:
    seen = []

    def model(images: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(images.shape[2:]))
        return NET(images)

    cs.Segmenter(model, input_size=16, resize="bicubic")(noisy_batch((24, 48)))
    assert seen == [(16, 32)]


def test_integer_input_is_rounded_and_clamped() -> None:
    values = torch.tensor([-0.5, 0.0, 0.5 / 255 + 1e-4, 1.0, 1.7]).view(1, 1, 1, 5).expand(1, 3, 1, 5)
    seen = []

    def model(images: torch.Tensor) -> torch.Tensor:
        seen.append(images)
        return torch.zeros(len(images), 1, 5, dtype=torch.uint8)

    cs.Segmenter(model, scores="labels", num_classes=2, integer_input=True)(values)
    assert seen[0].dtype == torch.uint8
    assert seen[0][0, 0, 0].tolist() == [0, 0, 1, 255, 255]


def tiled_scores(images: torch.Tensor) -> torch.Tensor:
    """Scores of (40, 50) images by windows of (24, 32) that share 8 pixels at least, with every place written out."""
    whole = torch.empty(len(images), len(NAMES), 40, 50)
    for top, rows in ((0, slice(0, 20)), (16, slice(20, 40))):
        for left, columns in ((0, slice(0, 25)), (18, slice(25, 50))):
            with torch.inference_mode():
                scores = NET(images[:, :, top : top + 24, left : left + 32])
            full = F.interpolate(scores, size=(24, 32), mode="bilinear")
            part = full[:, :, rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
            whole[:, :, rows, columns] = part
    return whole


def test_windows_answer_for_the_image_up_to_the_middle_of_their_overlap() -> None:
    images = noisy_batch((40, 50))
    found, expected = cs.Segmenter(NET, window=(24, 32), overlap=8)(images), tiled_scores(images)
    assert torch.allclose(found.at_full_size(), expected, atol=1e-5)
    assert (found.labels() == expected.argmax(1).numpy()).mean() > 0.999
    assert found.size == (40, 50)
    assert [tile.place for tile in found.tiles] == [(0, 0), (0, 25), (20, 0), (20, 25)]
    assert np.array_equal(found.take(2).labels(), found.labels()[:2])


def test_posteriors_of_windows_add_up() -> None:
    images, unit = noisy_batch((40, 50)), 1 << 20
    sums = np.zeros((40, 50, len(NAMES)), np.uint32)
    cs.Segmenter(NET, window=(24, 32), overlap=8)(images).add_posteriors(sums, unit=unit, temperature=2.0)
    posterior = (tiled_scores(images) / 2.0).softmax(1).sum(0).permute(1, 2, 0)
    np.testing.assert_allclose(sums / unit, posterior.numpy(), atol=1e-4)


def test_models_that_give_labels_run_in_windows_too() -> None:
    images = noisy_batch((40, 50))
    labels = cs.Segmenter(lambda part: (part[:, 0] > 0.5).long(), scores="labels", num_classes=2, window=(16, 16))
    assert np.array_equal(labels(images).labels(), (images[:, 0] > 0.5).numpy())


@given(side=st.integers(1, 300), window=st.integers(2, 80), overlap=st.integers(0, 79))
def test_windows_cover_a_side_once_and_share_what_was_asked_for(side: int, window: int, overlap: int) -> None:
    overlap = min(overlap, window - 1)
    found = windows(side, window, overlap)
    assert [place for _, part in found for place in range(part.start, part.stop)] == list(range(side))
    for start, part in found:
        assert start <= part.start
        assert part.stop <= start + window
        assert start == 0 or start + window <= side
    for (one, _), (other, _) in pairwise(found):
        assert one + window - other >= overlap
    fewest = 1 if side <= window else -(-(side - window) // (window - overlap)) + 1
    assert len(found) == fewest


def test_noise_is_drawn_for_the_image_before_it_is_tiled() -> None:
    tiles = []

    def model(images: torch.Tensor) -> torch.Tensor:
        tiles.append(images.clone())
        return NET(images)

    cs.sample(cs.Segmenter(model, window=(16, 16), num_classes=5), picture((16, 24)), sigma=0.25, n0=1, n=1)
    tiles = tiles[4:]  # the look at the model before the first draw is without noise
    # Windows at 0 and 8 share eight columns: the same noise in both.
    assert torch.equal(tiles[0][..., 8:], tiles[1][..., :8])
    assert not torch.equal(tiles[0], tiles[2])


def test_windows_of_a_fixed_size_model() -> None:
    seen = set()

    def model(images: torch.Tensor) -> torch.Tensor:
        seen.add(tuple(images.shape[2:]))
        return NET(images)

    found = cs.Segmenter(model, window=(16, 16), input_size=(16, 16))(noisy_batch((40, 12)))
    assert seen == {(16, 16)}
    assert found.labels().shape == (3, 40, 12)


def test_a_plain_numpy_function() -> None:
    def scores(images: np.ndarray) -> np.ndarray:
        assert images.dtype == np.float32
        return np.stack([images[..., 0], 1 - images[..., 0]], axis=-1) * 3

    def labels(images: np.ndarray) -> np.ndarray:
        return (images[..., :1] < 0.5).astype(np.uint8)

    image = picture()
    by_scores = cs.Segmenter(scores, arrays="numpy").predict(image)
    by_labels = cs.Segmenter(labels, arrays="numpy", scores="labels", num_classes=2).predict(image)
    assert np.array_equal(by_scores, image[..., 0] < 127.5)
    assert np.array_equal(by_labels, by_scores)


def test_labels_at_lower_resolution_go_to_the_nearest() -> None:
    small = torch.tensor([[[0, 1], [2, 3]]])
    found = cs.Segmenter(lambda images: small, scores="labels", num_classes=4)(torch.zeros(1, 3, 4, 6)).labels()
    assert found[0].tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, 3]] * 2


def test_scores_are_found_inside_usual_outputs() -> None:
    scores = torch.zeros(1, 2, 3, 3)
    for output in (scores, {"out": scores, "aux": 1}, {"logits": scores}, SimpleNamespace(logits=scores)):
        assert tensor_of(output) is scores
    with pytest.raises(cs.InputError, match=r"got tuple; wrap it"):
        tensor_of((scores, scores))


@pytest.mark.parametrize(
    "output, settings, message",
    [
        (torch.full((1, 2, 4, 4), torch.nan), {}, "finite scores"),
        (torch.tensor([torch.inf, -torch.inf]).view(1, 2, 1, 1).expand(1, 2, 4, 4), {}, "finite scores"),
        (torch.arange(32.0).where(torch.arange(32) != 9, torch.inf).view(1, 2, 4, 4), {}, "finite scores"),
        (torch.full((1, 2, 4, 4), -0.1), {"scores": "probabilities"}, "probabilities >= 0"),
        (torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(0)).softmax(1), {}, "scores='probabilities'"),
        (torch.zeros(1, 3, 4, 4), {"num_classes": 5}, "5 scores per pixel, got 3"),
        (torch.zeros(1, 4, 4), {}, r"shape \(B, C, h, w\).*got \(1, 4, 4\)"),
        (torch.zeros(2, 3, 4, 4), {}, "for a batch of 1"),
        (torch.full((1, 4, 4), 7), {"scores": "labels", "num_classes": 5}, r"labels in 0..4, got 7..7"),
        (torch.full((1, 4, 4), -1), {"scores": "labels", "num_classes": 5}, r"got -1..-1"),
        (torch.full((1, 4, 4), 0.5), {"scores": "labels", "num_classes": 5}, "got fractions"),
        (np.full((1, 4, 4, 2), "a"), {"arrays": "numpy"}, "array of numbers"),
    ],
)
def test_outputs_that_cannot_be_certified(output: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        cs.Segmenter(lambda images: output, **settings)(torch.zeros(1, 3, 4, 4))


def test_scores_whose_sum_overflows_are_finite_all_the_same() -> None:
    large = torch.full((1, 2, 4, 4), 3e38)
    assert torch.equal(cs.Segmenter(lambda images: large)(torch.zeros(1, 3, 4, 4)).values, large)


def test_probabilities_as_probabilities_pass() -> None:
    images = noisy_batch()
    soft = cs.Segmenter(lambda x: NET(x).softmax(1), scores="probabilities")
    assert soft(images).values.shape[1] == len(NAMES)


def test_a_model_that_fails_says_on_what() -> None:
    def model(images: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("sizes must match\nand a long trace")

    with pytest.raises(cs.InputError, match=r"shape \(1, 3, 4, 4\), got: sizes must match; if sides"):
        cs.Segmenter(model)(torch.zeros(1, 3, 4, 4))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scores": "softmax"}, "scores must be one of"),
        ({"arrays": "jax"}, "arrays must be one of"),
        ({"scores": "labels"}, "num_classes must be given"),
        ({"class_names": ("a", "b"), "num_classes": 3}, "name the 3 classes, got 2"),
        ({"class_names": "abc"}, "sequence of names"),
        ({"num_classes": 1}, "at least 2"),
        ({"mean": (0.5, 0.5), "channels": 3}, "mean must be 3 numbers, one per channel"),
        ({"mean": 0.5}, "mean must be numbers, one per channel"),
        ({"std": (0.5, 0.5, 0.0)}, "std must be positive"),
        ({"std": (0.5, 0.5, float("nan"))}, "std must be numbers, one per channel"),
        ({"integer_input": True, "mean": (0, 0, 0)}, "whole numbers"),
        ({"divisible_by": 0}, "divisible_by"),
        ({"input_size": (0, 4)}, "input_size must be"),
        ({"window": 5}, "window must be"),
        ({"window": (8, 16), "overlap": 8}, r"overlap must be in 0\.\.7, below the window"),
        ({"resize": "cubic"}, "resize must be one of"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        cs.Segmenter(NET, **settings)


def test_something_not_callable() -> None:
    with pytest.raises(cs.InputError, match="torch module or a callable, got int"):
        cs.Segmenter(3)  # type: ignore[arg-type]


def test_adjusted_changes_one_setting_and_keeps_the_rest() -> None:
    before = cs.Segmenter(NET, class_names=NAMES, mean=(0.1, 0.2, 0.3), divisible_by=8, name="tiny")
    after = before.adjusted(divisible_by=16)
    assert after.preparation() == {**before.preparation(), "divisible_by": 16}
    assert (after.class_names, after.name, after.model) == (NAMES, "tiny", NET)
    assert before.settings.divisible_by == 8
    with pytest.raises(cs.InputError, match="mean must be"):
        before.adjusted(mean=(1,))


def test_fingerprint_tells_models_and_preparations_apart() -> None:
    same, twin = cs.Segmenter(NET).fingerprint(), cs.Segmenter(TinyNet()).fingerprint()
    assert same == twin
    others = [
        cs.Segmenter(TinyNet(seed=1)),
        cs.Segmenter(NET, std=(0.5, 0.5, 0.5)),
        cs.Segmenter(NET, input_size=(4, 4)),
        cs.Segmenter(NET, bgr=True),
        cs.Segmenter(NET, backend="openvino"),
        cs.Segmenter(lambda x: x),
    ]
    assert len({same, *(other.fingerprint() for other in others)}) == len(others) + 1


def test_description_names_what_changes_the_image() -> None:
    assert describe(cs.Segmenter(NET, mean=(0.5, 0.5, 0.5)).settings) == ""
    words = describe(ModelSettings(input_size=(8, 9), integer_input=True, divisible_by=32, window=(5, 6)))
    for word in ("5x6 windows", "resized to 8x9 (bilinear)", "0..255", "multiple of 32"):
        assert word in words


def test_batches_are_channels_last_without_a_copy() -> None:
    pixels = np.random.default_rng(0).random((2, 4, 5, 3), np.float32)
    batch = as_batch(pixels)
    assert batch.shape == (2, 3, 4, 5)
    assert batch.data_ptr() == pixels.ctypes.data


def test_a_segmenter_prints_as_one_line() -> None:
    known = cs.Segmenter(NET, class_names=NAMES, name="tiny", divisible_by=32)
    assert repr(known) == f"Segmenter(tiny: {len(NAMES)} classes, logits, torch; image padded to a multiple of 32)"
    fresh = cs.Segmenter(NET, name="tiny").denoised(sigma=0.25)
    assert repr(fresh) == "Segmenter(tiny: classes not known yet, logits, torch, denoised at sigma = 0.25)"


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "44fc774c8d793b2b9df358545946409a007068d1a8eb9eaac048c3d1b9b41c08"),
        (
            {
                **{"mean": [0.1, 0.2, 0.3], "std": (1, 1, 2), "bgr": True, "divisible_by": 32, "input_size": (64, 64)},
                **{"resize": "bicubic", "scores": "probabilities", "align_corners": True, "class_names": list("abcd")},
            },
            "5ca7325d045726f6ed6217b0195db365fa47cb71503ba5d8f17a122417e9e135",
        ),
    ],
)
def test_fingerprints_stay_what_stored_certificates_say(settings: dict[str, Any], expected: str) -> None:
    """A new setting must not enter the fingerprints of models that do without it."""
    net = torch.nn.Conv2d(3, 4, 1)
    with torch.no_grad():
        net.weight.copy_(torch.arange(12.0).view(4, 3, 1, 1) / 8)
        net.bias.copy_(torch.arange(4.0))
    assert cs.Segmenter(net, **settings).fingerprint() == expected
