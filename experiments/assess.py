"""Accuracy of stored `compact` weights on labelled images, clean and under noise, without certification.

python -m experiments.assess camvid --root ../shared/data/camvid --split test --apart Seq05VD
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.models.compact import WEIGHTS
from certiseg.models.weight_files import load_weights
from certiseg.training.batches import read_all
from certiseg.training.network import build_network
from certiseg.training.validate import ValidationScores, validate


def load_network(spec: str, weights: str | Path, *, num_classes: int) -> nn.Module:
    """The network with all of its stored weights."""
    network = build_network(spec, num_classes=num_classes)
    load_weights(network, weights)
    return network.eval()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line of scores per sigma, for all images and for those whose name starts with --apart."""
    parser = argparse.ArgumentParser(prog="python -m experiments.assess", description=__doc__)
    parser.add_argument("dataset", help="camvid, comma10k, folder or another data set of the same classes")
    parser.add_argument("--root", required=True)
    parser.add_argument("--split", default="val")
    parser.add_argument("--model", default="compact")
    parser.add_argument("--weights", default=str(WEIGHTS), help="default: those that ship with the package")
    parser.add_argument("--sigma", type=float, nargs="+", default=[0.0, 0.25])
    parser.add_argument("--apart", metavar="PREFIX", help="score the images of this name apart as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    dataset = open_dataset(args.dataset, args.root, split=None if args.dataset == "folder" else args.split)
    network = load_network(args.model, args.weights, num_classes=len(dataset.classes))
    samples = read_all(dataset)
    groups = {"all": samples}
    if args.apart:
        groups[args.apart] = [sample for sample in samples if sample.name.startswith(args.apart)]
    print("images      n  sigma  pixel acc.  mean acc.    mIoU    loss")
    for name, members in groups.items():
        for sigma in args.sigma:
            scores = validate(network, members, num_classes=len(dataset.classes), sigma=sigma, seed=args.seed)
            print(_line(name, len(members), sigma, scores), flush=True)
    return 0


def _line(name: str, count: int, sigma: float, scores: ValidationScores) -> str:
    numbers = f"{scores.pixel_accuracy:10.4f} {scores.mean_accuracy:10.4f} {scores.miou:7.4f} {scores.loss:7.4f}"
    return f"{name:8s} {count:4d} {sigma:6g}  {numbers}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
