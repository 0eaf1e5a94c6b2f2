"""certiseg evaluate: certify a data set and score it; resumable."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from certiseg.cli import COMMANDS, calibrated
from certiseg.cli.codes import LEFT_OUT
from certiseg.cli.options import add_memory_option, add_model_options, add_settings
from certiseg.cli.threat import add_threat_options, threat_of
from certiseg.errors import InputError
from certiseg.models.settings import ModelChoice, ModelSettings
from certiseg.runs.settings import EngineSettings, RunSettings

if TYPE_CHECKING:
    from certiseg.runs.run import Run


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help=COMMANDS["evaluate"],
        description="Certifies every image of a data set with every method from one sampling pass per sigma and keeps "
        "votes, certificates and a table in a run folder. Started again with the same settings it goes on where it "
        "stopped; with others it refuses. Exit codes: 2 bad input, 3 some images were left out, 4 nobody is left who "
        "draws, 130 interrupted.",
        epilog="example: certiseg evaluate camvid --root ../shared/data/camvid --sigma 0.25 --setting 100:0.75 "
        "--first 20 --out runs/camvid",
    )
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        help="name of a data set, or a table of image and label files (.csv, .parquet); see docs/datasets.md",
    )
    parser.add_argument("--root", metavar="DIR", help="where the data set lies (not needed for streets and tables)")
    parser.add_argument("--split", help="part of the data set (default: the one that is usually reported)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N images")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th image (default: 1)")
    parser.add_argument("--out", required=True, metavar="RUN", help="the run folder")
    names = [each.name for each in fields(RunSettings) if each.name not in _OF_THREAT]
    add_settings(parser, RunSettings, names, settings=None, test=None)
    parser.add_argument(
        "--n-max", type=int, metavar="N", help="most draws with --stop-undecided (default: n of the settings, or 1000)"
    )
    add_threat_options(parser)
    add_memory_option(parser)
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.add_argument(
        "--log-format",
        choices=["text", "json"],
        help="a line every few seconds on stderr, in words or as JSON (default: a bar on a terminal, else text)",
    )
    add_model_options(parser)
    group = parser.add_argument_group("who draws (changes no byte of the result; docs/scale.md)")
    add_settings(group, EngineSettings)
    group.add_argument("--shard", metavar="I/K", help="only every K-th image from the I-th; join with certiseg merge")
    group = parser.add_argument_group("sets that hold the truth (docs/truth.md)")
    group.add_argument("--calibration", metavar="FILE", help="evaluate the sets of `certiseg calibrate` instead")
    group.add_argument(
        "--multiples",
        type=float,
        nargs="+",
        metavar="K",
        help="with --calibration: attack at these multiples of what is covered, 0 for no attack (default: 0)",
    )
    group.add_argument("--steps", type=int, metavar="S", help="with --calibration: gradient steps (default: 20)")
    of_runs = {each.name for cls in (RunSettings, EngineSettings) for each in fields(cls)}
    of_runs |= {"shard", "threat_name", "n_max"}
    parser.set_defaults(run=run, defaults={name: parser.get_default(name) for name in sorted(of_runs)})


def run(args: argparse.Namespace) -> int:
    if args.calibration is not None:
        return calibrated.evaluate(args)
    if args.multiples is not None or args.steps is not None:
        raise InputError("--multiples and --steps must come with --calibration, got them alone")
    from certiseg.runs.evaluate import evaluate
    from certiseg.runs.progress import progress_on

    args.threat = threat_of(args)
    options: dict[str, Any] = {each.name: getattr(args, each.name, None) for cls in CLASSES for each in fields(cls)}
    names = ("root", "split", "first", "every", "out", "shard", "memory", "n_max")
    progress = progress_on(args.dataset, args.log_format)
    try:
        evaluated = evaluate(
            args.dataset,
            sigma=options.pop("sigmas") or (),
            setting=options.pop("settings"),
            **{name: getattr(args, name) for name in names},
            progress=progress,
            **options,
        )
    except KeyboardInterrupt:
        done = progress.found_images + progress.new_images
        raise KeyboardInterrupt(f"{done} images are done, and the same command goes on from there") from None
    return show_shard(evaluated, as_json=args.json) if args.shard else show_run(evaluated, as_json=args.json)


_OF_THREAT = ("threat", "up_to")
"""Settings that `add_threat_options` has options for."""
CLASSES = (RunSettings, EngineSettings, ModelChoice, ModelSettings)
"""Settings whose fields are options of the command and arguments of `cs.evaluate`."""


def show_run(run: Run, *, as_json: bool) -> int:
    """Print the scores and what was left out; returns the exit code."""
    left_out = run.left_out
    scores = run.scores() if len(run) else None
    if as_json:
        warnings = scores.warnings if scores else []
        print(json.dumps({"scores": scores or [], "left_out": left_out, "warnings": warnings}, indent=1))
    else:
        print("\n".join([str(scores or "no image could be used"), *_left_out_lines(left_out)]))
    return LEFT_OUT if left_out else 0


def show_shard(run: Run, *, as_json: bool) -> int:
    """Print how far a shard is, and what to do with it; returns the exit code."""
    shard, done, left_out = run.folder.shard(), len(run), run.left_out
    if as_json:
        print(json.dumps({"shard": str(shard), "images": done, "left_out": left_out}, indent=1))
    else:
        told = f"shard {shard} of {run.manifest.dataset}: {done} images done, {len(left_out)} left out"
        hint = f"certiseg merge FOLDER-OF-EACH-SHARD... --out RUN   (this one is {run.path})"
        print("\n".join([f"{told}; join the shards with", hint, *_left_out_lines(left_out)]))
    return LEFT_OUT if left_out else 0


def _left_out_lines(left_out: dict[str, str]) -> list[str]:
    return [f"left out: {name}: {reason}" for name, reason in left_out.items()]
