"""certiseg verify: an independent check of a certificate file."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="check a certificate by recomputing it independently",
        description="Recomputes a certificate from its stored votes and settings with code that shares nothing with "
        "the code that made it. With --model and --image every vote is drawn again from the seed and compared bit for "
        "bit. Exit code 1 if a check fails.",
        epilog="example: certiseg verify certified/street.certificate.npz --model compact --image street.png",
    )
    parser.add_argument("certificates", nargs="+", metavar="CERT", help="certificate files")
    parser.add_argument("--model", metavar="SPEC", help="redraw the votes with this model")
    parser.add_argument("--image", metavar="FILE", help="the certified image, needed with --model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.errors import InputError
    from certiseg.models.load import load_model
    from certiseg.verify import verify

    if args.model and not args.image:
        raise InputError("--image must be given with --model: redrawing needs the pixels")
    model = load_model(args.model) if args.model else None
    outcomes = [verify(path, model=model, image=args.image) for path in args.certificates]
    if args.json:
        print(json.dumps([{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes], indent=1))
    else:
        for outcome in outcomes:
            print(f"{outcome.path}: {'verified' if outcome.passed else 'FAILED'}")
            for check in outcome.checks:
                print(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
    return 0 if all(outcome.passed for outcome in outcomes) else 1
