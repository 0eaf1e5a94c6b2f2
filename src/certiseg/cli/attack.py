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

from certiseg.cli.options import (
    add_certificate_options,
    add_model_options,
    add_votes_options,
    certificate_settings,
    model_and_hierarchy,
    settle_stopping,
)
from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.attack.run import Attack, Outcome

    Victim = tuple[str, Any, Any, Any]
    """Name, pixels, ground truth or None, certificate."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "attack",
        help="try to refute certificates by gradients",
        description="Searches for perturbations of l2 size up to multiples of R that move certified pixels out of "
        "their labels, draws the noise afresh there and tests which certificates are refuted. Takes images, which it "
        "certifies first, or a run folder of `certiseg evaluate`. Exit code 1 if one is refuted within R.",
        epilog="example: certiseg attack street.png --model compact --multiples 1 8 64",
    )
    parser.add_argument("victims", nargs="+", metavar="RUN|IMAGE", help="image files, or one run folder")
    parser.add_argument("--root", metavar="DIR", help="for a run: where its data set lies")
    parser.add_argument("--first", type=int, metavar="N", help="for a run: only its first N images")
    parser.add_argument("--out", metavar="FILE", help="write a page in Markdown, anew after every image")
    parser.add_argument("--json", action="store_true", help="print every attack as JSON")
    group = parser.add_argument_group("attack")
    group.add_argument("--multiples", type=float, nargs="+", default=[1, 2, 4, 8, 16, 32, 64], metavar="K")
    group.add_argument("--targets", nargs="+", choices=["all", "pixel", "patch"], default=["all", "pixel", "patch"])
    group.add_argument("--steps", type=int, default=20, help="gradient steps (default: 20)")
    group.add_argument("--restarts", type=int, default=2, help="searches per ball (default: 2)")
    group.add_argument("--samples", type=int, default=2, help="noises per step (default: 2)")
    group.add_argument("--draws", type=int, default=100, help="fresh draws at x + delta (default: 100)")
    group.add_argument("--few-draws", type=int, default=40, help="the same for a pixel or a patch (default: 40)")
    group.add_argument("--attack-alpha", type=float, default=0.001, help="chance of refuting wrongly (default: 0.001)")
    add_model_options(parser)
    add_votes_options(parser)
    add_certificate_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.attack.loss import require_gradient
    from certiseg.attack.report import rows_of, table_lines, verdict
    from certiseg.attack.run import attack_certificate, within_radius

    if args.stop_undecided is not None:
        raise InputError("--stop-undecided must be left to certify and evaluate, got it for attack; give -n instead")
    settle_stopping(args)
    attack, started = _attack(args), time.monotonic()
    model, hierarchy = model_and_hierarchy(args)
    through = _torch_twin(args) if args.backend else model
    require_gradient(through)
    outcomes: list[Outcome] = []
    clean: list[float] = []
    for name, pixels, label, certificate in _victims(args, model, hierarchy):
        found = attack_certificate(
            model,
            pixels,
            certificate,
            attack,
            through=through,
            image=name,
            label=label,
            each=None if args.json else _tell,
        )
        outcomes += found
        clean += _clean_accuracy(model, pixels, label)
        if args.out:
            _write(args, attack, outcomes, clean, certificate, minutes=(time.monotonic() - started) / 60)
    if args.json:
        print(json.dumps({"attacks": [asdict(o) for o in outcomes], "rows": rows_of(outcomes)}, indent=1))
    else:
        print("\n".join(["", *table_lines(outcomes), "", verdict(outcomes)]))
    return 1 if within_radius(outcomes) else 0


def _attack(args: argparse.Namespace) -> Attack:
    from certiseg.attack.run import Attack
    from certiseg.attack.search import Search

    return Attack(
        multiples=tuple(args.multiples),
        targets=tuple(dict.fromkeys(args.targets)),
        search=Search(steps=args.steps, restarts=args.restarts, samples=args.samples),
        draws=args.draws,
        few_draws=args.few_draws,
        alpha=args.attack_alpha,
    )


def _torch_twin(args: argparse.Namespace) -> Any:
    """The torch model of which a backend runs an export: gradients pass through it, draws do not."""
    with contextlib.redirect_stderr(io.StringIO()):  # its notes were already printed
        return model_and_hierarchy(argparse.Namespace(**{**vars(args), "backend": None}))[0]


def _victims(args: argparse.Namespace, model: Any, hierarchy: Any) -> Iterator[Victim]:
    runs = [path for path in args.victims if Path(path).is_dir()]
    if runs and len(args.victims) > 1:
        raise InputError(f"RUN must stand alone, got {len(args.victims)} paths with the folder {runs[0]!r}")
    return _of_run(args, model) if runs else _of_images(args, model, hierarchy)


def _of_images(args: argparse.Namespace, model: Any, hierarchy: Any) -> Iterator[Victim]:
    from certiseg.certify import certify
    from certiseg.images import read_image
    from certiseg.planning import require_certifiable
    from certiseg.votes import sample

    images = {Path(path).name: read_image(path) for path in args.victims}
    for pixels in images.values():
        tested = pixels.shape[0] * pixels.shape[1]
        limits = {"tau": args.tau, "alpha": args.alpha, "sigma": args.sigma, "test": args.test}
        require_certifiable(pixels=tested, n=args.n, **limits)
    for name, pixels in images.items():
        numbers = {
            key: getattr(args, key) for key in ("sigma", "n0", "n", "seed", "batch_size", "temperature", "noise")
        }
        votes = sample(model, pixels, **numbers, max_set=max(5, args.max_set or 0))
        yield name, pixels, None, certify(votes, hierarchy, **certificate_settings(args))


def _of_run(args: argparse.Namespace, model: Any) -> Iterator[Victim]:
    """The stored certificates of the run's first setting by --method, with the images of its data set."""
    from certiseg.datasets import open_dataset
    from certiseg.images import read_image
    from certiseg.runs.folder import RunFolder

    folder = RunFolder(args.victims[0])
    manifest = folder.manifest
    if model.fingerprint() != manifest.model_sha256:
        raise InputError(f"--model must be the one of the run, {manifest.model}, got {model.name} (hash differs)")
    if args.method not in manifest.methods:
        raise InputError(f"--method must be one of the run's, {', '.join(manifest.methods)}, got {args.method}")
    samples = open_dataset(manifest.dataset, args.root, split=manifest.split)
    place = {name: index for index, name in enumerate(samples.names)}
    for name in folder.finished()[: args.first]:
        if name not in place:
            raise InputError(f"--root must be the data set of the run, got one without the image {name}")
        certificate = folder.certificate(name, manifest.each_setting()[0], args.method)
        yield name, read_image(samples[place[name]].image), folder.label(name), certificate


def _clean_accuracy(model: Any, pixels: Any, label: Any) -> list[float]:
    from certiseg.attack.run import accuracy

    return [] if label is None else [accuracy(model.predict(pixels), label)]


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.image}: {outcome.target} at {outcome.multiple:g} R: refuted {outcome.refuted:,} of "
        f"{outcome.tested:,}, lowest share {outcome.lowest_share:.2f}",
        flush=True,
    )


def _write(
    args: argparse.Namespace,
    attack: Attack,
    outcomes: list[Outcome],
    clean: list[float],
    certificate: Any,
    *,
    minutes: float,
) -> None:
    import numpy as np

    from certiseg.archive import write_atomically
    from certiseg.attack.report import page
    from certiseg.claims import grey_levels

    votes, settings = certificate.votes, certificate.settings
    drawn, count = votes.provenance, len({o.image for o in outcomes})
    facts = (
        f"Model {drawn.get('model')} (run by {drawn.get('backend')}), {count} image{'s' if count > 1 else ''}, "
        f"method {settings.method}, sigma = {votes.sigma:g}, {votes.noise} noise, n = {votes.n}, "
        f"tau = {settings.tau:g}, alpha = {settings.alpha:g}, correction {settings.correction}; the attacks took "
        f"{minutes:.1f} minutes."
    )
    grey = grey_levels(certificate.radius, values=3 * votes.size[0] * votes.size[1])
    text = page(outcomes, attack, facts=facts, grey=grey, clean=float(np.mean(clean)) if clean else None)
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(Path(args.out)) as file:
        file.write(text.encode())
