"""A running average of the weights, which generalises better than the last step's weights."""

from __future__ import annotations

import copy

import torch
from torch import nn


class Average:
    """average <- decay * average + (1 - decay) * weights after each step; early steps use a shorter memory."""

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.network = copy.deepcopy(network).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Take in the weights after a step; counters and other integers are copied."""
        decay = min(self.decay, (1 + step) / (10 + step))
        floats, sources = [], []
        current = network.state_dict()
        for name, value in self.network.state_dict().items():
            if value.is_floating_point():
                floats.append(value)
                sources.append(current[name])
            else:
                value.copy_(current[name])
        torch._foreach_lerp_(floats, sources, 1 - decay)
