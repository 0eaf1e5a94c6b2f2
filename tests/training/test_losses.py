"""Loss, class weights, schedule, average and validation scores against plain re-computations."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from certiseg.datasets.base import Sample
from certiseg.training.ema import Average
from certiseg.training.losses import class_weights, labels_at, segmentation_loss
from certiseg.training.schedule import learning_rate_share
from certiseg.training.validate import count_pairs, scores_of, validate


def case() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 4, 6, 5, generator=generator)
    labels = torch.randint(0, 4, (2, 6, 5), generator=generator)
    labels[0, :2] = 255
    return logits, labels


@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_torchs_cross_entropy(weighted: bool) -> None:
    logits, labels = case()
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0]) if weighted else None
    expected = F.cross_entropy(logits, labels, weight=weights, ignore_index=255)
    for at in ("image", "logits"):
        torch.testing.assert_close(segmentation_loss(logits, labels, weights=weights, at=at), expected)


def test_ohem_keeps_the_hardest_labelled_pixels() -> None:
    logits, labels = case()
    losses = F.cross_entropy(logits, labels, ignore_index=255, reduction="none")[labels != 255]
    kept = losses.sort(descending=True).values[: round(0.3 * losses.numel())]
    torch.testing.assert_close(segmentation_loss(logits, labels, ohem=0.3), kept.mean())


@pytest.mark.parametrize("ohem", [1.0, 0.5])
def test_void_alone_has_no_loss(ohem: float) -> None:
    logits, labels = case()
    loss = segmentation_loss(logits.requires_grad_(), torch.full_like(labels, 255), ohem=ohem)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0


def test_labels_under_the_centres() -> None:
    labels = torch.arange(64).view(1, 8, 8)
    assert labels_at(labels, (2, 2)).flatten().tolist() == [18, 22, 50, 54]
    assert labels_at(torch.arange(7).view(1, 1, 7), (1, 3)).flatten().tolist() == [1, 3, 5]


def test_class_weights_have_mean_one_over_pixels() -> None:
    label = np.repeat(np.array([0, 1, 2, 255], np.uint8), [64, 32, 4, 100])[None]
    weights = class_weights([Sample("a", label, label)], num_classes=4, power=0.5)
    assert weights is not None
    share = torch.tensor([0.64, 0.32, 0.04, 0.0])
    assert float((weights * share).sum()) == pytest.approx(1, abs=1e-5)
    assert float(weights[2] / weights[0]) == pytest.approx(4, abs=1e-4)
    assert weights[3] == 1
    assert class_weights([], num_classes=4, power=0) is None


@pytest.mark.parametrize("schedule", ["poly", "one-cycle"])
def test_schedule_climbs_then_falls(schedule: str) -> None:
    shares = [learning_rate_share(step, 100, schedule=schedule, warmup=0.1) for step in range(100)]
    assert shares[9] == pytest.approx(1)
    assert all(a <= b for a, b in itertools.pairwise(shares[:10]))
    assert all(a >= b for a, b in itertools.pairwise(shares[9:]))
    assert 0 < shares[-1] < 0.05


def test_average_follows_the_weights() -> None:
    network = nn.BatchNorm1d(2)
    average = Average(network, decay=0.5)
    with torch.no_grad():
        network.weight.fill_(3)
        network.num_batches_tracked.fill_(7)
    average.update(network, step=1000)
    assert average.network.weight.tolist() == [2, 2]
    assert average.network.num_batches_tracked == 7


def test_scores_by_hand() -> None:
    label = torch.tensor([[0, 0, 0, 1, 1, 255]])
    predicted = torch.tensor([[0, 0, 1, 1, 2, 0]])
    scores = scores_of(count_pairs(label, predicted, num_classes=3).numpy(), loss=0.0)
    assert scores.pixel_accuracy == pytest.approx(3 / 5)
    assert scores.mean_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert scores.miou == pytest.approx((2 / 3 + 1 / 3) / 2)


def test_validation_noise_is_fixed_and_clean_is_clean() -> None:
    class Bright(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            value = images.mean(1, keepdim=True)
            return torch.cat([0.5 - value, value - 0.5], 1)

    image = np.zeros((40, 40, 3), np.uint8)
    image[:20] = 255
    label = (image[..., 0] > 0).astype(np.uint8)
    samples = [Sample("a", image, label)]
    assert validate(Bright(), samples, num_classes=2, sigma=0).pixel_accuracy == 1
    noisy = validate(Bright(), samples, num_classes=2, sigma=0.7)
    assert 0.7 < noisy.pixel_accuracy < 1
    assert noisy == validate(Bright(), samples, num_classes=2, sigma=0.7)
