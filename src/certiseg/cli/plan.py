"""certiseg plan: what a setting can certify, before anything is drawn."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from certiseg.cli import COMMANDS
from certiseg.cli.options import add_settings, add_sigma, image_size
from certiseg.cli.threat import add_threat_options, settle_threat, settle_threat_alone
from certiseg.errors import InputError
from certiseg.planning import plan
from certiseg.settings import CertificateSettings
from certiseg.truth.settings import calibration_plan
from certiseg.words import rounded_down


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "plan",
        help=COMMANDS["plan"],
        description="For an image size: the least n that can certify anything, the misses allowed at a given n, "
        "the radius R and what it means in grey levels. With --risk: how many labelled images a promise about the "
        "truth needs.",
        epilog="example: certiseg plan --size 1024x2048 --tau 0.75 --alpha 0.001 -n 100 500",
    )
    parser.add_argument(
        "--size", type=image_size, default=(360, 480), metavar="HxW", help="image size (default: 360x480)"
    )
    add_settings(parser, CertificateSettings, ("tau", "alpha", "test"))
    add_sigma(parser)
    add_settings(parser, CertificateSettings, ("radius",))
    add_threat_options(parser)
    parser.add_argument(
        "--risk",
        type=float,
        metavar="A",
        help="how many labelled images `certiseg calibrate` needs for this risk, at --radius and --up-to",
    )
    parser.add_argument("-n", type=int, nargs="+", default=[50, 100, 200, 500, 1000], help="numbers of draws")
    parser.add_argument(
        "--measures", type=int, metavar="M", help="for bounds of so many measures instead of pixels (docs/measures.md)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.claims import grey_levels

    if args.risk is not None:
        return _plan_calibration(args)
    settle_threat(args)
    height, width = args.size
    moved = {"threat": args.threat, "anchors": args.anchors, "radius": args.radius}
    if args.measures is not None and args.measures < 1:
        raise InputError(f"--measures must be at least 1, got {args.measures}")
    tested = height * width if args.measures is None else args.measures
    common = {"pixels": tested, "tau": args.tau, "alpha": args.alpha, "sigma": args.sigma, "test": args.test}
    plans = [plan(n=n, **common, **moved) for n in args.n]
    if args.json:
        print(json.dumps([{**asdict(p), "misses": p.misses} for p in plans], indent=1))
        return 0
    least = plans[0].least_n
    what = f"{height}x{width} = {tested:,} pixels tested" if args.measures is None else f"{tested:,} measures bounded"
    print(f"{what} together, tau = {args.tau:g}, alpha = {args.alpha:g}, {args.test} test")
    print(f"least n that can certify anything: {least if least is not None else 'more than 65535'}")
    for p in plans:
        needed = "cannot certify anything"
        if p.critical is not None:
            needed = f"{p.critical} votes needed, {p.misses} may miss"
            if args.measures is not None:
                needed = f"a bound is the value that {p.critical} draws reach, {p.misses} may fall below"
        print(f"  n = {p.n:>5}: {needed}")
    if args.threat.law == "none":
        print(f"R = sigma * Phi^-1(tau) = {rounded_down(plans[0].radius, 4)}")
        print(grey_levels(plans[0].radius, values=3 * height * width))
        return 0
    (low, high), many = plans[0].range, plans[0].anchors
    beside = f", beside R = {rounded_down(plans[0].radius, 4)}" if plans[0].radius else ""
    print(f"covered: {plans[0].covered}, t in [{low:.4f}, {rounded_down(high, 4)}]{beside}")
    if many > 1:
        print(f"by {many} anchors: n draws at each, {many} times as many in all; alpha is not divided")
    return 0


def _plan_calibration(args: argparse.Namespace) -> int:
    """Images that a calibration needs, for one anchor and, along a threat, for several."""
    settle_threat_alone(args)
    covered = {"radius": args.radius or 0.0, "up_to": args.up_to or 0.0, "threat": args.threat, "sigma": args.sigma}
    anchors = (1,) if args.threat.law == "none" else (1, 2, 4, 8)
    plans = [calibration_plan(risk=args.risk, anchors=count, **covered) for count in anchors]
    if args.json:
        print(json.dumps([asdict(each) for each in plans], indent=1))
        return 0
    for each in plans:
        along = f" by {each.anchors} pass{'es' if each.anchors > 1 else ''} of each" if len(plans) > 1 else ""
        print(f"risk {each.risk:g}, {each.covered}: {_least(each.images)} labelled images{along}")
    for count in (1, 2):
        each = calibration_plan(risk=args.risk / count, anchors=anchors[-1], **covered)
        named = "a chosen class" if count == 1 else "each of two chosen classes"
        print(f"  {named}: {_least(each.images)} images that contain it")
    return 0


def _least(images: int | None) -> str:
    return "no number is enough of" if images is None else f"at least {images}"
