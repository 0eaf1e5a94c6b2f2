"""What `certify` and `evaluate` do with --calibration: sets that hold the truth, by one noisy pass per image."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from certiseg.archive import write_atomically
from certiseg.attack.settings import AttackSettings
from certiseg.cli.calibrate import chosen_data, over_data
from certiseg.cli.options import check_output_folder, model_and_hierarchy, output_folder
from certiseg.errors import InputError
from certiseg.images.values import values_words
from certiseg.render.figures import figure_bytes
from certiseg.runs.names import file_name
from certiseg.runs.sealed import write_sealed
from certiseg.words import PROMISE

if TYPE_CHECKING:
    import argparse

    from PIL.Image import Image

    from certiseg.truth.answer import TruthSets

IDLE = (
    *("sigma", "n0", "n", "temperature", "noise", "stop_undecided", "n_max", "batch_size"),
    *("threat_name", "scale", "airlight", "depth", "up_to", "region"),
    *("objects", "least_area", "area", "instances", "keep_maps", "measures_only"),
    *("method", "tau", "alpha", "correction", "k", "test", "thresholds", "level", "max_set", "radius"),
)
"""Options of `certify` that have no effect beside a calibration, which fixes all that they would."""


def refuse_idle(args: argparse.Namespace) -> None:
    """Refuse options that the calibration settles: whoever gave one expects an effect."""
    for name, default in args.defaults.items():
        if getattr(args, name, default) != default:
            flag = {"n": "-n", "threat_name": "--threat", "k": "--kfwer-k"}.get(name, f"--{name.replace('_', '-')}")
            raise InputError(f"{flag} must be left out with --calibration, got it: the calibration has settled it")


def certify(args: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Write the sets of every image, a picture of their sizes and a summary; images are read as when calibrated."""
    from certiseg.truth.files import load_calibration

    refuse_idle(args)
    calibration = load_calibration(args.calibration)
    if args.values not in (None, (), calibration.values):
        known = values_words(calibration.values)
        raise InputError(f"--values must be as calibrated, {known}, or left out, got {values_words(args.values)}")
    images = {path: calibration.open(path) for path in paths}
    check_output_folder(args.out)
    args.sigma = calibration.settings.sigma
    height, width, _ = next(iter(images.values())).pixels.shape
    model, _ = model_and_hierarchy(args, (height, width))
    calibration.require_model(model)
    folder, summaries = output_folder(args.out), []
    bar = tqdm(images.items(), unit="image", disable=None, leave=False, delay=1)
    started, answers = time.perf_counter(), calibration.answers(model, images.values(), args.seed)
    for (path, picture), found in zip(bar, answers, strict=True):
        seconds = time.perf_counter() - started
        summaries.append({"image": path.name, **found.summary(), "seconds": round(seconds, 2)})
        write_outputs(folder, path.stem, found.overlay(picture, channels=args.show), found, summaries[-1])
        if not args.json:
            print(_line(summaries[-1]))
        started = time.perf_counter()
    if args.json:
        print(json.dumps(summaries, indent=1))
    else:
        for claim in dict.fromkeys(summary["claim"] for summary in summaries):
            about = [summary["image"] for summary in summaries if summary["claim"] == claim]
            whose = "" if len(about) == len(summaries) else f"{', '.join(about)}:\n"
            print(f"\n{whose}{claim}")
        print(f"\nwritten to {folder}/")
    return 0


def evaluate(args: argparse.Namespace) -> int:
    """Write what the sets reach on a labelled data set: truth.json, truth.md, coverage.png, and the sets themselves."""
    from certiseg.truth.evaluate import REACHED, as_json, draw_coverage, evaluate_sets, page
    from certiseg.truth.files import load_calibration

    refuse_idle(args)
    calibration, data = load_calibration(args.calibration), chosen_data(args)
    attack = AttackSettings(steps=20 if args.steps is None else args.steps, restarts=1)
    check_output_folder(args.out)
    args.sigma = calibration.settings.sigma
    model, hierarchy = model_and_hierarchy(args)
    over_data(args, data, model, hierarchy)
    folder = output_folder(args.out)

    def keep(name: str, sets: TruthSets) -> None:
        sets.save(folder / f"{file_name(name)}.truth.npz")

    with tqdm(total=len(data), unit="image", disable=None, leave=False, delay=1) as bar:
        samples = ((sample.name, sample.image, sample.label) for sample in data)
        multiples = args.multiples or [0.0]
        how: dict[str, Any] = {"multiples": multiples, "attack": attack, "keep": keep, "progress": bar.update}
        found = evaluate_sets(calibration, model, samples, **how)
    told = page(found, calibration, data=args.dataset)
    write_sealed(folder / "truth.json", REACHED, as_json(found, calibration))
    for name, content in {"truth.md": told.encode(), "coverage.png": figure_bytes(draw_coverage(found), "png")}.items():
        with write_atomically(folder / name) as file:
            file.write(content)
    print((folder / "truth.json").read_text("utf-8") if args.json else f"{told}\nwritten to {folder}/")
    return 0


def write_outputs(folder: Path, stem: str, overlay: Image, found: TruthSets, summary: dict[str, Any]) -> None:
    """The three files of an image, each whole or absent."""
    with write_atomically(folder / f"{stem}.sizes.png") as file:
        overlay.save(file, "PNG")
    found.save(folder / f"{stem}.truth.npz")
    with write_atomically(folder / f"{stem}.truth.json") as file:
        file.write(json.dumps(summary, indent=1).encode())


def _line(summary: dict[str, Any]) -> str:
    kind = "a promise about the truth" if summary["role"] == PROMISE else f"{summary['role']}, not a promise"
    return (
        f"{summary['image']}: {summary['mean_set_size']:.2f} classes in a set on average, one class at "
        f"{summary['singletons']:.1%} of the pixels, in {summary['seconds']:.1f} s ({kind})"
    )
