"""Settles what the second look of `compact` counts for in the logits of some classes: less for things, which are small.

python -m experiments.second_look trained.safetensors shipped.safetensors --share 0.2 --of "dynamic obstacle"
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, load_hierarchy
from certiseg.models.compact import COARSE_SHARE
from certiseg.models.weight_files import read_notes, read_weights


def shares(hierarchy: Hierarchy, labels: Sequence[str], share: float) -> Tensor:
    """(classes,): `share` for the classes under these labels, COARSE_SHARE for the others."""
    if not 0 <= share <= 1:
        raise InputError(f"share must be in [0, 1], got {share:g}; choose another value")
    found = torch.full((hierarchy.num_classes,), COARSE_SHARE)
    for label in labels:
        found[list(hierarchy.leaves(label))] = share
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the weights with these shares, and with their notes."""
    parser = argparse.ArgumentParser(prog="python -m experiments.second_look", description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, required=True)
    parser.add_argument("--of", nargs="+", required=True, metavar="LABEL")
    parser.add_argument("--hierarchy", default="camvid")
    args = parser.parse_args(arguments)
    settled = {"coarse_share": shares(load_hierarchy(args.hierarchy), args.of, args.share)}
    save_file(read_weights(args.weights) | settled, args.out, metadata=read_notes(args.weights))


if __name__ == "__main__":
    main()
