"""HRNetV2-W48 (Wang et al., 2020) and HRNetV2-W48-OCR (Yuan et al., 2020), with the names of the published checkpoints.

Up-sampling inside the nets depends on align_corners. All official configurations of the plain net set it to False, and
those of the OCR net leave it at the default of that code, True: these are the defaults here.

Both nets take ImageNet-normalised images (B, 3, H, W) and return scores (B, classes, ceil(H / 4), ceil(W / 4)).
Attribute names and nesting are those of the published weights, so that these load unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certiseg.errors import InputError
from certiseg.models.layers import Convolution
from certiseg.models.weight_files import MAX_CLASSES, load_weights, read_weights, shown

WIDTHS = (48, 96, 192, 384)  # channels at 1/4, 1/8, 1/16 and 1/32 of the image
PLAIN_HEAD, OCR_HEAD = "last_layer.3.weight", "cls_head.weight"


def hrnet_w48(num_classes: int = 19, *, align_corners: bool = False) -> HRNet:
    """HRNetV2-W48 with fresh weights."""
    return HRNet(num_classes, align_corners=align_corners)


def hrnet_w48_ocr(num_classes: int = 171, *, align_corners: bool = True) -> HRNetOCR:
    """HRNetV2-W48-OCR with fresh weights."""
    return HRNetOCR(num_classes, align_corners=align_corners)


def load_hrnet(
    path: str | Path, *, ocr: bool, num_classes: int | None = None, align_corners: bool | None = None
) -> HRNet | HRNetOCR:
    """The net of a checkpoint file, in eval mode; `num_classes` is read from the file unless given."""
    aligned = ocr if align_corners is None else align_corners
    state = read_weights(path)
    plain, with_ocr = (PLAIN_HEAD, "HRNetV2-W48"), (OCR_HEAD, "HRNetV2-W48-OCR")
    (head, net_name), (other_head, other_name) = (with_ocr, plain) if ocr else (plain, with_ocr)
    if head not in state:
        got = f"those of {other_name}" if other_head in state else f"other names ({shown(list(state))})"
        raise InputError(f"{path} must hold the weights of {net_name} with {head}, got {got}")
    if num_classes is None:
        num_classes = num_classes_of(state) or 1  # with a malformed last layer any count fails below
    with torch.device("meta"):  # nothing is allocated before the file is known to fit
        build = hrnet_w48_ocr if ocr else hrnet_w48
        net: HRNet | HRNetOCR = build(num_classes, align_corners=aligned)
    load_weights(net, path, num_classes_of, state)
    return net.eval()


def num_classes_of(state: Mapping[str, Tensor]) -> int | None:
    """The class count of an HRNet's weights, None where neither net's last layer is among them."""
    heads = [state[name] for name in (PLAIN_HEAD, OCR_HEAD) if name in state and state[name].ndim == 4]
    return heads[0].shape[0] if heads else None


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    return Convolution(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _conv_bn(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, *, relu: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = [_conv(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


def _enlarge(x: Tensor, size: Sequence[int], *, aligned: bool) -> Tensor:
    return F.interpolate(x, size=list(size), mode="bilinear", align_corners=aligned)


class _Basic(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv1, self.bn1 = _conv(width, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + x, inplace=True)


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, middle: int = 64, outputs: int = 256):
        super().__init__()
        self.conv1, self.bn1 = _conv(inputs, middle, 1), nn.BatchNorm2d(middle)
        self.conv2, self.bn2 = _conv(middle, middle), nn.BatchNorm2d(middle)
        self.conv3, self.bn3 = _conv(middle, outputs, 1), nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity() if inputs == outputs else _conv_bn(inputs, outputs, 1, relu=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x), inplace=True)


class _Fuse(nn.ModuleList):
    """One output of an exchange: the ReLU of the sum of all branches, each brought to the target's size and width."""

    def __init__(self, widths: Sequence[int], target: int, *, aligned: bool):
        super().__init__(self._path(widths, source, target) for source in range(len(widths)))
        self.target, self.aligned = target, aligned

    @staticmethod
    def _path(widths: Sequence[int], source: int, target: int) -> nn.Module:
        if source == target:
            return nn.Identity()
        if source > target:
            return _conv_bn(widths[source], widths[target], 1, relu=False)
        halvings = [_conv_bn(widths[source], widths[source], stride=2) for _ in range(target - source - 1)]
        return nn.Sequential(*halvings, _conv_bn(widths[source], widths[target], stride=2, relu=False))

    def forward(self, xs: Sequence[Tensor]) -> Tensor:
        size = xs[self.target].shape[-2:]
        paths = enumerate(zip(self, xs, strict=True))
        ys = [
            _enlarge(path(x), size, aligned=self.aligned) if source > self.target else path(x)
            for source, (path, x) in paths
        ]
        return F.relu(sum(ys[1:], ys[0]), inplace=True)


class _Exchange(nn.Module):
    """Four residual blocks on every branch, then every branch to every other."""

    def __init__(self, widths: Sequence[int], *, aligned: bool):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(_Basic(width) for _ in range(4))) for width in widths)
        self.fuse_layers = nn.ModuleList(_Fuse(widths, target, aligned=aligned) for target in range(len(widths)))

    def forward(self, xs: Sequence[Tensor]) -> list[Tensor]:
        xs = [branch(x) for branch, x in zip(self.branches, xs, strict=True)]
        return [fuse(xs) for fuse in self.fuse_layers]


class _Transition(nn.ModuleList):
    """Keep the branches and start one more, at half the last one's resolution."""

    def __init__(self, old: Sequence[int], new: Sequence[int]):
        kept = [nn.Identity() if a == b else _conv_bn(a, b) for a, b in zip(old, new[:-1], strict=True)]
        super().__init__([*kept, nn.Sequential(_conv_bn(old[-1], new[-1], stride=2))])

    def forward(self, xs: Sequence[Tensor]) -> list[Tensor]:
        return [path(x) for path, x in zip(self, [*xs, xs[-1]], strict=True)]


class _Backbone(nn.Module):
    def __init__(self, num_classes: int, *, align_corners: bool):
        if not isinstance(num_classes, int) or not 1 <= num_classes <= MAX_CLASSES:
            raise InputError(f"num_classes must be a whole number from 1 to {MAX_CLASSES}, got {num_classes!r}")
        super().__init__()
        self.align_corners = align_corners
        self.conv1, self.bn1 = _conv(3, 64, stride=2), nn.BatchNorm2d(64)
        self.conv2, self.bn2 = _conv(64, 64, stride=2), nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(_Bottleneck(64), *(_Bottleneck(256) for _ in range(3)))
        self.transition1 = _Transition([256], WIDTHS[:2])
        self.stage2 = nn.Sequential(_Exchange(WIDTHS[:2], aligned=align_corners))
        self.transition2 = _Transition(WIDTHS[:2], WIDTHS[:3])
        self.stage3 = nn.Sequential(*(_Exchange(WIDTHS[:3], aligned=align_corners) for _ in range(4)))
        self.transition3 = _Transition(WIDTHS[:3], WIDTHS)
        self.stage4 = nn.Sequential(*(_Exchange(WIDTHS, aligned=align_corners) for _ in range(3)))

    def features(self, images: Tensor) -> Tensor:
        """The four branches side by side at 1/4 of the image, (B, 720, ceil(H / 4), ceil(W / 4))."""
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        x = self.layer1(F.relu(self.bn2(self.conv2(x)), inplace=True))
        xs = self.stage2(self.transition1([x]))
        xs = self.stage4(self.transition3(self.stage3(self.transition2(xs))))
        size = xs[0].shape[-2:]
        return torch.cat([xs[0], *(_enlarge(x, size, aligned=self.align_corners) for x in xs[1:])], 1)


def _head(num_classes: int) -> nn.Sequential:
    width = sum(WIDTHS)
    mix = [Convolution(width, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(*mix, Convolution(width, num_classes, 1))


class HRNet(_Backbone):
    """HRNetV2-W48: scores from the four concatenated resolutions."""

    reentrant = True  # nothing is kept between calls

    def __init__(self, num_classes: int, *, align_corners: bool = False):
        super().__init__(num_classes, align_corners=align_corners)
        self.last_layer = _head(num_classes)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.last_layer(self.features(images))
        return scores


def _transform(*widths: int) -> list[nn.Module]:
    """1x1 convolutions, each followed by BN and ReLU in a sequence of their own (as the published names have it)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [_conv(inputs, outputs, 1), nn.Sequential(nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))]
    return layers


class _ObjectAttention(nn.Module):
    """Each pixel's mixture of the K object regions, weighted by the likeness of pixel and region."""

    def __init__(self, width: int, key_width: int):
        super().__init__()
        self.f_pixel = nn.Sequential(*_transform(width, key_width, key_width))
        self.f_object = nn.Sequential(*_transform(width, key_width, key_width))
        self.f_down = nn.Sequential(*_transform(width, key_width))
        self.f_up = nn.Sequential(*_transform(key_width, width))

    def forward(self, x: Tensor, regions: Tensor) -> Tensor:
        query = self.f_pixel(x)
        key, value = self.f_object(regions).flatten(2), self.f_down(regions).flatten(2)  # (B, 256, K)
        likeness = query.flatten(2).transpose(1, 2) @ key * key.shape[1] ** -0.5
        mixture = likeness.softmax(dim=2) @ value.transpose(1, 2)
        context: Tensor = self.f_up(mixture.transpose(1, 2).reshape(query.shape))
        return context


class _OCRHead(nn.Module):
    def __init__(self, width: int, key_width: int):
        super().__init__()
        self.object_context_block = _ObjectAttention(width, key_width)
        self.conv_bn_dropout = nn.Sequential(*_transform(2 * width, width), nn.Dropout2d(0.05))

    def forward(self, x: Tensor, regions: Tensor) -> Tensor:
        refined: Tensor = self.conv_bn_dropout(torch.cat([self.object_context_block(x, regions), x], 1))
        return refined


class HRNetOCR(_Backbone):
    """HRNetV2-W48-OCR: auxiliary scores weigh the pixels of each object region, and regions refine the pixels."""

    reentrant = True  # nothing is kept between calls

    def __init__(self, num_classes: int, width: int = 512, key_width: int = 256, *, align_corners: bool = True):
        super().__init__(num_classes, align_corners=align_corners)
        self.conv3x3_ocr = nn.Sequential(
            nn.Conv2d(sum(WIDTHS), width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.ocr_distri_head = _OCRHead(width, key_width)
        self.cls_head = Convolution(width, num_classes, 1)
        self.aux_head = _head(num_classes)

    def both_scores(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(auxiliary, final) scores."""
        x = self.features(images)
        auxiliary = self.aux_head(x)
        x = self.conv3x3_ocr(x)
        weights = auxiliary.flatten(2).softmax(dim=2)  # over the pixels: where each class is
        regions = (weights @ x.flatten(2).transpose(1, 2)).transpose(1, 2).unsqueeze(3)  # (B, 512, K, 1)
        return auxiliary, self.cls_head(self.ocr_distri_head(x, regions))

    def forward(self, images: Tensor) -> Tensor | dict[str, Tensor]:
        """The final scores; while it is trained, the auxiliary ones beside them for their own loss."""
        auxiliary, final = self.both_scores(images)
        return {"out": final, "aux": auxiliary} if self.training else final
