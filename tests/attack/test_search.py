"""The search: inside its ball, close to the best there is where that is known, gradients as by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.attack.loss import Loss, require_gradient
from certiseg.attack.search import distance, find_perturbation, perturbed_image
from certiseg.attack.settings import AttackSettings
from certiseg.attack.targets import target_of
from certiseg.images import read_image
from certiseg.models.compact import load_compact
from certiseg.models.segmenter import Segmenter, as_segmenter
from certiseg.models.synthetic import synthetic_scene

from .small import SIGMA, certificate, picture, red_model

SEARCH = AttackSettings(steps=10, restarts=2, samples=2)


def find(size: float, target: str = "pixel", **other: object) -> np.ndarray:
    options = {"size": size, "sigma": SIGMA, "attack": SEARCH, "seed": 1, **other}
    return find_perturbation(red_model(), read_image(picture()), target_of(certificate(), target), **options)  # type: ignore[arg-type]


def test_for_one_pixel_of_a_half_space_the_whole_budget_goes_to_its_red() -> None:
    target = target_of(certificate(), "pixel")
    delta = find(0.3)
    red = delta[..., 0][target.pixels][0]
    towards = 1 if target.allowed[target.pixels][0][0] else -1  # away from the certified side
    assert towards * red > 0.29
    assert np.linalg.norm(delta) <= 0.3


@pytest.mark.parametrize("size", [0.01, 0.17, 2.0])
@pytest.mark.parametrize("target", ["all", "pixel", "patch"])
def test_perturbations_stay_in_the_ball_and_the_image_in_its_range(size: float, target: str) -> None:
    pixels, delta = read_image(picture()), find(size, target)
    moved = perturbed_image(pixels, delta, size=size, noise="gaussian")
    assert 0.5 * size < distance(moved, pixels) <= size or moved.min() == 0 or moved.max() == 1
    assert distance(moved, pixels) <= size
    assert moved.min() >= 0
    assert moved.max() <= 1


@pytest.mark.parametrize("size", [0.003, 0.01, 0.17, 2.0])
def test_for_grid_noise_the_perturbed_image_is_8_bit_and_in_the_ball(size: float) -> None:
    pixels, delta = read_image(picture()), find(size, "all")
    moved = perturbed_image(pixels, delta, size=size, noise="grid")
    np.testing.assert_array_equal(np.rint(moved * 255).astype(np.float32) / np.float32(255), moved)
    assert distance(moved, pixels) <= size
    assert (distance(moved, pixels) > 0.9 * size) == (size > 1 / 255)


def test_a_search_from_a_smaller_ball_is_no_worse_and_the_same_seed_gives_the_same() -> None:
    loss = Loss(red_model(), target_of(certificate(), "all"))
    image = torch.from_numpy(read_image(picture()))[None].permute(0, 3, 1, 2)

    def worth(delta: np.ndarray) -> float:
        with torch.no_grad():
            return float(loss(image + torch.from_numpy(delta)[None].permute(0, 3, 1, 2)))

    small = find(0.5, "all")
    large = find(1.0, "all", start=small)
    assert worth(np.zeros_like(small)) < worth(small) < worth(large)
    np.testing.assert_array_equal(find(0.5, "all"), small)


def test_gradients_pass_through_the_up_sampling_of_a_real_network() -> None:
    model = Segmenter(load_compact().double(), num_classes=31)
    rng = np.random.default_rng(0)
    votes = cs.Votes.from_predictions(
        np.moveaxis(rng.dirichlet(np.ones(31), (2, 40, 48)), -1, 1), np.zeros((60, 40, 48), np.uint8), sigma=0.25
    )
    made = cs.certify(votes, method="segcertify", alpha=0.9, tau=0.5)
    loss = Loss(model, target_of(made, "pixel"))
    image = torch.rand(1, 3, 40, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    variable = image.clone().requires_grad_(True)
    loss(variable).backward()
    assert variable.grad is not None
    direction = variable.grad / variable.grad.norm()
    step = 1e-3
    with torch.no_grad():
        slope = (float(loss(image + step * direction)) - float(loss(image - step * direction))) / (2 * step)
    assert slope == pytest.approx(float(variable.grad.norm()), rel=0.02)
    assert slope > 0


def test_the_loss_tells_held_pixels_from_lost_ones() -> None:
    target = target_of(certificate(), "all")
    loss = Loss(red_model(), target)
    image = torch.from_numpy(read_image(picture()))[None].permute(0, 3, 1, 2)
    turned = 1 - image
    with torch.no_grad():
        assert float(loss(turned)) > 5 * float(loss(image))
        assert float(loss(turned, lost_weight=0.0)) < 1e-6, "pixels that are already lost do not count at first"


def test_models_without_gradients_are_refused_with_a_sentence() -> None:
    with pytest.raises(cs.InputError, match="torch module that gives scores"):
        require_gradient(synthetic_scene(height=8, width=8))
    with pytest.raises(cs.InputError, match="one that gives labels"):
        require_gradient(Segmenter(torch.nn.Identity(), scores="labels", num_classes=2))
    with pytest.raises(cs.InputError, match="one that takes arrays"):
        require_gradient(Segmenter(torch.nn.Identity(), arrays="numpy"))
    require_gradient(as_segmenter(torch.nn.Identity()))
    with pytest.raises(cs.InputError, match="steps must be at least 1"):
        AttackSettings(steps=0)
