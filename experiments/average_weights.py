"""The mean of several weight files of one network, tensor by tensor: often better than each, if they share a start.

python -m experiments.average_weights first.safetensors second.safetensors --out mean.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from certiseg.errors import InputError
from certiseg.models.weight_files import read_notes, read_weights


def mean_of(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Each tensor averaged in 64 bits and stored as before; whole numbers, such as counters, are those of the first."""
    first = states[0]
    shapes = [{name: (value.shape, value.dtype) for name, value in state.items()} for state in states]
    if any(shape != shapes[0] for shape in shapes):
        raise InputError("weights must be of one network, stored alike, got others; average files of one recipe")
    return {
        name: torch.stack([state[name].double() for state in states]).mean(0).to(value.dtype)
        if value.is_floating_point()
        else value
        for name, value in first.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the mean, with the notes of the last file."""
    parser = argparse.ArgumentParser(prog="python -m experiments.average_weights", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args(arguments)
    save_file(mean_of([read_weights(path) for path in args.files]), args.out, metadata=read_notes(args.files[-1]))


if __name__ == "__main__":
    main()
