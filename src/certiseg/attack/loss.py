"""What an attack maximises: the evidence against the certified labels, through the torch model.

At a pixel with certified classes S the loss is -log P(S), P the softmax of the scores of the pixel, after up-sampling.
As in SegPGD (Gu, Zhao, Tresp, Torr 2022) pixels that the model still gives to S count 1 - w and those that it has
already lost count w, where w grows from 0 to 1/2 over the steps: first many pixels are turned, then they are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.attack.targets import Target
    from certiseg.models.segmenter import Segmenter


def require_gradient(segmenter: Segmenter) -> None:
    """Refuse models that gradients cannot pass through."""
    model = segmenter.model
    wrong = None
    if not isinstance(model, torch.nn.Module):
        wrong = f"a {type(model).__name__}"
    elif segmenter.kind == "labels":
        wrong = "one that gives labels"
    elif segmenter.arrays != "torch":
        wrong = "one that takes arrays"
    elif segmenter.settings.integer_input:
        wrong = "one that rounds its input"
    if wrong is not None:
        raise InputError(f"model must be a torch module that gives scores, to be attacked by gradients, got {wrong}")


def scores_of(segmenter: Segmenter, images: Tensor) -> Tensor:
    """(B, C, H, W): log-scores of every pixel of the image, with their gradients."""
    scores = segmenter.scores(images)
    values = scores.at_full_size()
    return values if scores.kind == "logits" else values.clamp_min(1e-12).log()


class Loss:
    """The loss of one target, for images (B, 3, H, W)."""

    def __init__(self, segmenter: Segmenter, target: Target) -> None:
        self.segmenter = segmenter
        self.place = torch.from_numpy(target.pixels.reshape(-1)).nonzero()[:, 0].to(segmenter.device)
        allowed = torch.from_numpy(target.allowed.reshape(-1, target.allowed.shape[-1])[target.pixels.reshape(-1)])
        self.allowed = allowed.T.to(segmenter.device)

    def __call__(self, images: Tensor, *, lost_weight: float = 0.5) -> Tensor:
        """The mean over the target's pixels and the images."""
        scores = scores_of(self.segmenter, images).flatten(2)[:, :, self.place]
        inside = scores.masked_fill(~self.allowed, -torch.inf).logsumexp(1)
        outside = scores.masked_fill(self.allowed, -1e9).logsumexp(1)
        against = torch.nn.functional.softplus(outside - inside)
        lost = (outside > inside).detach()
        return (against * torch.where(lost, lost_weight, 1 - lost_weight)).mean()
