"""`compact`: a small network for street scenes, trained for noise, weather and light; it ships with the package.

The encoder is EfficientNet-Lite1 (Tan and Le 2019; features at 1/4, 1/8, 1/16 and 1/32), a feature pyramid leads back
to 1/4. Every image is first brought to mean 0 and one contrast, so uniform fog, haze, darkness and loss of contrast,
which only move and shrink its values, change nothing but rounding. Then the same layers look at it twice: as it is, and
at half the size, where means of four values have half the noise and every cell sees twice as far.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certiseg.errors import InputError
from certiseg.models.layers import Convolution, convolve
from certiseg.models.weight_files import load_weights

NUM_CLASSES = 31
WEIGHTS = Path(__file__).parent / "weights" / "compact.safetensors"
MIN_SIDE = 32
CONTRAST = 0.5
"""Spread of the values behind the normalisation: about that of the images the encoder first learnt from."""
STEM = 32
PYRAMID = 96
# EfficientNet-Lite1: blocks, kernel, stride, expansion, channels of each stage, and whether its strided layer looks at
# the later pixel of each pair. Earlier and later ones take turns, so cells stay near the middle of what they cover.
STAGES = (
    (1, 3, 1, 1, 16, False),
    (3, 3, 2, 6, 24, False),
    (3, 5, 2, 6, 40, True),
    (4, 3, 2, 6, 80, False),
    (4, 5, 1, 6, 112, False),
    (5, 5, 2, 6, 192, True),
    (1, 3, 1, 6, 320, False),
)
TAPS = (1, 2, 4, 6)
"""The stages whose output the pyramid uses: the last ones at 1/4, 1/8, 1/16 and 1/32."""

COARSE_SHARE = 1 / 3
"""What the look at half the size counts for in the logits, where the weights say nothing else of a class."""
COARSE_SIDE = 22
"""The least side the layers can look at; smaller halves are filled up."""


class ConvNorm(nn.Sequential):
    """Convolution, BatchNorm and (if asked) ReLU6; the size is kept up to the stride.

    Where BatchNorm has stopped learning it is part of the convolution, which takes a third off a pass in torch.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        relu: bool = True,
        later: bool = False,
    ) -> None:
        half = kernel // 2
        self.later, self.relu = later, relu
        conv = Convolution(inputs, outputs, kernel, stride, 0 if later else half, groups=groups, bias=False)
        layers: list[nn.Module] = [nn.ZeroPad2d((half - 1, half, half - 1, half))] if later else []
        super().__init__(*layers, conv, nn.BatchNorm2d(outputs, eps=1e-3), *([nn.ReLU6(inplace=True)] if relu else []))

    def forward(self, x: Tensor) -> Tensor:
        conv: Any = self[int(self.later)]
        norm: Any = self[int(self.later) + 1]
        if norm.training:
            learning: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return learning
        return convolve(self[0](x) if self.later else x, conv, norm, relu6=self.relu)


class Bottleneck(nn.Module):
    """1x1 to more channels, one kernel per channel, 1x1 to fewer; beside a shortcut where the shape is kept."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, expansion: int = 6, later: bool = False
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = ConvNorm(inputs, inner, 1) if expansion > 1 else nn.Identity()
        self.depthwise = ConvNorm(inner, inner, kernel, stride=stride, groups=inner, later=later)
        self.project = ConvNorm(inner, outputs, 1, relu=False)
        self.kept = inputs == outputs and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + y if self.kept else y


class Encoder(nn.Module):
    """Normalised images -> features at 1/4, 1/8, 1/16 and 1/32."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, STEM, stride=2, later=True)
        self.stages = nn.ModuleList()
        inputs = STEM
        for blocks, kernel, stride, expansion, outputs, later in STAGES:
            first = Bottleneck(inputs, outputs, kernel, stride=stride, expansion=expansion, later=later)
            others = (Bottleneck(outputs, outputs, kernel, expansion=expansion) for _ in range(blocks - 1))
            self.stages.append(nn.Sequential(first, *others))
            inputs = outputs

    def forward(self, x: Tensor) -> list[Tensor]:
        features, x = [], self.stem(x)
        for index, stage in enumerate(self.stages):
            x = stage(x)
            if index in TAPS:
                features.append(x)
        return features


class Pyramid(nn.Module):
    """From the coarsest features to the finest: enlarge, add the next finer ones, mix the neighbours."""

    def __init__(self, inputs: Sequence[int], outputs: int) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(ConvNorm(channels, outputs, 1, relu=False) for channels in inputs)
        self.mix = nn.ModuleList(ConvNorm(outputs, outputs) for _ in inputs)

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        y: Tensor | None = None
        for feature, lateral, mix in zip(features[::-1], self.lateral[::-1], self.mix[::-1], strict=True):
            x = lateral(feature)
            y = mix(F.relu(x if y is None else x + _resize(y, x)))
        assert y is not None
        return y


class Compact(nn.Module):
    """(B, 3, H, W) images in [0, 1] (noisy ones may leave it) -> (B, classes, ~H/4, ~W/4) logits, H and W >= 32.

    It learns from one look at the image and answers after two.
    """

    reentrant = True  # nothing that a call changes is kept for the next
    coarse_share: Tensor
    """(classes,) what the second look counts for. Part of the weights: files for one look are refused."""

    def __init__(self, num_classes: int = NUM_CLASSES, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.encoder = Encoder()
        self.pyramid = Pyramid([STAGES[tap][4] for tap in TAPS], PYRAMID)
        self.dropout = nn.Dropout2d(dropout)
        self.head = Convolution(PYRAMID, num_classes, 1)
        self.register_buffer("coarse_share", torch.full((num_classes,), COARSE_SHARE))

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] < MIN_SIDE or images.shape[-2] < MIN_SIDE:
            raise InputError(
                f"image must be at least {MIN_SIDE}x{MIN_SIDE} for compact, "
                f"got {images.shape[-1]}x{images.shape[-2]}; enlarge it"
            )
        images = normalised(images)
        near = self._look(images)
        if self.training:
            learning: Tensor = self.head(near)
            return learning
        fine = self._part(near, 1 - self.coarse_share)
        return fine + _resize(self._part(self._look(_halved(images)), self.coarse_share), fine)

    def _look(self, images: Tensor) -> Tensor:
        features: Tensor = self.dropout(self.pyramid(self.encoder(images)))
        return features

    def _part(self, features: Tensor, share: Tensor) -> Tensor:
        """The logits times the share of each class."""
        assert self.head.bias is not None
        return self.head._conv_forward(features, self.head.weight * share[:, None, None, None], self.head.bias * share)


def normalised(images: Tensor) -> Tensor:
    """Each image with mean 0 in every channel and one contrast over all of them; a constant image becomes 0."""
    centred = images - images.mean((2, 3), keepdim=True)
    variance = (centred * centred).mean((1, 2, 3), keepdim=True)
    return centred * (CONTRAST * torch.rsqrt(variance + 1e-7))


def compact(num_classes: int = NUM_CLASSES, *, dropout: float = 0.1) -> Compact:
    """An untrained network with that many classes."""
    network = Compact(num_classes, dropout=dropout)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def load_compact() -> Compact:
    """The network with the weights that ship with the package (31 CamVid classes), ready for use."""
    network = compact()
    load_weights(network, WEIGHTS)
    return network.eval()


def _halved(images: Tensor) -> Tensor:
    """Means of 2x2 values, filled up with zeros to COARSE_SIDE."""
    half = F.avg_pool2d(images, 2, ceil_mode=True)
    return F.pad(half, (0, _lack(half.shape[-1]), 0, _lack(half.shape[-2])))


def _lack(side: Any) -> Any:
    """How much a side is too short; while a graph for any size is traced, sides are tensors."""
    lack = COARSE_SIDE - side
    return lack.clamp(min=0) if isinstance(lack, Tensor) else torch.sym_max(lack, 0)  # type: ignore[no-untyped-call]


def _resize(x: Tensor, like: Tensor) -> Tensor:
    return F.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=False)
