"""certiseg certify: certificates and pictures of images."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiseg.cli.options import (
    add_certificate_options,
    add_model_options,
    add_votes_options,
    certificate_settings,
    model_and_hierarchy,
    output_folder,
    settle_stopping,
    settled_batch_size,
)
from certiseg.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.certificate import Certificate


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "certify",
        help="certify images",
        description="Certifies images and writes, for each: a label map (NAME.labels.png), an overlay with legend "
        "(NAME.overlay.png), a summary (NAME.json) and the certificate with its votes (NAME.certificate.npz), which "
        "`certiseg verify` checks.",
        epilog="example: certiseg certify street.png --model compact --method sets --sigma 0.25 --out certified/",
    )
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument("--out", default="certified", metavar="DIR", help="where to write (default: certified/)")
    parser.add_argument("--region", metavar="MASK", help="test only the pixels that are not black in this image")
    parser.add_argument("--json", action="store_true", help="print the summaries as JSON")
    add_model_options(parser)
    add_votes_options(parser)
    add_certificate_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.images import read_image

    settle_stopping(args)
    paths = [Path(image) for image in args.images]
    repeated = {path.stem for path in paths if [p.stem for p in paths].count(path.stem) > 1}
    if repeated:
        raise InputError(f"IMAGE names must differ without their endings, got {sorted(repeated)[0]!r} twice")
    images = {path: read_image(path) for path in paths}
    region = _read_region(args.region) if args.region else None
    height, width = next(iter(images.values())).shape[:2]
    model, hierarchy = model_and_hierarchy(args, (height, width))
    _refuse_early(args, images, region, hierarchy)
    args.batch_size = settled_batch_size(args, model, (height, width))
    folder = output_folder(args.out)
    summaries = []
    for path, pixels in images.items():
        started = time.perf_counter()
        certificate = _certify(args, model, hierarchy, path, pixels, region)
        summary = summarise(certificate, name=path.name, seconds=time.perf_counter() - started)
        write_outputs(folder, path.stem, pixels, certificate, summary)
        summaries.append(summary)
        if not args.json:
            print(_line(summary))
    if args.json:
        print(json.dumps(summaries, indent=1))
    else:
        print(f"\n{summaries[-1]['claim']}\n")
        print(f"written to {folder}/; check with: certiseg verify {folder}/*.certificate.npz")
    return 0


def _refuse_early(args: argparse.Namespace, images: dict[Path, Any], region: Any, hierarchy: Any) -> None:
    """Everything that can be known to fail is refused before the first draw."""
    from certiseg.hierarchy import check_thresholds
    from certiseg.planning import require_certifiable
    from certiseg.tally import SamplingPlan

    options = {"seed": args.seed, "temperature": args.temperature, "noise": args.noise}
    SamplingPlan(sigma=args.sigma, n0=args.n0, n=args.n, **options)
    for path, pixels in images.items():
        if region is not None and region.shape != pixels.shape[:2]:
            raise InputError(f"--region must have the size of {path}, {pixels.shape[:2]}, got {region.shape}")
        tested = pixels.shape[0] * pixels.shape[1] if region is None else int(region.sum())
        require_certifiable(
            pixels=max(tested, 1), n=args.n, tau=args.tau, alpha=args.alpha, sigma=args.sigma, test=args.test
        )
    if args.thresholds is not None and hierarchy is not None:
        check_thresholds(args.thresholds, hierarchy.num_levels, "--thresholds")
    if hierarchy is None and args.method not in ("segcertify", "sets"):
        raise InputError(f"--hierarchy must be given for the method {args.method}")


def _certify(
    args: argparse.Namespace, model: Any, hierarchy: Any, path: Path, pixels: NDArray[np.float32], region: Any
) -> Certificate:
    from tqdm import tqdm

    from certiseg.certify import certify
    from certiseg.stopping import ASKED_EVERY, UndecidedRule
    from certiseg.votes import sample

    settings = certificate_settings(args)
    with tqdm(total=args.n0 + args.n, desc=path.name, unit="draw", disable=None, leave=False, delay=1) as bar:
        rule = None
        if args.stop_undecided is not None:
            rule = UndecidedRule(
                args.stop_undecided, args.n, hierarchy, settings, region, lambda now: bar.set_postfix(now.shares())
            )
        votes = sample(
            model,
            pixels,
            sigma=args.sigma,
            n0=args.n0,
            n=args.n,
            seed=args.seed,
            batch_size=args.batch_size,
            max_set=max(5, args.max_set or 0),
            temperature=args.temperature,
            noise=args.noise,
            stop=rule,
            stop_every=ASKED_EVERY,
            progress=bar.update,
        )
    return certify(votes, hierarchy, **settings, region=region)


def summarise(certificate: Certificate, *, name: str, seconds: float) -> dict[str, Any]:
    """What a program, or a reader in a hurry, wants to know about a certificate."""
    from dataclasses import asdict

    from certiseg.report.pictures import legend

    votes, hierarchy = certificate.votes, certificate.hierarchy
    return {
        "format_version": 1,
        "image": name,
        "size": list(votes.size),
        "settings": asdict(certificate.settings),
        "sigma": votes.sigma,
        "noise": votes.noise,
        "n0": votes.n0,
        "n": votes.n,
        "seed": votes.seed,
        "radius": certificate.radius,
        "votes_needed": certificate.critical,
        "pixels_tested": certificate.tested,
        "abstain": certificate.abstain_rate,
        "labels": {entry.text: entry.share for entry in legend(certificate, most=10**6)},
        "hierarchy": hierarchy.name,
        "class_order": "matched by name"
        if votes.classes
        else "as the model returns them (it does not name its classes)",
        "classes": list(hierarchy.classes),
        "model": dict(votes.provenance),
        "seconds": round(seconds, 2),
        "claim": certificate.claim(),
    }


def write_outputs(
    folder: Path, stem: str, pixels: NDArray[np.float32], certificate: Certificate, summary: dict[str, Any]
) -> None:
    """The four files of an image, each whole or absent."""
    from certiseg.archive import write_atomically
    from certiseg.report.pictures import label_image, overlay

    with write_atomically(folder / f"{stem}.labels.png") as file:
        label_image(certificate).save(file, "PNG")
    with write_atomically(folder / f"{stem}.overlay.png") as file:
        overlay(pixels, certificate).save(file, "PNG")
    certificate.save(folder / f"{stem}.certificate.npz")
    with write_atomically(folder / f"{stem}.json") as file:
        file.write(json.dumps(summary, indent=1).encode())


def _line(summary: dict[str, Any]) -> str:
    top = ", ".join(f"{name} {share:.0%}" for name, share in list(summary["labels"].items())[:4] if name != "abstained")
    return (
        f"{summary['image']}: certified {1 - summary['abstain']:.1%} of {summary['pixels_tested']:,} pixels "
        f"within R = {summary['radius']:.3f} ({top}) by {summary['n']} draws in {summary['seconds']:.1f} s"
    )


def _read_region(path: str) -> NDArray[np.bool_]:
    from certiseg.images import read_image

    region = read_image(path).max(axis=-1) > 0
    if not region.any():
        raise InputError(f"--region must have at least one pixel that is not black, got none in {path}")
    print(
        f"region: {int(region.sum()):,} pixels are tested; it must not have been chosen from these votes",
        file=sys.stderr,
    )
    return region
