"""certiseg adapt: re-estimate normalisation statistics under noise, without labels."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from certiseg.cli import COMMANDS
from certiseg.cli.options import add_image_options, add_model_options, model_choice
from certiseg.datasets.base import Files, list_files
from certiseg.datasets.coding import plain_ids
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.images import read_image
from certiseg.images.values import values_words
from certiseg.models.device import move
from certiseg.models.settings import ModelChoice
from certiseg.models.specs import respecified
from certiseg.settings import typed_field

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "adapt",
        help=COMMANDS["adapt"],
        description="Passes unlabelled images with noise through a network once, stores the statistics of its "
        "BatchNorm layers anew, writes the weights and prints the command that certifies with them. Nothing else "
        "changes. With --labels the accuracy under noise is measured before and after. Options of the model "
        "are those of `certify`; a --backend goes into the printed command, for torch alone can adapt.",
        epilog="example: certiseg adapt hrnet-w48:city.pth --images leftImg8bit/train/ulm --sigma 0.25 "
        "--out city-noisy.safetensors",
    )
    forms = "compact, hrnet-w48:FILE, hf:FOLDER, hf:ORG/NAME, torch:package.module:factory"
    parser.add_argument("model", metavar="MODEL", help=f"a torch network: {forms}")
    parser.add_argument("--images", required=True, metavar="FOLDER", help="images of the kind to be certified")
    parser.add_argument("--labels", metavar="FOLDER", help="label maps of the same names, to measure accuracy")
    parser.add_argument("--sigma", type=float, required=True, help="noise, in [0, 1] pixel units")
    parser.add_argument("--out", required=True, metavar="FILE", help="weights to write: .safetensors, or .onnx")
    parser.add_argument("--first", type=int, default=64, metavar="N", help="use N images, spread evenly (default: 64)")
    parser.add_argument("--batch-size", type=int, default=4, metavar="B", help="images per pass (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_image_options(parser)
    add_model_options(parser, named=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.training.adapt import adapt_normalisation, noisy_accuracy, normalisation_layers

    if Path(args.out).suffix not in (".safetensors", ".onnx"):
        raise InputError(f"--out must end in .safetensors or .onnx, got {args.out!r}")
    if not args.sigma > 0 or args.batch_size < 2 or args.first < 2:
        raise InputError("--sigma must be positive, --batch-size and --first at least 2")
    entries = list_files(Path(args.images), Path(args.labels) if args.labels else None, plain_ids(VOID))
    segmenter, command = _model(args, entries[0].image)
    layers = len(normalisation_layers(segmenter))
    images, labels = _read(args, entries, segmenter)
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
    _report(args, {"layers": layers, "images": len(images), "sigma": args.sigma, "out": args.out}, measured, command)
    return 0


def _model(args: argparse.Namespace, image: Path) -> tuple[Segmenter, list[str]]:
    """The model of the options in torch, and the command that certifies an image with the weights to be written."""
    from certiseg.models.choice import choose_model

    choice = model_choice(args)
    chosen = choose_model(replace(choice, backend=None), sigmas=(args.sigma,))
    assert chosen.choice is not None, "the model was given as text"
    for note in chosen.notes:
        print(f"note: {note}", file=sys.stderr)
    if args.out.endswith(".onnx"):  # the file tells all that was said
        again = replace(choice, model=args.out, backend=None)
    else:
        again = replace(choice, model=respecified(chosen.choice.model, args.out, choice.said))
    command = ["certiseg", "certify", str(image)]
    for each in fields(ModelChoice):
        if each.name in ("model", "backend", "denoiser"):
            command += typed_field(each, getattr(again, each.name))
    command += ["--sigma", f"{args.sigma:g}", *(["--values", values_words(args.values)] if args.values else [])]
    return move(chosen.segmenter, args.device), command + ([] if chosen.hierarchy else ["--method", "sets"])


def _read(args: argparse.Namespace, entries: list[Files], segmenter: Segmenter) -> tuple[list[Any], list[Any]]:
    """The images in use, and their label maps if a folder of them was named."""
    chosen = np.unique(np.linspace(0, len(entries) - 1, min(args.first, len(entries))).astype(int))
    found = [entries[index] for index in chosen]
    labels = [entry.read().label for entry in found] if args.labels else []
    images = [read_image(entry.image, values=args.values, channels=segmenter.settings.channels) for entry in found]
    counts = sorted({image.shape[2] for image in images})
    if len(counts) > 1:
        raise InputError(f"--images must all have the same channels, got {counts[0]} and {counts[-1]}; convert some")
    return images, labels


def _write(args: argparse.Namespace, segmenter: Segmenter) -> None:
    from certiseg.training.checkpoint import save_weights

    if args.out.endswith(".onnx"):
        from certiseg.models.backends import export_onnx

        export_onnx(segmenter, args.out)
        return
    facts: dict[str, Any] = {"adapted_sigma": args.sigma}
    if segmenter.settings.trained_size is not None:
        facts["trained_size"] = segmenter.settings.trained_size
    network: Any = segmenter.model
    save_weights(Path(args.out), network, classes=segmenter.class_names or (), **facts)


def _report(args: argparse.Namespace, facts: dict[str, Any], measured: dict[str, float], command: list[str]) -> None:
    if args.json:
        spec = command[command.index("--model") + 1]
        print(json.dumps({**facts, **measured, "model": spec, "command": shlex.join(command)}))
        return
    print(
        f"{facts['layers']} normalisation layers re-estimated from {facts['images']} images at sigma = "
        f"{args.sigma:g}: {args.out}"
    )
    if measured:
        print(f"pixel accuracy under noise: {measured['before']:.3f} before, {measured['after']:.3f} after")
    print(f"certify with it: {shlex.join(command)}")
