"""Convolutions as torch runs them fastest."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

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


_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_convolution_weight")  # type: ignore[no-untyped-call]
_Numbers = tuple[int, ...]
_KEPT: WeakKeyDictionary[nn.Module, dict[_Numbers, tuple[list[_Numbers], Tensor, Tensor]]] = WeakKeyDictionary()
_PLACES = 4
"""Numbers of threads with shapes of inputs for which a kernel is kept: its order suits one and makes others slow."""


def convolve(x: Tensor, conv: Convolution, norm: nn.BatchNorm2d, *, relu6: bool) -> Tensor:
    """A convolution, BatchNorm that no longer learns and ReLU6 (if asked) in one step.

    Where no gradient is asked for, the kernels are merged once and kept in oneDNN's own order, into which torch would
    otherwise bring them anew for every call: `compact` then takes four fifths of the time on two threads.
    """
    kept = _kept(x, conv, norm) if _may_keep(x) else None
    if kept is None:
        y = conv._conv_forward(x, *_merged(conv, norm))
        return F.relu6(y, inplace=True) if relu6 else y
    shape = (conv.padding, conv.stride, conv.dilation, conv.groups)
    then: Any = ("hardtanh", [0.0, 6.0], "") if relu6 else ("none", [], "")
    found: Tensor = torch.ops.mkldnn._convolution_pointwise(x, *kept, *shape, *then)
    return found


def _may_keep(x: Tensor) -> bool:
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not (_ONEDNN and plain) or torch.is_grad_enabled():
        return False
    return not (torch.jit.is_tracing() or torch.compiler.is_compiling())  # type: ignore[attr-defined, no-untyped-call]


def _kept(x: Tensor, conv: Convolution, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor] | None:
    """Kernel in oneDNN's order and bias, made again when a weight has changed; None where weights cannot tell that."""
    sources: Any = (conv.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var)
    if any(source.is_inference() for source in sources):
        return None
    state: list[_Numbers] = [(source.data_ptr(), source._version) for source in sources]
    place = (torch.get_num_threads(), *x.shape)
    kept = _KEPT.setdefault(conv, {})
    found = kept.get(place)
    if found is None or found[0] != state:
        kernel, bias = _merged(conv, norm)
        shape = (conv.padding, conv.stride, conv.dilation, conv.groups)
        packed: Tensor = torch.ops.mkldnn._reorder_convolution_weight(kernel, *shape, list(x.shape))
        for old in list(kept)[: max(0, len(kept) + 1 - _PLACES)]:
            kept.pop(old, None)
        found = kept[place] = state, packed, bias
    return found[1], found[2]


def _merged(conv: Convolution, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return conv.weight * scale[:, None, None, None], norm.bias - norm.running_mean * scale
