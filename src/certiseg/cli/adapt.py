"""certiseg adapt: re-estimate normalisation statistics under noise, without labels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from certiseg.datasets.base import list_files
from certiseg.datasets.coding import plain_ids
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.images import read_image


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "adapt",
        help="make a clean-trained network survive noise, without labels",
        description="Passes unlabelled images with noise through a network once, stores the statistics of its "
        "BatchNorm layers anew and writes the weights. Nothing else in the network changes. With --labels the "
        "accuracy under noise is measured before and after.",
        epilog="example: certiseg adapt hrnet-w48:city.pth --images leftImg8bit/train/ulm --sigma 0.25 "
        "--out city-noisy.safetensors",
    )
    parser.add_argument("model", metavar="MODEL", help="a torch model: compact, hrnet-w48:FILE, hf:FOLDER, torch:...")
    parser.add_argument("--images", required=True, metavar="FOLDER", help="images of the kind to be certified")
    parser.add_argument("--labels", metavar="FOLDER", help="label maps of the same names, to measure accuracy")
    parser.add_argument("--sigma", type=float, required=True, help="noise, in [0, 1] pixel units")
    parser.add_argument("--out", required=True, metavar="FILE", help="weights to write: .safetensors, or .onnx")
    parser.add_argument("--first", type=int, default=64, metavar="N", help="use N images, spread evenly (default: 64)")
    parser.add_argument("--batch-size", type=int, default=4, metavar="B", help="images per pass (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.models.load import load_model
    from certiseg.training.adapt import adapt_normalisation, noisy_accuracy, normalisation_layers

    if Path(args.out).suffix not in (".safetensors", ".onnx"):
        raise InputError(f"--out must end in .safetensors or .onnx, got {args.out!r}")
    if not args.sigma > 0 or args.batch_size < 2 or args.first < 2:
        raise InputError("--sigma must be positive, --batch-size and --first at least 2")
    images, labels = _read(args)
    segmenter = load_model(args.model)
    layers = len(normalisation_layers(segmenter))
    measured: dict[str, float] = {}
    if labels:
        measured["before"] = noisy_accuracy(segmenter, images, labels, sigma=args.sigma)
    with tqdm(total=len(images), desc="adapt", unit="image", disable=None, leave=False) as bar:
        for done in adapt_normalisation(
            segmenter, images, sigma=args.sigma, batch_size=args.batch_size, seed=args.seed
        ):
            bar.update(done - bar.n)
    if labels:
        measured["after"] = noisy_accuracy(segmenter, images, labels, sigma=args.sigma)
    _write(args, segmenter)
    _report(args, layers, len(images), measured)
    return 0


def _read(args: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """The images in use, and their label maps if a folder of them was named."""
    entries = list_files(Path(args.images), Path(args.labels) if args.labels else None, plain_ids(VOID))
    chosen = np.unique(np.linspace(0, len(entries) - 1, min(args.first, len(entries))).astype(int))
    samples = [entries[index].read() for index in chosen]
    labels = [sample.label for sample in samples if sample.label is not None]
    return [read_image(sample.image) for sample in samples], labels


def _write(args: argparse.Namespace, segmenter: Any) -> None:
    from certiseg.training.checkpoint import save_weights

    if args.out.endswith(".onnx"):
        from certiseg.models.backends import export_onnx

        export_onnx(segmenter, args.out)
        return
    save_weights(Path(args.out), segmenter.model, classes=segmenter.class_names or (), adapted_sigma=args.sigma)


def _report(args: argparse.Namespace, layers: int, images: int, measured: dict[str, float]) -> None:
    if args.json:
        print(json.dumps({"layers": layers, "images": images, "sigma": args.sigma, "out": args.out, **measured}))
        return
    print(f"{layers} normalisation layers re-estimated from {images} images at sigma = {args.sigma:g}: {args.out}")
    if measured:
        print(f"pixel accuracy under noise: {measured['before']:.3f} before, {measured['after']:.3f} after")
