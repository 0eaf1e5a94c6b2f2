"""A tiny model whose smoothed behaviour is known, and a certificate of it."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm

import certiseg as cs
from certiseg.models.segmenter import Segmenter, as_segmenter

SIGMA = 0.25
SIDE = 18


class RedSide(torch.nn.Module):
    """Class 1 where red is above 0.5: a half space per pixel, so shares and worst perturbations are known."""

    def __init__(self) -> None:
        super().__init__()
        self.steepness = torch.nn.Parameter(torch.tensor(8.0))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        red = images[:, 0]
        return self.steepness * torch.stack([0.5 - red, red - 0.5, torch.full_like(red, -2.0)], dim=1)


def red_model() -> Segmenter:
    return as_segmenter(RedSide())


def picture() -> np.ndarray:
    """Red falls from 1 at the left to 0 at the right, in whole grey levels."""
    red = np.rint(np.linspace(255, 0, SIDE)).astype(np.uint8)
    return np.stack([np.tile(red, (SIDE, 1)), *2 * [np.full((SIDE, SIDE), 100, np.uint8)]], axis=-1)


def share(red: float) -> float:
    """P(class 1) under noise."""
    return float(norm.cdf((red - 0.5) / SIGMA))


def certificate(noise: str = "gaussian", method: str = "segcertify") -> cs.Certificate:
    votes = cs.sample(red_model(), picture(), sigma=SIGMA, n=120, noise=noise)  # type: ignore[arg-type]
    return cs.certify(votes, method=method, alpha=0.01)  # type: ignore[arg-type]
