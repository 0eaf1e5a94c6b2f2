"""Convolutions as torch runs them fastest."""

from __future__ import annotations

from torch import nn


def convolution(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, *, padding: int = 0, groups: int = 1, bias: bool = True
) -> nn.Conv2d:
    """A convolution. One of a single point is called dilated, which means nothing to it.

    On one thread torch gives plain 1x1 kernels to a slow loop of its own, dilated ones to oneDNN: a pass of `compact`
    then takes 34 ms instead of 55.
    """
    dilation = 2 if kernel == 1 else 1
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias)
