"""Convolutions as torch runs them fastest."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

POINT = (1, 1)


class Convolution(nn.Conv2d):
    """A convolution. On the CPU one of a single point is called dilated, which means nothing to it.

    On one thread torch gives plain 1x1 kernels to a slow loop of its own, dilated ones to oneDNN: a pass of `compact`
    then takes two thirds of the time. On other devices it stays plain.
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # what nn.Conv2d calls
        dilation = 2 if self.kernel_size == POINT and input.device.type == "cpu" else self.dilation
        return F.conv2d(input, weight, bias, self.stride, self.padding, dilation, self.groups)  # type: ignore[arg-type]
