"""`certiseg train`: train a segmentation network on clean and noisy images."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING

from certiseg.cli import COMMANDS
from certiseg.cli.options import add_settings, settings_of
from certiseg.training.config import TrainConfig

if TYPE_CHECKING:
    from certiseg.cli.options import Subparsers

DESCRIPTION = """\
Train a network so that it still sees under the noise that certification adds. Clean and noisy batches alternate, as
in the paper. After every epoch the average of the weights is validated on clean and on noisy images; OUT then holds
checkpoint.pt, curves.csv, the training-curve figures, best.safetensors and last.safetensors.

DATASET: camvid (ROOT/train, ROOT/val), comma10k (ROOT/images, ROOT/labels), streets (no ROOT), folder
(ROOT/images, ROOT/labels, ROOT/classes.txt; or ROOT/train and ROOT/val, each with images/ and labels/), or another one
that docs/datasets.md describes."""

EPILOG = """\
example:
  certiseg train camvid --root ../shared/data/camvid --out runs/compact --sigma 0.25 --epochs 40
  certiseg train streets --out runs/streets --epochs 2
  certiseg train folder --root my_data --model torch:my_package.nets:small --out runs/mine --resume
  torchrun --nproc-per-node 2 --no-python certiseg train camvid --root ../shared/data/camvid --out runs/two"""


def add_parser(subparsers: Subparsers) -> None:
    """Register `train`; its options are the fields of TrainConfig."""
    parser = subparsers.add_parser(
        "train",
        help=COMMANDS["train"],
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = {each.name: each.metadata["group"] for each in fields(TrainConfig)}
    parser.add_argument("dataset", metavar="DATASET", help="the data set to learn")
    for group in ("run", "noise", "samples", "optimisation"):
        names = [name for name, of in groups.items() if of == group]
        add_settings(parser.add_argument_group(group), TrainConfig, names)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train as the arguments say; 0 when the run is complete."""
    config = settings_of(args, TrainConfig)

    from certiseg.training.loop import BEST, CURVES, train

    rows = train(config)
    last = rows[-1]
    print(
        f"{len(rows)} epochs; validation pixel accuracy {last['clean_pixel_accuracy']:.4f} clean, "
        f"{last['noisy_pixel_accuracy']:.4f} at sigma {config.sigma:g}; "
        f"weights in {config.folder / BEST}, curves in {config.folder / CURVES}"
    )
    return 0
