"""Convolutions as torch runs them fastest."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

POINT = (1, 1)
SMALL = 20480
"""Values of a single image up to which torch keeps to loops of its own, whatever a kernel is called."""


class Convolution(nn.Conv2d):
    """A convolution. On the CPU one of a single point is called dilated, which means nothing to it.

    On one thread torch gives plain 1x1 kernels to a slow loop of its own, dilated ones to oneDNN: a pass of `compact`
    then takes two thirds of the time. For small inputs it is the other way: its loop for dilated kernels is the slowest
    of all. On other devices it stays plain.
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # what nn.Conv2d calls
        point = self.kernel_size == POINT and input.device.type == "cpu"
        dilation = 2 if point and not _is_small(input) else self.dilation
        return F.conv2d(input, weight, bias, self.stride, self.padding, dilation, self.groups)  # type: ignore[arg-type]


def _is_small(input: Tensor) -> bool:
    tracing = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if tracing or torch.compiler.is_compiling():  # a graph for any size
        return False
    return len(input) == 1 and input.numel() <= SMALL
