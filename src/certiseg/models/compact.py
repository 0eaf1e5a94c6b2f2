"""`compact`: a small residual network for street scenes that was trained under noise; it ships with the package.

Images are reduced to 1/4 of their size at once, where noise averages out; residual stages work at 1/4, 1/8 and 1/16
(dilated, with pooled context up to the whole image), and a light decoder returns to 1/4 with two skips.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certiseg.errors import InputError

NUM_CLASSES = 31
WEIGHTS = Path(__file__).parent / "weights" / "compact.safetensors"
MIN_SIDE = 32
# Mean and spread of street images in [0, 1]: constants of the model, not of a data set.
MEAN = (0.41, 0.43, 0.44)
STD = (0.30, 0.31, 0.31)


class ConvNorm(nn.Sequential):
    """Convolution, BatchNorm and (if asked) ReLU; the size is kept up to the stride."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 3, *, stride: int = 1, dilation: int = 1, relu: bool = True
    ) -> None:
        padding = dilation * (kernel // 2)
        layers: list[nn.Module] = [
            nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        if relu:
            layers.append(nn.ReLU(inplace=True))
        super().__init__(*layers)


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(inputs, outputs, stride=stride),
            ConvNorm(outputs, outputs, dilation=dilation, relu=False),
        )
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else ConvNorm(inputs, outputs, 1, stride=stride, relu=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


class Context(nn.Module):
    """The input beside averages over windows of 5, 9 and 17 cells and over everything, mixed by a 1x1 convolution."""

    WINDOWS = ((5, 2), (9, 4), (17, 8))

    def __init__(self, inputs: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(ConvNorm(inputs, inner, 1) for _ in self.WINDOWS)
        # No BatchNorm on one value per image: its statistics would rest on the batch size alone.
        self.whole = nn.Sequential(nn.Conv2d(inputs, inner, 1), nn.ReLU(inplace=True))
        self.mix = ConvNorm(inputs + inner * (len(self.WINDOWS) + 1), outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        for (window, stride), branch in zip(self.WINDOWS, self.branches, strict=True):
            pooled = F.avg_pool2d(x, window, stride, window // 2, count_include_pad=False)
            parts.append(_resize(branch(pooled), x))
        whole = self.whole(x.mean((2, 3), keepdim=True))
        parts.append(whole.expand(-1, -1, x.shape[2], x.shape[3]))
        return self.mix(torch.cat(parts, 1))


class Compact(nn.Module):
    """(B, 3, H, W) images in [0, 1] (noisy ones may leave it) -> (B, classes, ~H/4, ~W/4) logits, H and W >= 32."""

    mean: Tensor
    std: Tensor

    def __init__(self, num_classes: int = NUM_CLASSES, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1))
        self.stem = nn.Sequential(ConvNorm(3, 24, stride=2), ConvNorm(24, 32, stride=2))
        self.stage4 = Residual(32, 48)
        self.stage8 = nn.Sequential(Residual(48, 96, stride=2), Residual(96, 96))
        self.stage16 = nn.Sequential(
            Residual(96, 160, stride=2),
            Residual(160, 160, dilation=2),
            Residual(160, 160, dilation=4),
            Residual(160, 160, dilation=2),
            Residual(160, 160, dilation=4),
        )
        self.context = Context(160, 48, 96)
        self.skip8 = ConvNorm(96, 96, 1, relu=False)
        self.skip4 = ConvNorm(48, 64, 1, relu=False)
        self.decode8 = ConvNorm(96, 64)
        self.decode4 = ConvNorm(64, 64)
        self.dropout = nn.Dropout2d(dropout)
        self.head = nn.Conv2d(64, num_classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] < MIN_SIDE or images.shape[-2] < MIN_SIDE:
            raise InputError(
                f"image must be at least {MIN_SIDE}x{MIN_SIDE} for compact, "
                f"got {images.shape[-1]}x{images.shape[-2]}; enlarge it"
            )
        x4 = self.stage4(self.stem((images - self.mean) / self.std))
        x8 = self.stage8(x4)
        y = _resize(self.context(self.stage16(x8)), x8)
        y = _resize(self.decode8(F.relu(y + self.skip8(x8))), x4)
        y = self.decode4(F.relu(y + self.skip4(x4)))
        return self.head(self.dropout(y))


def compact(num_classes: int = NUM_CLASSES, *, dropout: float = 0.1) -> Compact:
    """An untrained network with that many classes."""
    network = Compact(num_classes, dropout=dropout)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def load_compact() -> Compact:
    """The network with the weights that ship with the package (31 CamVid classes, sigma = 0.25), ready for use."""
    from safetensors.torch import load_file

    if not WEIGHTS.is_file():
        raise InputError(f"model compact must have its weights, got no {WEIGHTS}; install the package again")
    network = compact()
    network.load_state_dict({name: _wide(value) for name, value in load_file(WEIGHTS).items()})
    return network.eval()


def _wide(value: Tensor) -> Tensor:
    return value.float() if value.is_floating_point() else value


def _resize(x: Tensor, like: Tensor) -> Tensor:
    return F.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=False)
