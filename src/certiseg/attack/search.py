"""The search for a perturbation: projected gradient ascent in an l2 ball, in expectation over the noise.

Each step averages the gradient over fresh noise (Athalye et al. 2018), with momentum; the image stays in [0, 1], and
for grid noise the result is an 8-bit image. Of several restarts the one with the largest loss on other noise is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.attack.loss import Loss, require_gradient
from certiseg.noise import image_key, noise_stream
from certiseg.noise.gaussian import standard_normal

if TYPE_CHECKING:
    from certiseg.attack.settings import AttackSettings
    from certiseg.attack.targets import Target
    from certiseg.models.segmenter import Segmenter
    from certiseg.settings import Noise

_MOMENTUM = 0.75
_REACH = 2.5
"""Sum of all steps, in radii of the ball."""


def find_perturbation(
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    target: Target,
    *,
    size: float,
    sigma: float,
    attack: AttackSettings,
    seed: int,
    start: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """(H, W, 3): a perturbation of l2 norm at most `size` with as large a loss as the search found.

    start: one found for a smaller ball; the first restart begins there, stretched to the size.
    """
    require_gradient(segmenter)
    loss, noise = Loss(segmenter, target), _Noise(pixels, sigma, seed)
    image = _tensor(pixels)
    found = []
    for restart in range(attack.restarts):
        begin = _tensor(start) if restart == 0 and start is not None else 0.1 * noise.next(1)
        delta = _project(_stretched(begin, size if restart == 0 and start is not None else 0.1 * size), image, size)
        found.append(_ascend(loss, image, delta, noise, size, attack))
    judges = noise.next(attack.judges)
    worth = [_mean_loss(loss, image + delta, judges) for delta in found]
    best = found[int(np.argmax(worth))]
    return np.ascontiguousarray(best[0].permute(1, 2, 0).numpy())


def _ascend(loss: Loss, image: Tensor, delta: Tensor, noise: _Noise, size: float, attack: AttackSettings) -> Tensor:
    push = torch.zeros_like(delta)
    for step in range(attack.steps):
        variable = delta.clone().requires_grad_(True)
        for eps in noise.next(attack.samples):
            value = loss(image + variable + eps, lost_weight=step / (2 * attack.steps))
            torch.autograd.backward(value)  # one noise at a time: memory does not grow with their number
        assert variable.grad is not None
        push = _MOMENTUM * push + _stretched(variable.grad, 1.0)
        delta = _project(delta + _stretched(push, _REACH * size / attack.steps), image, size)
    return delta


def _mean_loss(loss: Loss, image: Tensor, noises: Tensor) -> float:
    with torch.no_grad():
        return float(np.mean([float(loss(image + eps)) for eps in noises]))


def _stretched(delta: Tensor, size: float) -> Tensor:
    norm = float(delta.double().norm())
    return delta * (size / norm) if norm > 0 else delta


def _project(delta: Tensor, image: Tensor, size: float) -> Tensor:
    """Into the image's range, which makes no value of delta larger, then into the ball."""
    delta = (image + delta).clamp(0, 1) - image
    norm = float(delta.double().norm())
    return delta * (size * (1 - 1e-6) / norm) if norm > size * (1 - 1e-6) else delta


def perturbed_image(
    pixels: NDArray[np.float32], delta: NDArray[np.float32], *, size: float, noise: Noise
) -> NDArray[np.float32]:
    """x + delta as the model gets it, in [0, 1], no further than `size` from x in spite of rounding."""
    if noise == "grid":
        return _on_grid(pixels, delta, size)
    moved: NDArray[np.float32] = np.clip(pixels + delta, 0, 1)
    while distance(moved, pixels) > size:
        delta = delta * np.float32(0.9999)
        moved = np.clip(pixels + delta, 0, 1)
    return moved


def distance(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """l2 distance of two images."""
    return float(np.linalg.norm((first.astype(np.float64) - second.astype(np.float64)).ravel()))


def _on_grid(pixels: NDArray[np.float32], delta: NDArray[np.float32], size: float) -> NDArray[np.float32]:
    """An 8-bit image: delta is rounded towards zero, then the largest remainders up while the size allows."""
    levels = np.rint(pixels * 255).astype(np.int64).ravel()
    wanted = (delta.astype(np.float64) * 255).ravel()
    whole = np.trunc(wanted).astype(np.int64)
    sign = np.sign(wanted).astype(np.int64)
    order = np.argsort(-np.abs(wanted - whole), kind="stable")
    cost = ((whole + sign) ** 2 - whole**2)[order]
    budget = (255 * size) ** 2 * (1 - 1e-6) - int((whole**2).sum())  # grey levels in float32 are not quite k / 255
    affordable = order[: int(np.searchsorted(np.cumsum(cost), budget, side="right"))]
    whole[affordable] += sign[affordable]
    moved: NDArray[np.float32] = np.clip(levels + whole, 0, 255).astype(np.float32) / np.float32(255)
    return moved.reshape(pixels.shape)


class _Noise:
    """Gaussian noise for the search, from a stream that no certificate uses."""

    def __init__(self, pixels: NDArray[np.float32], sigma: float, seed: int) -> None:
        self.shape, self.sigma, self.made = pixels.shape, np.float32(sigma), 0
        self.stream = noise_stream(seed=seed, image_key=image_key(pixels), stage="selection")

    def next(self, count: int) -> Tensor:
        """(count, 3, H, W): the next draws."""
        drawn = [standard_normal(self.stream, self.made + k, self.shape) * self.sigma for k in range(count)]
        self.made += count
        return torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2)


def _tensor(pixels: NDArray[np.float32]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pixels))[None].permute(0, 3, 1, 2)
