"""A small Gaussian denoiser in front of any model: denoiser and model together are the function that is certified.

A U-shaped residual network of ours that is told sigma, trained on real street images. It needs no labels and no access
to the model, so it helps networks that were never trained under noise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certiseg.models.layers import Convolution
from certiseg.models.weight_files import load_weights, read_weights

WEIGHTS = Path(__file__).parent / "weights" / "denoiser.safetensors"


class Denoiser(nn.Module):
    """x + eps, sigma -> an estimate of x; images (B, 3, H, W) of any size, sigma one number per image or for all."""

    def __init__(self, *, width: int = 32) -> None:
        super().__init__()
        widths = (width, 2 * width, 3 * width)
        self.enter = nn.Conv2d(13, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths))
        self.encode = nn.ModuleList(_Block(w) for w in widths)
        self.up = nn.ModuleList(Convolution(b, a, 1) for a, b in pairwise(widths))
        self.decode = nn.ModuleList(_Block(w) for w in widths[:-1])
        self.leave = nn.Conv2d(widths[0], 12, 3, padding=1)

    def forward(self, images: Tensor, sigma: float | Tensor) -> Tensor:
        height, width = images.shape[2:]
        padded = F.pad(images, (0, -width % 8, 0, -height % 8), mode="replicate")
        x = F.pixel_unshuffle(padded - 0.5, 2)
        level = (
            torch.as_tensor(sigma, dtype=x.dtype, device=x.device).reshape(-1, 1, 1, 1).expand(len(x), 1, *x.shape[2:])
        )
        x = self.encode[0](self.enter(torch.cat([x, level], dim=1)))
        skips = []
        for down, block in zip(self.down, self.encode[1:], strict=True):
            skips.append(x)
            x = block(down(x))
        for up, block, skip in zip(reversed(self.up), reversed(self.decode), reversed(skips), strict=True):
            x = block(F.interpolate(up(x), scale_factor=2.0, mode="nearest") + skip)
        noise = F.pixel_shuffle(self.leave(x), 2) * torch.as_tensor(sigma, device=x.device).reshape(-1, 1, 1, 1)
        return (padded - noise)[:, :, :height, :width]


class _Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        change: Tensor = self.second(F.relu(self.first(F.relu(x))))
        return x + change


def load_denoiser(path: str | Path = WEIGHTS) -> Denoiser:
    """The denoiser that ships with the package, or one with the same shape from another safetensors file."""
    state = read_weights(path)
    entry = state.get("enter.weight")
    denoiser = Denoiser(width=len(entry) if entry is not None and entry.ndim == 4 else 32)
    load_weights(denoiser, path, state=state)
    return denoiser.eval()


@dataclass(frozen=True)
class Denoising:
    """A denoiser set to one sigma."""

    denoiser: Denoiser
    sigma: float

    def __call__(self, images: Tensor) -> Tensor:
        found: Tensor = self.denoiser(images, self.sigma)
        return found

    def fingerprint(self, of_model: str) -> str:
        """A hash of the denoiser and of the model behind it."""
        hashed = hashlib.sha256(f"{of_model} seen through a denoiser at {self.sigma!r}".encode())
        for name, tensor in sorted(self.denoiser.state_dict().items()):
            hashed.update(name.encode() + tensor.cpu().numpy().tobytes())
        return hashed.hexdigest()
