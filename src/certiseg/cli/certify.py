"""certiseg certify: certificates and pictures of images."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from tqdm import tqdm

from certiseg.archive import write_atomically
from certiseg.cli import COMMANDS, calibrated
from certiseg.cli.measures import (
    add_measure_options,
    csv_of,
    drawn_objects,
    lines_of,
    questions_of,
    summary_of,
    together,
)
from certiseg.cli.options import (
    add_certificate_options,
    add_image_options,
    add_model_options,
    add_votes_options,
    certificate_settings,
    channel_numbers,
    check_output_folder,
    model_and_hierarchy,
    output_folder,
    sampling_settings,
    settle_stopping,
    settled_batch_size,
)
from certiseg.cli.threat import add_threat_options, settle_threat
from certiseg.errors import InputError
from certiseg.hierarchy import check_thresholds
from certiseg.images import BYTES, Picture, find_images, open_image, read_pixels, shown, shown_words
from certiseg.planning import require_certifiable
from certiseg.render.objects import outlined
from certiseg.render.pictures import label_image
from certiseg.settings import FLAT_METHODS, given
from certiseg.words import agreement_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.bounds import Bounds
    from certiseg.certificate import Certificate
    from certiseg.measures import Question


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "certify",
        help=COMMANDS["certify"],
        description="Certifies images and writes, for each: a label map (NAME.labels.png), an overlay with legend "
        "(NAME.overlay.png), a summary (NAME.json), the certificate with its votes (NAME.certificate.npz), and bounds "
        "of the whole image, of objects and areas (NAME.bounds.npz, NAME.measures.csv). `certiseg verify` checks both.",
        epilog="example: certiseg certify street.png --model compact --objects vehicle,human --out certified/",
    )
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files, folders of them, or patterns")
    parser.add_argument("--out", default="certified", metavar="DIR", help="where to write (default: certified/)")
    parser.add_argument("--region", metavar="MASK", help="test only the pixels that are not black in this image")
    shown_channels = "channels in pictures (default: the first three)"
    parser.add_argument("--show", type=channel_numbers, default=(), metavar="C,C,C", help=shown_channels)
    parser.add_argument("--json", action="store_true", help="print the summaries as JSON")
    add_image_options(parser)
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="of `certiseg calibrate`: sets that hold the truth instead, by one noisy pass (docs/truth.md)",
    )
    add_model_options(parser)
    add_votes_options(parser)
    add_threat_options(parser)
    add_certificate_options(parser)
    add_measure_options(parser)
    parser.set_defaults(run=run, defaults={name: parser.get_default(name) for name in calibrated.IDLE})


def run(args: argparse.Namespace) -> int:
    if args.calibration is not None:
        return calibrated.certify(args, _image_paths(args))
    settle_stopping(args)
    settle_threat(args)
    images = {path: open_image(path, values=args.values) for path in _image_paths(args)}
    region = _read_region(args.region) if args.region else None
    height, width, channels = next(iter(images.values())).pixels.shape
    _refuse_early(args, images, region)
    check_output_folder(args.out)
    model, hierarchy = model_and_hierarchy(args, (height, width))
    if args.thresholds is not None and hierarchy is not None:
        check_thresholds(args.thresholds, hierarchy.num_levels, "--thresholds")
    if hierarchy is None and args.method not in FLAT_METHODS:
        raise InputError(f"--hierarchy must be given for the method {args.method}")
    images = {path: open_image(path, values=args.values, channels=model.settings.channels) for path in images}
    asked = {path: questions_of(args, each.pixels.shape[:2], hierarchy, path.stem) for path, each in images.items()}
    args.batch_size = settled_batch_size(args, model, (height, width, channels))
    folder = output_folder(args.out)
    summaries = []
    for path, picture in images.items():
        started = time.perf_counter()
        certificate, bounds = _certify(args, model, hierarchy, path, picture, region, asked[path])
        seconds = time.perf_counter() - started
        summary: dict[str, Any] = {"format_version": 1, "image": path.name} if certificate is None else {}
        if certificate is not None:
            summary = _summarise(certificate, name=path.name, seconds=seconds)
            _write_certificate(folder, path.stem, certificate)
        summary |= {"measures": summary_of(bounds), "together": together(args.alpha)}
        _write_measures(folder, path.stem, (picture, args.show), certificate, bounds, summary)
        summaries.append(summary)
        if not args.json:
            _print(summary, bounds, certificate, seconds)
    if args.json:
        print(json.dumps(summaries, indent=1))
        return 0
    count = bounds.draws.channels
    if count != 3 or args.show:
        print(f"pictures show {shown_words(count, args.show)}")
    claims = [summaries[-1]["measures"]["claim"]]
    if not args.measures_only:
        claims = [summaries[-1]["claim"], *claims, summaries[-1]["together"]]
    print("\n" + "\n\n".join(claims) + "\n")
    files = "*.bounds.npz" if args.measures_only else "*.npz"
    print(f"written to {folder}/; check with: certiseg verify {folder}/{files}")
    return 0


def _print(summary: dict[str, Any], bounds: Bounds, certificate: Certificate | None, seconds: float) -> None:
    if certificate is None:
        print(f"{summary['image']}: {bounds.extent}, {bounds.draws.n} draws in {seconds:.1f} s")
    else:
        print(f"{_line(summary)}\n  {agreement_words(summary['agreement'])}")
    for line in lines_of(bounds):
        print(f"  {line}")


def _image_paths(args: argparse.Namespace) -> list[Path]:
    paths = find_images(args.images)
    repeated = {path.stem for path in paths if [p.stem for p in paths].count(path.stem) > 1}
    if repeated:
        raise InputError(f"IMAGE names must differ without their endings, got {sorted(repeated)[0]!r} twice")
    return paths


def _refuse_early(args: argparse.Namespace, images: dict[Path, Picture], region: Any) -> None:
    """Everything that can be known to fail is refused before the model is loaded."""
    sampling_settings(args)
    certificate_settings(args)
    for path, picture in images.items():
        pixels = picture.pixels
        shown(picture, args.show)
        if args.noise == "grid" and picture.values != BYTES:
            raise InputError(f"--noise must be gaussian for {path}, got grid: its levels are those of 8-bit images")
        if region is not None and region.shape != pixels.shape[:2]:
            raise InputError(f"--region must have the size of {path}, {pixels.shape[:2]}, got {region.shape}")
        tested = pixels.shape[0] * pixels.shape[1] if region is None else int(region.sum())
        require_certifiable(
            pixels=1 if args.measures_only else max(tested, 1),
            n=args.n,
            tau=args.tau,
            alpha=args.alpha,
            sigma=args.sigma,
            test=args.test,
            threat=args.threat,
            radius=args.radius,
        )
        args.threat.require_fits(pixels)


def _certify(
    args: argparse.Namespace,
    model: Any,
    hierarchy: Any,
    path: Path,
    picture: Picture,
    region: Any,
    asked: list[Question],
) -> tuple[Certificate | None, Bounds]:
    """The certificate of the pixels, unless only measures are wanted, and the bounds of the measures."""
    from certiseg.bounds import bound
    from certiseg.certify import certify
    from certiseg.sampling import sample
    from certiseg.stopping import ASKED_EVERY, MeasureRule, UndecidedRule

    settings = given(certificate_settings(args))
    draws = (args.n0 + args.n) * len(args.anchors)
    with tqdm(total=draws, desc=path.name, unit="draw", disable=None, leave=False, delay=1) as bar:
        rule: MeasureRule | UndecidedRule | None = None
        if args.stop_undecided is not None:
            measured = MeasureRule(args.stop_undecided, args.n, args.tau, args.alpha)
            rule = (
                measured
                if args.measures_only
                else UndecidedRule(
                    args.stop_undecided,
                    args.n,
                    hierarchy,
                    settings,
                    region,
                    lambda now: bar.set_postfix(now.shares()),
                    measured,
                )
            )
        votes = sample(
            model,
            picture,
            **given(sampling_settings(args)),
            stop=rule,
            stop_every=ASKED_EVERY,
            progress=bar.update,
            measures=asked,
            hierarchy=hierarchy,
            keep_maps=args.keep_maps,
        )
    bounds = bound(votes, tau=args.tau, alpha=args.alpha, test=args.test, radius=settings["radius"])
    if args.measures_only:
        return None, bounds
    # Values and kept maps are in the file of the bounds; who keeps maps may want to ask the votes themselves.
    return certify(
        votes if args.keep_maps else replace(votes, record=None), hierarchy, **settings, region=region
    ), bounds


def _summarise(certificate: Certificate, *, name: str, seconds: float) -> dict[str, Any]:
    """What a program, or a reader in a hurry, wants to know about a certificate."""
    votes, hierarchy = certificate.votes, certificate.hierarchy
    return {
        "format_version": 1,
        "image": name,
        "size": list(votes.size),
        "channels": votes.channels,
        "values": [list(pair) for pair in votes.image_values],
        "settings": asdict(certificate.settings),
        "sigma": votes.sigma,
        "noise": votes.noise,
        "n0": votes.n0,
        "n": votes.n,
        "seed": votes.seed,
        "radius": certificate.radius,
        "threat": votes.threat.pack()[0],
        "range": list(certificate.range),
        "anchors": list(votes.anchors),
        "covered": certificate.extent,
        "votes_needed": certificate.critical,
        "pixels_tested": certificate.tested,
        "abstain": certificate.abstain_rate,
        "agreement": certificate.agreement,
        "labels": {label.text: label.share for label in certificate.label_shares()},
        "hierarchy": hierarchy.name,
        "class_order": "matched by name"
        if votes.classes
        else "as the model returns them (it does not name its classes)",
        "classes": list(hierarchy.classes),
        "model": dict(votes.provenance),
        "seconds": round(seconds, 2),
        "claim": certificate.claim(),
    }


def _write_certificate(folder: Path, stem: str, certificate: Certificate) -> None:
    """The files of a certificate, each whole or absent."""
    with write_atomically(folder / f"{stem}.labels.png") as file:
        label_image(certificate.vertex, certificate.hierarchy).save(file, "PNG")
    certificate.save(folder / f"{stem}.certificate.npz")


def _write_measures(
    folder: Path,
    stem: str,
    image: tuple[Picture, Sequence[int]],
    certificate: Certificate | None,
    bounds: Bounds,
    summary: dict[str, Any],
) -> None:
    """The bounds, the overlay with the objects, and the summary; image: with the channels that are shown of it."""
    bounds.save(folder / f"{stem}.bounds.npz")
    with write_atomically(folder / f"{stem}.measures.csv") as file:
        file.write(csv_of(bounds))
    source, show = image
    picture = Image.fromarray(shown(*image)) if certificate is None else certificate.overlay(source, channels=show)
    with write_atomically(folder / f"{stem}.overlay.png") as file:
        outlined(picture, drawn_objects(bounds)).save(file, "PNG")
    with write_atomically(folder / f"{stem}.json") as file:
        file.write(json.dumps(summary, indent=1).encode())


def _line(summary: dict[str, Any]) -> str:
    top = ", ".join(f"{name} {share:.0%}" for name, share in list(summary["labels"].items())[:4] if name != "abstained")
    return (
        f"{summary['image']}: certified {1 - summary['abstain']:.1%} of {summary['pixels_tested']:,} pixels "
        f"for {summary['covered']} ({top}) by {summary['n'] * len(summary['anchors'])} draws in "
        f"{summary['seconds']:.1f} s"
    )


def _read_region(path: str) -> NDArray[np.bool_]:
    region: NDArray[np.bool_] = read_pixels(path).max(axis=-1) > 0
    if not region.any():
        raise InputError(f"--region must have at least one pixel that is not black, got none in {path}")
    print(
        f"region: {int(region.sum()):,} pixels are tested; it must not have been chosen from these votes",
        file=sys.stderr,
    )
    return region
