"""The network to train: the package's own, or one from a factory of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch import nn

from certiseg.errors import InputError
from certiseg.models.compact import compact
from certiseg.models.hrnet import hrnet_w48, hrnet_w48_ocr
from certiseg.models.load import find_factory
from certiseg.models.outputs import tensor_of
from certiseg.models.segmenter import IMAGENET_MEAN, IMAGENET_STD


def build_network(spec: str, *, num_classes: int) -> nn.Module:
    """A network of the package, or of `torch:package.module:factory`: a function that returns a module.

    The module takes (B, 3, H, W) images in [0, 1], normalises them itself and returns (B, classes, h, w) logits, or a
    mapping with `out` and, while it is trained, `aux`. A factory with a parameter `num_classes` is given the number.
    """
    if spec in NETWORKS:
        return NETWORKS[spec](num_classes)
    if not spec.startswith("torch:"):
        forms = ", ".join([*NETWORKS, "torch:package.module:factory"])
        raise InputError(f"model must be one of {forms}, got {spec!r}; write one of them")
    factory = find_factory(spec)
    takes_count = "num_classes" in inspect.signature(factory).parameters
    network = factory(num_classes=num_classes) if takes_count else factory()
    if not isinstance(network, nn.Module):
        raise InputError(f"model must return a torch.nn.Module, got {type(network).__name__} from {spec}; return one")
    return network


def _normalised(network: nn.Module) -> nn.Module:
    """A network for ImageNet's normalisation that now takes images in [0, 1]; the names of its weights stay."""
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
    network.register_forward_pre_hook(lambda _, inputs: ((inputs[0] - mean) / std,))
    return network


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "compact": compact,
    "hrnet-w48": lambda num_classes: _normalised(hrnet_w48(num_classes)),
    "hrnet-w48-ocr": lambda num_classes: _normalised(hrnet_w48_ocr(num_classes)),
}


def check_outputs(network: nn.Module, *, num_classes: int, size: tuple[int, ...] = (64, 64)) -> None:
    """Refuse a network whose output is not (B, num_classes, h, w), before any step is made."""
    network.eval()
    with torch.inference_mode():
        result = tensor_of(network(torch.zeros(1, 3, *size)))
    if result.ndim != 4 or result.shape[1] != num_classes:
        shape = tuple(result.shape)
        raise InputError(f"model must give (batch, {num_classes}, h, w) logits, got {shape}; change the class count")
