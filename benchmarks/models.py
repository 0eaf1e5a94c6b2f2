"""The models that are measured, and one that only replays: it stands for a model that takes no time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import certiseg as cs
from benchmarks.measure import DEVICE
from certiseg.datasets import open_dataset
from certiseg.images import read_image
from certiseg.models.hrnet import hrnet_w48
from certiseg.models.segmenter import IMAGENET_MEAN, IMAGENET_STD


def street_pixels(height: int = 360, width: int = 480) -> NDArray[np.float32]:
    """A street scene, stretched to that size."""
    pixels = torch.from_numpy(read_image(open_dataset("streets")[0].image)).permute(2, 0, 1)[None]
    return torch.nn.functional.interpolate(pixels, size=(height, width))[0].permute(1, 2, 0).contiguous().numpy()


def compact() -> cs.Segmenter:
    """`compact` on the device that is measured."""
    return cs.load_model("compact", device=DEVICE)


def hrnet(num_classes: int = 19) -> cs.Segmenter:
    """HRNet-W48 with random weights: its speed does not depend on them."""
    torch.manual_seed(0)
    network = hrnet_w48(num_classes).to(DEVICE)
    return cs.Segmenter(network, num_classes=num_classes, mean=IMAGENET_MEAN, std=IMAGENET_STD, align_corners=True)


class Replayed:
    """Returns stored scores; which ones, the bits of the first value of an image decide."""

    def __init__(self, scores: list[torch.Tensor]) -> None:
        self.scores = scores

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.scores[int(first.view(torch.int32)) % len(self.scores)] for first in images[:, 0, 0, 0]])


def replayed_compact(pixels: NDArray[np.float32], *, sigma: float = 0.25, draws: int = 8) -> Replayed:
    """Some answers of `compact` to noisy images."""
    model, rng = cs.load_model("compact"), np.random.Generator(np.random.Philox(0))
    noisy = [pixels + np.float32(sigma) * rng.standard_normal(pixels.shape, np.float32) for _ in range(draws)]
    with torch.inference_mode():
        return Replayed([model.model(torch.from_numpy(image).permute(2, 0, 1)[None]) for image in noisy])


def replayed_scores(height: int, width: int, num_classes: int, *, draws: int = 4) -> Replayed:
    """Smooth scores with noise, at a quarter of the resolution: about a sixth of the cells has corners that differ."""
    torch.manual_seed(0)
    size = (height // 4, width // 4)
    coarse = torch.nn.functional.interpolate(4 * torch.randn(1, num_classes, 12, 16), size=size, mode="bilinear")
    return Replayed([coarse + 0.5 * torch.randn(coarse.shape) for _ in range(draws)])
