"""certiseg calibrate: what a model misses on labelled images, made into sets that hold the truth on others."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from certiseg.cli import COMMANDS
from certiseg.cli.options import (
    add_image_options,
    add_model_options,
    add_settings,
    add_sigma,
    model_and_hierarchy,
    settings_of,
)
from certiseg.cli.threat import add_threat_options, settle_threat_alone
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.truth.settings import CalibrationSettings

if TYPE_CHECKING:
    from certiseg.datasets import Dataset
    from certiseg.hierarchy import Hierarchy
    from certiseg.models.segmenter import Segmenter

ELSEWHERE = ("sigma", "threat", "up_to", "classes")
"""Settings whose options are not made from their field."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "calibrate",
        help=COMMANDS["calibrate"],
        description="Asks the model about every image of a labelled data set once, under noise, and finds how many "
        "classes a set must hold for it to have the true one, under attack. The images must be like those to come, "
        "and the model must not have been trained on them. The file goes to `certiseg certify --calibration`.",
        epilog="example: certiseg calibrate camvid --root ../shared/data/camvid --model compact --sigma 0.25 "
        "--radius 0.169 --risk 0.1 --pixels 0.95 --out calibration.json",
    )
    add_data_options(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the calibration to write, for example c.json")
    parser.add_argument("--seed", type=int, help="seed of the noise (default: fresh; recorded)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_promise_options(parser.add_argument_group("promise"))
    add_threat_options(parser)
    add_image_options(parser)
    add_model_options(parser)
    parser.set_defaults(run=run)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Which labelled images."""
    parser.add_argument("dataset", metavar="DATASET", help="name of a data set; see docs/datasets.md")
    parser.add_argument("--root", metavar="DIR", help="where the data set lies (not needed for streets)")
    parser.add_argument("--split", help="part of the data set (default: the one that is usually reported)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N images")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th image (default: 1)")


def add_promise_options(group: Any) -> None:
    """What is promised."""
    add_sigma(group)
    names = [each.name for each in fields(CalibrationSettings) if each.name not in ELSEWHERE]
    add_settings(group, CalibrationSettings, names)
    group.add_argument(
        "--classes", nargs="+", metavar="CLASS", help="one or two classes with a promise about their own pixels"
    )


def chosen_settings(args: argparse.Namespace) -> CalibrationSettings:
    """The settings that the options stand for."""
    settle_threat_alone(args)
    for name in ("risk", "pixels", "classes"):
        setattr(args, name, None if getattr(args, name) is None else tuple(getattr(args, name)))
    return settings_of(args, CalibrationSettings)


def run(args: argparse.Namespace) -> int:
    from certiseg.truth.calibrate import calibrate_pairs
    from certiseg.truth.calibration import require_enough

    settings = chosen_settings(args)
    out = Path(args.out)
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"--out must be a file in a folder that is there, got {args.out!r}")
    data = chosen_data(args)
    require_enough(len(data), settings)
    model, hierarchy = model_and_hierarchy(args)
    hierarchy = over_data(args, data, model, hierarchy)
    with tqdm(total=len(data), unit="image", disable=None, leave=False, delay=1) as bar:
        pairs = ((sample.image, sample.label) for sample in data)
        made = calibrate_pairs(
            model, pairs, settings, seed=args.seed, hierarchy=hierarchy, values=args.values, progress=bar.update
        )
    made.save(out)
    if args.json:
        print(json.dumps({"images": made.images, "levels": made.table(), "claim": made.claim()}, indent=1))
    else:
        print(f"{made.claim()}\n\nwritten to {out}; use it with: certiseg certify IMAGE --calibration {out}")
    return 0


def chosen_data(args: argparse.Namespace) -> Dataset:
    """The images that the options name."""
    if args.every < 1:
        raise InputError(f"--every must be at least 1, got {args.every}")
    classes = None if args.hierarchy is None else load_hierarchy(args.hierarchy).classes
    data = open_dataset(args.dataset, args.root, split=args.split, first=args.first, classes=classes)
    return data.subset(range(0, len(data), args.every))


def over_data(
    args: argparse.Namespace, data: Dataset, model: Segmenter, hierarchy: Hierarchy | None
) -> Hierarchy | None:
    """The hierarchy as said, or the data set's own; a model of other classes than the data set's is refused."""
    from certiseg.models.choice import ChosenModel
    from certiseg.runs.prepare import over_classes_of

    return over_classes_of(ChosenModel(model, hierarchy), data, as_said=args.hierarchy is not None).hierarchy
