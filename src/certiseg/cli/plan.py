"""certiseg plan: what a setting can certify, before anything is drawn."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "plan",
        help="what an image size, n, tau and alpha can certify",
        description="For an image size: the least n that can certify anything, the misses allowed at a given n, "
        "the radius R and what it means in grey levels.",
        epilog="example: certiseg plan --size 1024x2048 --tau 0.75 --alpha 0.001 -n 100 500",
    )
    parser.add_argument("--size", type=_size, default=(360, 480), metavar="HxW", help="image size (default: 360x480)")
    parser.add_argument("--tau", type=float, default=0.75, help="vote share to exceed (default: 0.75)")
    parser.add_argument("--alpha", type=float, default=0.001, help="allowed error for the image (default: 0.001)")
    parser.add_argument("--sigma", type=float, default=0.25, help="noise (default: 0.25)")
    parser.add_argument("-n", type=int, nargs="+", default=[50, 100, 200, 500, 1000], help="numbers of draws")
    parser.add_argument("--test", choices=["fixed", "anytime"], default="fixed", help="anytime allows early stopping")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.claims import grey_levels
    from certiseg.planning import plan

    height, width = args.size
    common = {"pixels": height * width, "tau": args.tau, "alpha": args.alpha, "sigma": args.sigma, "test": args.test}
    plans = [plan(n=n, **common) for n in args.n]
    if args.json:
        print(json.dumps([{**asdict(p), "misses": p.misses} for p in plans], indent=1))
        return 0
    least = plans[0].least_n
    print(f"{height}x{width} = {height * width:,} pixels tested together, tau = {args.tau:g}, alpha = {args.alpha:g}")
    print(f"least n that can certify anything: {least if least is not None else 'more than 65535'}")
    for p in plans:
        needed = (
            f"{p.critical} votes needed, {p.misses} may miss" if p.critical is not None else "cannot certify anything"
        )
        print(f"  n = {p.n:>5}: {needed}")
    print(f"R = sigma * Phi^-1(tau) = {plans[0].radius:.4f}")
    print(grey_levels(plans[0].radius, values=3 * height * width))
    return 0


def _size(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be HEIGHTxWIDTH, got {text!r}") from None
    if height < 1 or width < 1:
        raise argparse.ArgumentTypeError(f"must be positive, got {text!r}")
    return height, width
