"""Files of a run: written beside their place and renamed, so a kill leaves the old file or the new one, never half."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.models.weight_files import read_file, read_weights

FORMAT_VERSION = 1


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Store tensors, numbers and text; nothing in it can run code when it is loaded."""
    with write_atomically(path) as file:
        torch.save({"format_version": FORMAT_VERSION, **state}, file)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain values only."""
    state = read_file(path)
    if not isinstance(state, dict) or state.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{path} must be a checkpoint of format {FORMAT_VERSION}, got another; start a new run")
    return state


def save_weights(
    path: Path, network: nn.Module, *, classes: tuple[str, ...], half: bool = False, **facts: object
) -> None:
    """Weights as safetensors with class names and facts about the run beside them; half: kernels in 16 bits."""
    from safetensors.torch import save

    tensors = {name: _stored(value, half=half) for name, value in network.state_dict().items()}
    notes = {"format_version": str(FORMAT_VERSION), "classes": json.dumps(classes)}
    notes |= {name: json.dumps(value) for name, value in facts.items()}
    with write_atomically(path) as file:
        file.write(save(tensors, metadata=notes))


def _stored(value: Tensor, *, half: bool) -> Tensor:
    value = value.detach().contiguous()
    # Norm statistics and biases are small and keep 32 bits.
    return value.half() if half and value.is_floating_point() and value.ndim > 1 else value.clone()


def start_from(network: nn.Module, path: str | Path) -> tuple[int, list[str]]:
    """Copy the tensors whose name and shape agree; returns how many did, and the names that kept their start values.

    A pre-trained encoder with another head is the usual case; a file in which nothing agrees is refused.
    """
    given, own = read_weights(path), network.state_dict()
    fitting = {name: value for name, value in given.items() if name in own and own[name].shape == value.shape}
    learned = {name for name, _ in network.named_parameters()}
    if not learned & set(fitting):
        raise InputError(f"{path} must hold weights of this model, got none that fit; give weights of the same model")
    network.load_state_dict(fitting, strict=False)
    return len(fitting), sorted(set(own) - set(fitting))
