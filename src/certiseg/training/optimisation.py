"""Optimizer, learning rate and running average of a run, from torch.optim."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, PolynomialLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

if TYPE_CHECKING:
    from certiseg.training.config import TrainConfig

Tensors = tuple[Tensor, ...] | list[Tensor]


def make_optimizer(config: TrainConfig, network: nn.Module, *, fresh: Collection[str]) -> torch.optim.Optimizer:
    """AdamW or SGD; biases and BatchNorm are not decayed; what is not `fresh` learns at a share of the rate."""
    members: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        share = 1.0 if name in fresh else config.init_rate
        decay = config.weight_decay if parameter.ndim > 1 else 0.0
        members.setdefault((share, decay), []).append(parameter)
    groups = [
        {"params": parameters, "lr": config.lr * share, "weight_decay": decay}
        for (share, decay), parameters in sorted(members.items(), reverse=True)
    ]
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr)
    return torch.optim.SGD(groups, lr=config.lr, momentum=0.9, nesterov=True)


def make_schedule(config: TrainConfig, optimizer: torch.optim.Optimizer, *, steps: int) -> LRScheduler:
    """Linear warm-up, then (1 - t)^0.9 for poly, or half a cosine down to 1/1000 for one-cycle."""
    climb = min(round(config.warmup * steps), steps - 1)
    decay: LRScheduler
    if config.schedule == "poly":
        decay = PolynomialLR(optimizer, total_iters=steps - climb, power=0.9)
    else:
        decay = CosineAnnealingLR(optimizer, T_max=steps - climb, eta_min=config.lr / 1000)
    if climb == 0:
        return decay
    warmup = LinearLR(optimizer, start_factor=max(0.02, 1 / climb), total_iters=climb)
    return SequentialLR(optimizer, [warmup, decay], milestones=[climb])


def average_of(network: nn.Module, *, decay: float) -> AveragedModel:
    """An exponential average of weights and buffers, which generalises better than the weights of the last step.

    The memory is short in early steps, so that the start values are soon forgotten.
    """

    def blend(averages: Tensors, current: Tensors, updates: Tensor | int) -> None:
        done = int(updates)
        update = get_ema_multi_avg_fn(min(decay, (1 + done) / (10 + done)))  # type: ignore[no-untyped-call]
        update(averages, current, updates)

    average = AveragedModel(network, multi_avg_fn=blend, use_buffers=True)
    return average.eval().requires_grad_(False)
