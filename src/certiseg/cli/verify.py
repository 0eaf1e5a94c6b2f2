"""certiseg verify: an independent check of files of certificates, bounds and calibrated sets, and of runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from certiseg.archive import read_archive
from certiseg.cli import COMMANDS
from certiseg.cli.options import add_preparation_options, model_choice
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.verify import CERTIFICATE_VERSION, Verification, verify

if TYPE_CHECKING:
    from certiseg.runs.folder import RunFolder
    from certiseg.runs.verify import RunVerification


OF_TRUTH = (".truth.npz", ".json")
"""Calibrated sets, and calibrations."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "verify",
        help=COMMANDS["verify"],
        description="Recomputes a certificate from its stored votes and settings with code that shares nothing with "
        "the code that made it. With --model and --image, or --root for a run, every vote is drawn again from the "
        "seed and compared bit for bit. Of a run folder every file is checked: whether it is as it was written and to "
        "which image and run it belongs, certificates against the manifest, tables against certificates. Bounds, "
        "calibrations and calibrated sets (NAME.truth.npz) are checked in the same way. Exit code 1 if a check fails.",
        epilog="example: certiseg verify certified/street.certificate.npz --model compact --image street.png",
    )
    parser.add_argument(
        "certificates",
        nargs="+",
        metavar="FILE|RUN",
        help="files of certificates, bounds or calibrated sets, calibrations, or run folders",
    )
    parser.add_argument("--repair", action="store_true", help="set damaged images of a run back, to be drawn again")
    parser.add_argument("--model", metavar="SPEC", help="redraw the votes with this model")
    parser.add_argument("--image", metavar="FILE", help="the certified image, needed with --model")
    parser.add_argument("--root", metavar="DIR", help="where the data set of a run, or --dataset, lies")
    parser.add_argument(
        "--dataset", metavar="NAME", help="of calibrated sets: score their calibration images again, which are in it"
    )
    parser.add_argument("--split", help="part of that data set (default: the one that is usually reported)")
    parser.add_argument(
        "--hierarchy",
        metavar="NAME|FILE",
        help="the hierarchy that the certificate must be over (default: the model's own, or the preset of that name)",
    )
    add_preparation_options(parser.add_argument_group("model, as for certify"))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    folders = [path for path in args.certificates if Path(path).is_dir()]
    if folders:
        return _verify_runs(args, folders)
    if args.repair:
        raise InputError("--repair must be given with a run folder, got certificate files")
    if args.dataset and not (args.model and all(path.endswith(OF_TRUTH) for path in args.certificates)):
        raise InputError("--dataset must be given with --model and files of calibrated sets or calibrations alone")
    if bool(args.model) != bool(args.image) and not args.dataset:
        raise InputError("--model and --image must be given together: redrawing needs both")
    if (args.root or args.split) and not args.dataset:
        raise InputError("--root must be given with a run folder, or with --dataset, got files alone")
    model = _model(args) if args.model else None
    outcomes = [_verified(path, model, args) for path in args.certificates]
    if args.json:
        print(json.dumps([{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes], indent=1))
    else:
        for outcome in outcomes:
            verdict = f"verified, as far as {outcome.believed}" if outcome.believed else "verified"
            print(f"{outcome.path}: {verdict if outcome.passed else 'FAILED'}")
            for check in outcome.checks:
                print(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
            for note in outcome.notes:
                print(f"  note   {note}")
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _verified(path: str, model: Any, args: argparse.Namespace) -> Verification:
    if not path.endswith(OF_TRUTH):
        return verify(path, model=model, image=args.image, hierarchy=args.hierarchy)
    from certiseg.truth.verify import verify_truth

    if args.hierarchy:
        raise InputError("--hierarchy must be left out for calibrated sets, got it: the calibration has settled it")
    if not args.dataset:
        return verify_truth(path, model=model, image=args.image)
    data = open_dataset(args.dataset, args.root, split=args.split)
    with tqdm(data, unit="image", desc="score", disable=None, leave=False) as bar:
        samples = ((sample.image, sample.label) for sample in bar)
        return verify_truth(path, model=model, image=args.image, samples=samples)


def _verify_runs(args: argparse.Namespace, folders: list[str]) -> int:
    from certiseg.runs.folder import RunFolder
    from certiseg.runs.verify import repair_run, verify_run

    if args.dataset or args.split:
        raise InputError("--dataset and --split must be left out for a run, which names its own")
    if len(folders) < len(args.certificates) or args.image:
        raise InputError("RUN must be given without certificate files and --image; verify those one by one")
    if args.root and not args.model:
        raise InputError("--root must be given with --model: it is for drawing the votes again")
    outcomes: list[RunVerification] = []
    for path in folders:
        folder = RunFolder(path)
        with tqdm(total=len(folder.manifest.images), unit="image", desc="verify", disable=None) as bar:
            outcomes.append(verify_run(folder, hierarchy=args.hierarchy, each=lambda _, bar=bar: bar.update()))  # type: ignore[misc]
        if args.model and outcomes[-1].passed:
            outcomes[-1] = _redrawn(args, folder, outcomes[-1])
        repaired = repair_run(folder, outcomes[-1]) if args.repair and outcomes[-1].problems else None
        if not args.json:
            _show_run(outcomes[-1], repaired)
    if args.json:
        print(json.dumps([{**asdict(each), "passed": each.passed} for each in outcomes], indent=1, default=str))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _redrawn(args: argparse.Namespace, folder: RunFolder, found: RunVerification) -> RunVerification:
    """The outcome with all votes of the run drawn again."""
    from certiseg.runs.verify import redraw_run

    manifest = folder.manifest
    model = _model(args, manifest.tree.num_classes)
    samples = open_dataset(manifest.dataset, args.root, split=manifest.split, classes=manifest.tree.classes)
    places = {name: index for index, name in enumerate(samples.names)}
    if missing := [name for name in folder.finished() if name not in places]:
        raise InputError(f"--root must hold the images of the run, but {missing[0]!r} is not there")
    with tqdm(total=found.images, unit="image", desc="redraw", disable=None) as bar:
        problems = redraw_run(
            folder, model, lambda name: samples[places[name]], hierarchy=args.hierarchy, each=lambda _: bar.update()
        )
    fewer = f"{len(manifest.images)} of the {len(samples)} images that --root holds are in the run"
    notes = (*found.notes, fewer) if len(manifest.images) < len(samples) else found.notes
    return replace(found, problems=(*found.problems, *problems), redrawn=True, notes=notes)


def _show_run(outcome: RunVerification, repaired: list[str] | None) -> None:
    counts = {"image": outcome.images, "certificate": outcome.certificates}
    images, certificates = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())
    checked = f"{images}, {certificates} recomputed, votes {'' if outcome.redrawn else 'not '}redrawn"
    print(f"{outcome.path}: {'verified' if outcome.passed else 'FAILED'} ({checked})")
    for problem in outcome.problems:
        print(f"  FAILED {problem.what}")
    for note in outcome.notes:
        print(f"  note   {note}")
    if outcome.unfinished:
        print(f"  not finished: {len(outcome.unfinished)} images (first: {outcome.unfinished[0]}); resume the run")
    if repaired is not None:
        print(f"  repaired: {len(repaired)} images set back; `certiseg evaluate` with the run's own settings goes on")


def _model(args: argparse.Namespace, num_classes: int | None = None) -> Any:
    """The model to redraw with; a file that gives labels alone is told how many classes there are."""
    from certiseg.models.choice import load_choice

    if args.model.lower().endswith((".onnx", ".xml", ".tflite", ".pt", ".ts", ".pt2")):
        args.num_classes = args.num_classes or num_classes
        try:
            stored = read_archive(args.certificates[0], kind="certificate", version=CERTIFICATE_VERSION)
            args.num_classes = args.num_classes or len(stored.meta["hierarchy"]["classes"])
        except (InputError, KeyError, TypeError):  # the checks will say what is wrong with the certificate
            pass
    return load_choice(model_choice(args))
