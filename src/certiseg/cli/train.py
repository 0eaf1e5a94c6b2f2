"""`certiseg train`: train a segmentation network on clean and noisy images."""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = """\
Train a network so that it still sees under the noise that certification adds. Clean and noisy batches alternate, as
in the paper. After every epoch the average of the weights is validated on clean and on noisy images; OUT then holds
checkpoint.pt, curves.csv, the training-curve figures, best.safetensors and last.safetensors.

DATASET: camvid (ROOT/train, ROOT/val), comma10k (ROOT/images, ROOT/labels), streets (generated, no ROOT), folder
(ROOT/images, ROOT/labels, ROOT/classes.txt; or ROOT/train and ROOT/val, each with images/ and labels/), or another one
that docs/datasets.md describes."""

EPILOG = """\
example:
  certiseg train camvid --root ../shared/data/camvid --out runs/compact --sigma 0.25 --epochs 40
  certiseg train streets --out runs/streets --epochs 2
  certiseg train folder --root my_data --model torch:my_package.nets:small --out runs/mine --resume
  torchrun --nproc-per-node 2 --no-python certiseg train camvid --root ../shared/data/camvid --out runs/two"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Register `train`."""
    parser = subparsers.add_parser(
        "train",
        help="train a network under noise",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        help="camvid, comma10k, streets, folder, or another data set that `certiseg evaluate` takes",
    )
    parser.add_argument("--root", metavar="DIR", help="folder of the data set; streets need none")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the run, created if missing")
    parser.add_argument("--model", default="compact", help="compact (default) or torch:package.module:factory")
    parser.add_argument("--init", metavar="FILE", help="start from these weights; tensors that do not fit stay new")
    parser.add_argument("--resume", action="store_true", help="go on with the run in OUT if there is one")
    parser.add_argument("--seed", type=int, default=0, help="everything random follows from it (default 0)")
    parser.add_argument("--threads", type=int, default=2, help="threads of the network (default 2)")
    parser.add_argument("--no-progress", dest="progress", action="store_false", help="no progress bar")
    parser.add_argument("--no-tensorboard", dest="tensorboard", action="store_false", help="no TensorBoard files")
    parser.add_argument("--half", action="store_true", help="store the kernels of the weight files in 16 bits")
    _add_noise(parser)
    _add_sampling(parser)
    _add_optimisation(parser)
    parser.set_defaults(run=run)


def _add_noise(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("noise")
    group.add_argument("--sigma", type=float, default=0.25, help="Gaussian noise, in [0, 1] pixel units (default 0.25)")
    group.add_argument(
        "--noise",
        default="alternate",
        help="alternate: every second batch is noisy (the paper, default); mixed: a share of the images of each batch",
    )
    group.add_argument("--noisy-share", type=float, default=0.5, help="share of noisy images for mixed (default 0.5)")


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("samples")
    group.add_argument("--batch-size", type=int, default=8, help="images per step and process (default 8)")
    group.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME:SHARE[:ROOT]",
        help="mix in the training images of another data set with that share of the draws; its classes are learned "
        "where they have the same name, those of comma10k as sets of CamVid classes; may be repeated",
    )
    group.add_argument(
        "--even",
        action="store_true",
        help="draw every recording equally often, whatever its length; names are RECORDING_anything",
    )
    group.add_argument(
        "--paste",
        type=float,
        default=0.0,
        help="share of samples with half the classes of another pasted in (default 0)",
    )
    group.add_argument("--crop", type=int, nargs=2, default=(256, 336), metavar=("H", "W"), help="window (256 336)")
    group.add_argument("--scale", type=float, nargs=2, default=(0.5, 2.0), metavar=("LOW", "HIGH"), help="(0.5 2)")
    group.add_argument("--aspect", type=float, default=1.15, help="largest change of the aspect ratio (default 1.15)")
    group.add_argument("--no-flip", dest="flip", action="store_false", help="never mirror")
    group.add_argument("--colour", type=float, default=1.0, help="strength of the change of light (default 1, 0 = off)")


def _add_optimisation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("optimisation")
    group.add_argument("--epochs", type=int, default=30, help="(default 30)")
    group.add_argument("--stop-after", type=int, metavar="N", help="leave after epoch N; --resume goes on from there")
    group.add_argument("--steps-per-epoch", type=int, help="default: one pass over the images")
    group.add_argument("--optimizer", default="adamw", help="adamw (default) or sgd")
    group.add_argument("--lr", type=float, default=1e-3, help="largest learning rate (default 0.001)")
    group.add_argument("--weight-decay", type=float, default=0.01, help="(default 0.01)")
    group.add_argument("--schedule", default="poly", help="poly (default) or one-cycle")
    group.add_argument("--warmup", type=float, default=0.1, help="share of the run that warms up (default 0.1)")
    group.add_argument("--ema", type=float, default=0.998, help="memory of the weight average (default 0.998)")
    group.add_argument("--class-weight-power", type=float, default=0.0, help="weights frequency^-POWER (default 0)")
    group.add_argument("--ohem", type=float, default=1.0, help="share of hardest pixels in the loss (default 1: all)")
    group.add_argument("--loss-at", default="image", help="image (default) or logits: resolution of the loss")


def run(args: argparse.Namespace) -> int:
    """Train as the arguments say; 0 when the run is complete."""
    import dataclasses

    from certiseg.training.config import TrainConfig

    values: dict[str, Any] = {field.name: vars(args)[field.name] for field in dataclasses.fields(TrainConfig)}
    values |= {"crop": tuple(args.crop), "scale": tuple(args.scale), "also": tuple(args.also)}
    config = TrainConfig(**values)

    from certiseg.training.loop import BEST, CURVES, train

    rows = train(config)
    last = rows[-1]
    print(
        f"{len(rows)} epochs; validation pixel accuracy {last['clean_pixel_accuracy']:.4f} clean, "
        f"{last['noisy_pixel_accuracy']:.4f} at sigma {config.sigma:g}; "
        f"weights in {config.folder / BEST}, curves in {config.folder / CURVES}"
    )
    return 0
