"""Weights whose scores lean to frequent classes: power * log(frequency) is added to the last bias.

Weights by frequency^-power in the loss make rare classes win where pixels are unsure; this takes a part of that back
without training. The power is chosen on validation images.

python -m experiments.frequency_bias in.safetensors --root ../shared/data/camvid --power 0.15 --out out.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from certiseg.datasets import open_dataset
from certiseg.datasets.base import Sample
from certiseg.hierarchy import VOID
from certiseg.models.weight_files import read_notes, read_weights

LEAST = 1e-6
"""The frequency of classes that occur more seldom, or never."""


def frequencies(samples: Iterable[Sample], num_classes: int) -> NDArray[np.float64]:
    """The share of every class among the labelled pixels, LEAST and more."""
    counts = np.zeros(VOID + 1, np.int64)
    for sample in samples:
        assert sample.label is not None
        counts += np.bincount(sample.label.ravel(), minlength=VOID + 1)
    shares: NDArray[np.float64] = np.maximum(counts[:num_classes] / counts[:num_classes].sum(), LEAST)
    return shares


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the weights with the leaning bias, and the notes of the file."""
    parser = argparse.ArgumentParser(prog="python -m experiments.frequency_bias", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--dataset", default="camvid", metavar="NAME", help="its training images are counted")
    parser.add_argument("--root", metavar="DIR")
    parser.add_argument("--power", type=float, required=True)
    parser.add_argument("--bias", default="head.bias", metavar="TENSOR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args(arguments)
    state = read_weights(args.file)
    bias = state[args.bias]
    leaning = args.power * np.log(frequencies(open_dataset(args.dataset, args.root, split="train"), len(bias)))
    state[args.bias] = bias + torch.from_numpy(leaning).to(bias.dtype)
    save_file(state, args.out, metadata=read_notes(args.file) | {"frequency_bias": str(args.power)})


if __name__ == "__main__":
    main()
