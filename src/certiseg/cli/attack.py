"""certiseg attack: search for perturbations that refute certificates; none may be found within R."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiseg.archive import write_atomically
from certiseg.attack.settings import AttackSettings
from certiseg.cli import COMMANDS
from certiseg.cli.measures import LEAST_AREA, add_objects_options, object_labels
from certiseg.cli.options import (
    add_certificate_options,
    add_model_options,
    add_settings,
    add_votes_options,
    certificate_settings,
    model_and_hierarchy,
    sampling_settings,
    settings_of,
    settle_stopping,
)
from certiseg.cli.threat import add_threat_options, settle_threat
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.images import open_image
from certiseg.measures.questions import objects
from certiseg.planning import require_certifiable
from certiseg.render.figures import figure_bytes
from certiseg.runs.settings import RunSettings
from certiseg.settings import given

if TYPE_CHECKING:
    from certiseg.attack.run import Outcome, Victim
    from certiseg.attack.sweep import Step
    from certiseg.bounds import Bounds
    from certiseg.certificate import Certificate
    from certiseg.hierarchy import Hierarchy
    from certiseg.models.segmenter import Segmenter
    from certiseg.runs.folder import RunFolder
    from certiseg.threats import Threat
    from certiseg.votes import Votes


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "attack",
        help=COMMANDS["attack"],
        description="Searches for perturbations of l2 size up to multiples of R that move certified pixels out of "
        "their labels, draws the noise afresh there and tests which certificates are refuted. Takes images, which it "
        "certifies first, or a run folder of `certiseg evaluate`. With --threat its parameter is swept instead, inside "
        "the certified range and beyond. Exit code 1 if one is refuted within R, or inside the range.",
        epilog="example: certiseg attack street.png --model compact --multiples 1 8 64",
    )
    parser.add_argument("victims", nargs="+", metavar="RUN|IMAGE", help="image files, or one run folder")
    parser.add_argument("--root", metavar="DIR", help="for a run: where its data set lies")
    parser.add_argument("--first", type=int, metavar="N", help="for a run: only its first N images")
    parser.add_argument("--out", metavar="FILE", help="write a page in Markdown, anew after every image")
    parser.add_argument("--json", action="store_true", help="print every attack as JSON")
    add_settings(parser, RunSettings, ("values",))
    add_settings(parser.add_argument_group("attack"), AttackSettings)
    add_objects_options(parser.add_argument_group("objects of images; those of a run are attacked as they are"))
    add_model_options(parser)
    add_votes_options(parser)
    add_threat_options(parser)
    group = parser.add_argument_group("sweep, with --threat")
    group.add_argument(
        "--sweep-steps", type=int, default=8, metavar="K", help="parameters inside the range (default: 8)"
    )
    group.add_argument("--beyond", type=float, default=3.0, metavar="K", help="how far, in ranges (default: 3)")
    add_certificate_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.attack.loss import require_gradient
    from certiseg.attack.report import page, rows_of, table_lines, verdict
    from certiseg.attack.run import attack_certificate, within_radius

    if args.stop_undecided is not None:
        raise InputError("--stop-undecided must be left to certify and evaluate, got it for attack; give -n instead")
    settle_stopping(args)
    settle_threat(args)
    if _threat(args).law != "none":
        return _sweep(args)
    attack, started = settings_of(args, AttackSettings), time.monotonic()
    model, hierarchy = model_and_hierarchy(args)
    through = _torch_twin(args) if args.backend else model
    require_gradient(through)
    outcomes: list[Outcome] = []
    clean: list[float | None] = []
    for victim in _victims(args, model, hierarchy):
        tell = (lambda _: None) if args.json else _tell
        outcomes += attack_certificate(model, victim, attack, through=through, each=tell)
        clean.append(victim.accuracy(model.predict(victim.pixels)))
        if args.out:
            minutes = (time.monotonic() - started) / 60
            told = page(outcomes, attack, victim.certificate, clean=clean, minutes=minutes)
            _write(Path(args.out), told.encode())
    if args.json:
        print(json.dumps({"attacks": [asdict(o) for o in outcomes], "rows": rows_of(outcomes)}, indent=1))
    else:
        print("\n".join(["", *table_lines(outcomes), "", verdict(outcomes)]))
    return 1 if within_radius(outcomes) else 0


def _sweep(args: argparse.Namespace) -> int:
    """The parameter of a threat swept over every certificate; with --out a page, and its figure beside it."""
    from certiseg.attack.sweep import Sweep, refuted_inside, sweep_certificate
    from certiseg.attack.sweep_page import draw_sweep, page, table_lines, verdict

    if args.objects is not None:
        raise InputError("--objects must be left out with --threat, got it: the sweep looks at certified pixels")
    sweep = Sweep(args.sweep_steps, args.beyond, args.draws, args.attack_alpha)
    model, hierarchy = model_and_hierarchy(args)
    steps: list[Step] = []
    for victim in _victims(args, model, hierarchy):
        steps += sweep_certificate(model, victim, sweep, each=(lambda _: None) if args.json else _tell_step)
        if args.out:
            picture = Path(args.out).with_suffix(".png")
            _write(picture, figure_bytes(draw_sweep(steps, victim), "png"))
            _write(Path(args.out), page(steps, victim, sweep, picture=picture.name).encode())
    if args.json:
        print(json.dumps({"steps": [asdict(step) for step in steps], "verdict": verdict(steps)}, indent=1))
    else:
        print("\n".join(["", *table_lines(steps, _threat(args).words), "", verdict(steps)]))
    return 1 if refuted_inside(steps) else 0


def _tell_step(step: Step) -> None:
    eight = ", rounded to 8 bits" if step.rounded else ""
    print(
        f"{step.image}: t = {step.t:.3f}{eight}: refuted {step.refuted:,}, lowest {step.lowest_share:.2f}", flush=True
    )


def _torch_twin(args: argparse.Namespace) -> Segmenter:
    """The torch model of which a backend runs an export: gradients pass through it, draws do not."""
    with contextlib.redirect_stderr(io.StringIO()):  # its notes were already printed
        return model_and_hierarchy(argparse.Namespace(**{**vars(args), "backend": None}))[0]


def _victims(args: argparse.Namespace, model: Segmenter, hierarchy: Hierarchy | None) -> Iterator[Victim]:
    return _of_images(args, model, hierarchy) if _run_of(args) is None else _of_run(args, model)


def _run_of(args: argparse.Namespace) -> RunFolder | None:
    """The run that is attacked; None for images."""
    from certiseg.runs.folder import RunFolder

    runs = [path for path in args.victims if Path(path).is_dir()]
    if runs and len(args.victims) > 1:
        raise InputError(f"RUN must stand alone, got {len(args.victims)} paths with the folder {runs[0]!r}")
    return RunFolder(runs[0]) if runs else None


def _threat(args: argparse.Namespace) -> Threat:
    """What the certificates are about: as asked, or as the run was made."""
    folder = _run_of(args)
    asked: Threat = args.threat
    if folder is None:
        return asked
    if asked.law != "none" and asked != folder.manifest.threat:
        raise InputError(
            f"--threat must be that of the run, {folder.manifest.threat.name}, or left out, got {asked.name}"
        )
    return folder.manifest.threat


def _of_images(args: argparse.Namespace, model: Segmenter, hierarchy: Hierarchy | None) -> Iterator[Victim]:
    from certiseg.attack.run import Victim
    from certiseg.certify import certify
    from certiseg.sampling import sample

    labels = object_labels(args.objects, args.least_area, hierarchy)
    asked = [objects(*labels, least=LEAST_AREA if args.least_area is None else args.least_area)] if labels else []
    channels = model.settings.channels
    images = {Path(path).name: open_image(path, values=args.values, channels=channels) for path in args.victims}
    for picture in images.values():
        pixels = picture.pixels
        limits = {"tau": args.tau, "alpha": args.alpha, "sigma": args.sigma, "test": args.test}
        limits |= {"threat": args.threat, "anchors": args.anchors, "radius": args.radius}
        require_certifiable(pixels=pixels.shape[0] * pixels.shape[1], n=args.n, **limits)
    for name, picture in images.items():
        votes = sample(model, picture, measures=asked, hierarchy=hierarchy, **given(sampling_settings(args)))
        certificate = certify(votes, hierarchy, **given(certificate_settings(args)))
        yield Victim(name, picture.pixels, certificate, bounds=_bounds(votes, certificate, args.alpha))


def _bounds(votes: Votes, certificate: Certificate, alpha: float) -> Bounds | None:
    """Of the objects in the votes, at the tau of the certificate; none along a threat, which is swept over pixels."""
    from certiseg.bounds import BoundSettings, make_bounds

    if votes.record is None or not votes.record.measures or votes.threat.law != "none":
        return None
    return make_bounds(votes, BoundSettings(tau=certificate.settings.tau, alpha=alpha, test=certificate.settings.test))


def _of_run(args: argparse.Namespace, model: Segmenter) -> Iterator[Victim]:
    """The stored certificates of the run's first setting by --method, with the images of its data set."""
    from certiseg.attack.run import Victim

    folder = _run_of(args)
    assert folder is not None
    manifest = folder.manifest
    if args.objects is not None:
        raise InputError("--objects must be left out for a run, got it: the objects of the run are attacked")
    if model.fingerprint() != manifest.model_sha256:
        raise InputError(f"--model must be the one of the run, {manifest.model}, got {model.name} (hash differs)")
    if args.method not in manifest.methods:
        raise InputError(f"--method must be one of the run's, {', '.join(manifest.methods)}, got {args.method}")
    samples = open_dataset(manifest.dataset, args.root, split=manifest.split, classes=manifest.tree.classes)
    place = {name: index for index, name in enumerate(samples.names)}
    for name in folder.finished()[: args.first]:
        if name not in place:
            raise InputError(f"--root must be the data set of the run, got one without the image {name}")
        setting = manifest.each_setting()[0]
        certificate = folder.certificate(name, setting, args.method)
        pixels = certificate.votes.open(samples[place[name]].image).pixels
        bounds = _bounds(folder.votes(name, setting), certificate, manifest.alpha_per_image)
        yield Victim(name, pixels, certificate, folder.label(name), bounds)


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.image}: {outcome.target} at {outcome.multiple:g} R: refuted {outcome.refuted:,} of "
        f"{outcome.tested:,}, lowest share {outcome.lowest_share:.2f}",
        flush=True,
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as file:
        file.write(content)
