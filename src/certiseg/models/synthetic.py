"""A segmenter whose class shares under noise are known in advance, for tests and first steps.

At each pixel the class is read off the noise of that pixel's red value: z = (x' - x) / sigma is standard normal under
smoothing, so cutting the real line at the quantiles of the wanted shares gives each class exactly its share. It is an
ordinary deterministic function of the image x', and every other pixel is independent of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certiseg.archive import digest
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.models.segmenter import Segmenter


class SyntheticSegmenter(Segmenter):
    """Draws class c at pixel (i, j) of `image` with probability shares[i, j, c] under noise of the given sigma."""

    def __init__(
        self,
        shares: NDArray[np.floating],
        *,
        sigma: float = 0.25,
        image: NDArray[np.float32] | None = None,
        class_names: tuple[str, ...] | None = None,
        hierarchy: str | None = None,
    ) -> None:
        shares = np.asarray(shares, np.float64)
        if shares.ndim != 3 or shares.min() < 0 or not np.allclose(shares.sum(-1), 1):
            raise InputError(f"shares must be (H, W, C), not negative and add up to 1, got shape {shares.shape}")
        self.shares, self.sigma = shares, sigma
        self.image = np.full((*shares.shape[:2], 3), 0.5, np.float32) if image is None else image
        super().__init__(
            _ReadNoise(self),
            num_classes=shares.shape[2],
            class_names=class_names,
            scores="labels",
            hierarchy=hierarchy,
            name="synthetic",
        )


class _ReadNoise:
    """The model inside a SyntheticSegmenter."""

    def __init__(self, owner: SyntheticSegmenter) -> None:
        from scipy.special import ndtri

        upper = np.minimum(np.cumsum(owner.shares, axis=-1)[..., :-1], 1.0)
        self.cuts = ndtri(upper)
        self.image, self.sigma = owner.image, owner.sigma

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        if tuple(images.shape[2:]) != self.image.shape[:2]:
            raise InputError(
                f"image must be the synthetic model's own scene of size {self.image.shape[:2]} (model.image), "
                f"got size {tuple(images.shape[2:])}"
            )
        red = images[:, 0].numpy().astype(np.float64)
        z = (red - self.image[..., 0]) / self.sigma
        return torch.from_numpy((z[..., None] > self.cuts).sum(axis=-1))

    def fingerprint(self) -> str:
        return digest(self.cuts) + digest(self.image) + repr(self.sigma)


def synthetic_scene(*, height: int = 96, width: int = 128, seed: int = 0, sigma: float = 0.25) -> SyntheticSegmenter:
    """A small street in the CamVid classes: sky, houses, trees, road, a car and a pedestrian, surest inside objects.

    Towards the edge of an object the votes go over to its neighbours, first to classes of the same kind.
    """
    hierarchy = load_hierarchy("camvid")
    label = _scene_labels(height, width, hierarchy.id)
    shares = _blurred_shares(label, hierarchy.num_classes, np.random.Generator(np.random.Philox(seed)))
    colours = np.random.Generator(np.random.Philox(seed + 1)).integers(40, 216, (hierarchy.num_classes, 3))
    image = (colours[label].astype(np.float32)) / np.float32(255)
    return SyntheticSegmenter(shares, sigma=sigma, image=image, class_names=hierarchy.classes, hierarchy="camvid")


def _scene_labels(height: int, width: int, class_id: Any) -> NDArray[np.int64]:
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width]).reshape(2, 1, 1)
    label = np.full((height, width), class_id("Sky"))
    label[(y > 0.25) & ((x < 0.3) | (x > 0.7))] = class_id("Building")
    label[(y > 0.35) & (abs(x - 0.3) < 0.08)] = class_id("Tree")
    label[y > 0.55] = class_id("Sidewalk")
    label[(y > 0.55) & (abs(x - 0.5) < (y - 0.45))] = class_id("Road")
    label[(y > 0.6) & (abs(x - 0.5) < 0.012)] = class_id("LaneMkgsDriv")
    label[(abs(y - 0.68) < 0.1) & (abs(x - 0.68) < 0.12)] = class_id("Car")
    label[(abs(y - 0.62) < 0.12) & (abs(x - 0.2) < 0.025)] = class_id("Pedestrian")
    return label


def _blurred_shares(label: NDArray[np.int64], num_classes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """One-hot labels mixed with their neighbourhood, and a little with every class."""
    from scipy.ndimage import uniform_filter

    one_hot = np.eye(num_classes)[label]
    near = uniform_filter(one_hot, size=(9, 9, 0), mode="nearest")
    shares: NDArray[np.float64] = (
        0.85 * near + 0.149 * one_hot + 0.001 * rng.dirichlet(np.ones(num_classes), label.shape)
    )
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares
