"""Accuracy of stored `compact` weights on labelled images, clean and under noise, without certification.

python -m certiseg.training.assess camvid --root ../shared/data/camvid --split test --apart Seq05VD
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from certiseg.datasets import CamVid, Comma10k, Dataset, Folder
from certiseg.errors import InputError
from certiseg.models.compact import WEIGHTS
from certiseg.training.batches import read_all
from certiseg.training.checkpoint import load_weights
from certiseg.training.network import build_network
from certiseg.training.validate import Scores, validate


def open_split(name: str, root: str | Path, split: str) -> Dataset:
    """One split of a data set; a folder has none, so `split` is ignored for it."""
    if name == "camvid":
        return CamVid(root, split)
    if name == "comma10k":
        return Comma10k(root, split)
    if name == "folder":
        return Folder(root)
    raise InputError(f"dataset must be camvid, comma10k or folder, got {name!r}; choose one of them")


def load_network(spec: str, weights: str | Path, *, num_classes: int) -> nn.Module:
    """The network with all of its stored weights."""
    network = build_network(spec, num_classes=num_classes)
    try:
        network.load_state_dict(load_weights(weights))
    except RuntimeError as error:
        raise InputError(f"weights must fit {spec} with {num_classes} classes, got {weights}; give others") from error
    return network.eval()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line of scores per sigma, for all images and for those whose name starts with --apart."""
    parser = argparse.ArgumentParser(prog="python -m certiseg.training.assess", description=__doc__)
    parser.add_argument("dataset", help="camvid, comma10k or folder")
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
    dataset = open_split(args.dataset, args.root, args.split)
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


def _line(name: str, count: int, sigma: float, scores: Scores) -> str:
    numbers = f"{scores.pixel_accuracy:10.4f} {scores.mean_accuracy:10.4f} {scores.miou:7.4f} {scores.loss:7.4f}"
    return f"{name:8s} {count:4d} {sigma:6g}  {numbers}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
