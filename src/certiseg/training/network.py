"""The network to train: the package's own, or one from a factory of the user's."""

from __future__ import annotations

import importlib
import inspect

import torch
from torch import nn

from certiseg.errors import InputError


def build_network(spec: str, *, num_classes: int) -> nn.Module:
    """`compact`, or `torch:package.module:factory`: a function that returns a module.

    The module takes (B, 3, H, W) images in [0, 1], normalises them itself and returns (B, classes, h, w) logits.
    A factory with a parameter `num_classes` is given the number.
    """
    if spec == "compact":
        from certiseg.models.compact import compact

        return compact(num_classes)
    kind, _, rest = spec.partition(":")
    module_name, _, factory_name = rest.partition(":")
    if kind != "torch" or not module_name or not factory_name:
        raise InputError(f"model must be compact or torch:package.module:factory, got {spec!r}; write one of them")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"model must name an importable factory, got {spec!r} ({error}); check the name") from error
    takes_count = "num_classes" in inspect.signature(factory).parameters
    network = factory(num_classes=num_classes) if takes_count else factory()
    if not isinstance(network, nn.Module):
        raise InputError(f"model must return a torch.nn.Module, got {type(network).__name__} from {spec}; return one")
    return network


def check_outputs(network: nn.Module, *, num_classes: int, size: tuple[int, ...] = (64, 64)) -> None:
    """Refuse a network whose output is not (B, num_classes, h, w), before any step is made."""
    network.eval()
    with torch.inference_mode():
        result = network(torch.zeros(1, 3, *size))
    shape = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
    if not isinstance(result, torch.Tensor) or result.ndim != 4 or result.shape[1] != num_classes:
        raise InputError(f"model must give (batch, {num_classes}, h, w) logits, got {shape}; change the class count")
