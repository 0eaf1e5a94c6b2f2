"""Loss, class weights, schedule, average and validation scores against plain re-computations."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from certiseg.datasets.base import Sample
from certiseg.training.config import TrainConfig
from certiseg.training.losses import class_weights, labels_at, segmentation_loss
from certiseg.training.optimisation import average_of, make_optimizer, make_schedule
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
@pytest.mark.parametrize("warmup", [0.0, 0.1])
def test_schedule_climbs_then_falls(schedule: str, warmup: float) -> None:
    config = TrainConfig(dataset="folder", root=None, out="unused", lr=0.5, schedule=schedule, warmup=warmup)
    optimizer = make_optimizer(config, nn.Linear(2, 2), fresh=("weight", "bias"))
    climbing = make_schedule(config, optimizer, steps=100)
    shares = []
    for _ in range(100):
        shares.append(optimizer.param_groups[0]["lr"] / 0.5)
        optimizer.step()
        climbing.step()
    top = round(100 * warmup)
    assert shares.index(max(shares)) == top
    assert max(shares) == pytest.approx(1)
    assert shares[: top + 1] == sorted(shares[: top + 1])
    t = (np.arange(top, 100) - top) / (100 - top)
    expected = (1 - t) ** 0.9 if schedule == "poly" else 0.001 + 0.999 * (1 + np.cos(np.pi * t)) / 2
    np.testing.assert_allclose(shares[top:], expected, rtol=1e-9)


@pytest.mark.parametrize("schedule", ["poly", "one-cycle"])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 11])
def test_short_runs_have_a_positive_rate_at_every_step(schedule: str, steps: int) -> None:
    config = TrainConfig(dataset="folder", root=None, out="unused", schedule=schedule, warmup=0.5)
    optimizer = make_optimizer(config, nn.Linear(2, 2), fresh=("weight", "bias"))
    climbing = make_schedule(config, optimizer, steps=steps)
    for _ in range(steps):
        assert 0 < climbing.get_last_lr()[0] <= config.lr
        optimizer.step()
        climbing.step()


def test_average_starts_at_the_weights_and_forgets_by_its_decay() -> None:
    network = nn.BatchNorm1d(2)
    average = average_of(network, decay=0.5)
    values = [1.0, 4.0, -2.0, 7.0, 0.5]
    expected = values[0]
    for update, value in enumerate(values):
        with torch.no_grad():
            network.weight.fill_(value)
            network.running_mean.fill_(value)
        average.update_parameters(network)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * value if update else value
        assert average.module.weight.tolist() == pytest.approx([expected] * 2)
        assert average.module.running_mean.tolist() == pytest.approx([expected] * 2)
    assert not any(value.requires_grad for value in average.parameters())


def test_scores_by_hand() -> None:
    label = torch.tensor([[0, 0, 0, 1, 1, 255]])
    predicted = torch.tensor([[0, 0, 1, 1, 2, 0]])
    scores = scores_of(count_pairs(label, predicted, num_classes=3).numpy(), loss=0.0)
    assert scores.pixel_accuracy == pytest.approx(3 / 5)
    assert scores.mean_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert scores.miou == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)  # class 2 is predicted, so it counts


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


def test_given_weights_learn_at_a_share_of_the_rate() -> None:
    config = TrainConfig(dataset="streets", root=None, out="", lr=0.01, init_rate=0.25, weight_decay=0.1)
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    groups = make_optimizer(config, network, fresh=("1.weight", "1.bias")).param_groups
    assert [(group["lr"], group["weight_decay"], len(group["params"])) for group in groups] == [
        (0.01, 0.1, 1),
        (0.01, 0.0, 1),
        (0.0025, 0.1, 1),
        (0.0025, 0.0, 1),
    ]
    assert groups[2]["params"][0] is network[0].weight
