"""A small Gaussian denoiser in front of any model: denoiser and model together are the function that is certified.

A U-shaped residual network of ours that is told sigma, trained on real street images. It needs no labels and no access
to the model, so it helps networks that were never trained under noise.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certiseg.errors import InputError
from certiseg.models.segmenter import Scores, Segmenter

WEIGHTS = Path(__file__).parent / "weights" / "denoiser.safetensors"


class Denoiser(nn.Module):
    """x + eps, sigma -> an estimate of x; images (B, 3, H, W) of any size, sigma one number per image or for all."""

    def __init__(self, *, width: int = 32) -> None:
        super().__init__()
        widths = (width, 2 * width, 3 * width)
        self.enter = nn.Conv2d(13, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths))
        self.encode = nn.ModuleList(_Block(w) for w in widths)
        self.up = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in pairwise(widths))
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
        return x + self.second(F.relu(self.first(F.relu(x))))


def load_denoiser(path: str | Path = WEIGHTS) -> Denoiser:
    """The denoiser that ships with the package, or one with the same shape from another safetensors file."""
    from safetensors.torch import load_file

    if not Path(path).is_file():
        raise InputError(f"denoiser must be a weights file, got {str(path)!r}, which is not there")
    try:
        weights = {name: tensor.float() for name, tensor in load_file(path).items()}
    except Exception as error:
        raise InputError(f"{path}: must be a safetensors file, got: {error}") from None
    denoiser = Denoiser(width=len(weights["enter.weight"]) if "enter.weight" in weights else 32)
    try:
        denoiser.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"{path}: must hold the weights of the denoiser, got: {str(error).splitlines()[-1].strip()}"
        ) from None
    return denoiser.eval()


class DenoisedSegmenter(Segmenter):
    """A segmenter that sees images through the denoiser set to one sigma."""

    def __init__(self, inner: Segmenter, denoiser: Denoiser, *, sigma: float) -> None:
        self.inner, self.denoiser, self.sigma = inner, denoiser.to(inner.device), sigma

    def __getattr__(self, name: str) -> Any:
        # Whatever is not about denoising is a question to the segmenter inside.
        if name in ("inner", "denoiser", "sigma"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def __call__(self, images: Tensor) -> Scores:
        with torch.inference_mode():
            return self.inner(self.denoiser(images.to(self.device), self.sigma))

    def fingerprint(self) -> str:
        hashed = hashlib.sha256(f"{self.inner.fingerprint()} seen through a denoiser at {self.sigma!r}".encode())
        for name, tensor in sorted(self.denoiser.state_dict().items()):
            hashed.update(name.encode() + tensor.cpu().numpy().tobytes())
        return hashed.hexdigest()

    def preparation(self) -> dict[str, Any]:
        return {**self.inner.preparation(), "denoiser_sigma": self.sigma}


def with_denoiser(segmenter: Segmenter, *, sigma: float, path: str | Path = WEIGHTS) -> Segmenter:
    """The segmenter with the denoiser in front of it, told that the noise has this sigma."""
    if not sigma > 0:
        raise InputError(f"sigma must be a positive number, got {sigma}")
    return DenoisedSegmenter(segmenter, load_denoiser(path), sigma=sigma)
