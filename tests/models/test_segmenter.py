"""What the segmenter does around a model: all of it is checked against plain torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import certiseg as cs
from certiseg.models.outputs import tensor_of
from certiseg.models.segmenter import as_batch
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


def test_windows_are_averaged_over_the_whole_image() -> None:
    images, window = noisy_batch((40, 50)), (24, 32)
    found = cs.Segmenter(NET, window=window)(images)
    total, times = torch.zeros(3, len(NAMES), 40, 50), torch.zeros(40, 50)
    with torch.inference_mode():
        for top in (0, 12, 16):
            for left in (0, 16, 18):
                part = (..., slice(top, top + 24), slice(left, left + 32))
                total[part] += F.interpolate(NET(images[part]), size=window, mode="bilinear")
                times[part] += 1
    assert torch.allclose(found.values, total / times, atol=1e-5)
    assert int(times.min()) >= 1


def test_noise_is_drawn_for_the_image_before_it_is_tiled() -> None:
    tiles = []

    def model(images: torch.Tensor) -> torch.Tensor:
        tiles.append(images.clone())
        return NET(images)

    cs.sample(cs.Segmenter(model, window=(16, 16), num_classes=5), picture((16, 24)), sigma=0.25, n0=1, n=1)
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
        (torch.zeros(1, 1, 4, 4), {}, "at least two classes"),
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
        ({"mean": (0.5, 0.5)}, "mean must be three numbers"),
        ({"mean": 0.5}, "mean must be three numbers"),
        ({"std": (0.5, 0.5, 0.0)}, "std must be positive"),
        ({"std": (0.5, 0.5, float("nan"))}, "std must be three numbers"),
        ({"integer_input": True, "mean": (0, 0, 0)}, "whole numbers"),
        ({"divisible_by": 0}, "divisible_by"),
        ({"input_size": (0, 4)}, "input_size must be"),
        ({"window": 5}, "window must be"),
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
    assert before.prepare.divisible_by == 8
    with pytest.raises(cs.InputError, match="mean must be three"):
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
    assert cs.Segmenter(NET, mean=(0.5, 0.5, 0.5)).prepare.describe() == ""
    words = cs.Segmenter(NET, input_size=(8, 9), integer_input=True, divisible_by=32, window=(5, 6)).prepare.describe()
    for word in ("windows of 5x6", "resized to 8x9 (bilinear)", "0..255", "multiple of 32"):
        assert word in words


def test_batches_are_channels_last_without_a_copy() -> None:
    pixels = np.random.default_rng(0).random((2, 4, 5, 3), np.float32)
    batch = as_batch(pixels)
    assert batch.shape == (2, 3, 4, 5)
    assert batch.data_ptr() == pixels.ctypes.data
