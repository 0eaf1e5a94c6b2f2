"""One process or several: `torchrun` sets the environment, everything else asks this file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Process:
    """One process among all: rank 0 of 1 unless torchrun started several."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """The one that writes files."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network whose gradients are averaged over all processes."""
        return nn.parallel.DistributedDataParallel(network) if self.world > 1 else network

    def mean(self, value: float) -> float:
        """The mean of a number over all processes."""
        if self.world == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        torch.distributed.all_reduce(total)
        return float(total) / self.world

    @torch.no_grad()
    def share(self, network: nn.Module) -> None:
        """Give all processes the tensors of the first; BatchNorm statistics differ until then."""
        if self.world > 1:
            for value in network.state_dict().values():
                torch.distributed.broadcast(value, src=0)

    def wait(self) -> None:
        """Go on only when all are here."""
        if self.world > 1:
            torch.distributed.barrier()


@contextmanager
def join_processes() -> Iterator[Process]:
    """The group of processes that torchrun started (gloo, so no accelerator is needed), left again at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Process()
        return
    torch.distributed.init_process_group("gloo")
    try:
        yield Process(torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        torch.distributed.destroy_process_group()
