"""What certiseg is compared with: two pipelines of the same result, written out as one would, or as was published."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

TAU, ALPHA = 0.75, 0.001


def straightforward(
    model: Callable[[Tensor], Tensor], pixels: NDArray[np.float32], *, sigma: float, n0: int, n: int
) -> NDArray[np.int64]:
    """segcertify with float64 NumPy noise, full-resolution scores, all logits kept, and scipy's p-values."""
    from scipy.stats import binom

    size, rng = pixels.shape[:2], np.random.default_rng(0)
    logits: Tensor | None = None
    with torch.inference_mode():
        for draw in range(n0 + n):
            noisy = pixels + sigma * rng.standard_normal(pixels.shape)
            scores = model(torch.from_numpy(noisy).float().permute(2, 0, 1)[None])
            if logits is None:
                logits = torch.empty(n0 + n, scores.shape[1], *size)
            logits[draw] = F.interpolate(scores, size=size, mode="bilinear")[0]
        assert logits is not None
        candidate = logits[:n0].softmax(1).mean(0).argmax(0).numpy()
        hits = (logits[n0:].argmax(1).numpy() == candidate).sum(axis=0)
    p_values = binom.sf(hits - 1, n, TAU)
    return np.where(p_values <= ALPHA / candidate.size, candidate, -1)


def published(logits: Tensor, *, n0: int) -> NDArray[np.int64]:
    """The published steps after sampling: stored logits (n0 + n, C, H, W) -> arg max -> mode -> compare -> p-values."""
    return decided(logits.argmax(1).numpy(), n0=n0)


def decided(labels: NDArray[np.int64], *, n0: int) -> NDArray[np.int64]:
    """Label maps (n0 + n, H, W) -> mode -> compare -> p-values."""
    from scipy.stats import binom, mode

    candidate = mode(labels[:n0], axis=0).mode
    hits = (labels[n0:] == candidate).sum(axis=0)
    p_values = binom.sf(hits - 1, len(labels) - n0, TAU)
    return np.where(p_values <= ALPHA / candidate.size, candidate, -1)


def published_labels(
    model: Callable[[Tensor], Tensor], pixels: NDArray[np.float32], *, sigma: float, draws: int
) -> NDArray[np.int64]:
    """Noise, passes, up-sampling, all logits of these draws kept, then arg max: (draws, H, W)."""
    size, clean = pixels.shape[:2], torch.from_numpy(pixels).permute(2, 0, 1)[None].contiguous()
    logits: Tensor | None = None
    with torch.inference_mode():
        for draw in range(draws):
            scores = F.interpolate(model(clean + sigma * torch.randn_like(clean)), size=size, mode="bilinear")
            if logits is None:
                logits = torch.empty(draws, scores.shape[1], *size)
            logits[draw] = scores[0]
        assert logits is not None
        return logits.argmax(1).numpy()
