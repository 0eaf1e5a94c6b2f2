"""Training in bfloat16 where it is fast: products in 16 bits, weights and sums in 32."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from certiseg.models.layers import Convolution


class _Product(torch.autograd.Function):
    """A convolution with one kernel per channel whose gradient is taken in 32 bits.

    oneDNN has no fast gradient in bfloat16 for strides and kernels above 3: it was up to six times slower than in 32.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, layer: nn.Conv2d) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.layer = layer  # type: ignore[attr-defined]
        return F.conv2d(x, weight, None, layer.stride, layer.padding, layer.dilation, layer.groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        layer: nn.Conv2d = ctx.layer  # type: ignore[attr-defined]
        place = (layer.stride, layer.padding, layer.dilation, False, (0, 0), layer.groups)
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            gradient.float(), x.float(), weight.float(), None, *place, (True, True, False)
        )
        return of_x.to(x.dtype), of_weight.to(weight.dtype), None


class Depthwise(Convolution):
    """A convolution with one kernel per channel; under autocast it learns as fast as in 32 bits."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and torch.is_autocast_enabled("cpu"):
            found: Tensor = _Product.apply(x.bfloat16(), self.weight.bfloat16(), self)  # type: ignore[no-untyped-call]
            return found
        return super().forward(x)


def prepare_bfloat16(network: nn.Module) -> None:
    """Turn the depthwise convolutions of a network into ones that learn fast in bfloat16; weights stay as they are."""
    for layer in network.modules():
        if not isinstance(layer, nn.Conv2d) or type(layer) not in (nn.Conv2d, Convolution):
            continue
        if layer.groups == layer.in_channels > 1 and layer.bias is None:
            layer.__class__ = Depthwise
