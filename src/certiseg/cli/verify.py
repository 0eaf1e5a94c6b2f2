"""certiseg verify: an independent check of a certificate file."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from certiseg.cli.options import add_preparation_options, load_model_of


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
    add_preparation_options(parser.add_argument_group("model, as for certify"))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.errors import InputError
    from certiseg.verify import verify

    if args.model and not args.image:
        raise InputError("--image must be given with --model: redrawing needs the pixels")
    model = _model(args) if args.model else None
    outcomes = [verify(path, model=model, image=args.image) for path in args.certificates]
    if args.json:
        print(json.dumps([{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes], indent=1))
    else:
        for outcome in outcomes:
            print(f"{outcome.path}: {'verified' if outcome.passed else 'FAILED'}")
            for check in outcome.checks:
                print(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _model(args: argparse.Namespace) -> Any:
    """The model to redraw with; a file that gives labels alone is told the class count of the first certificate."""
    from certiseg.archive import read_archive
    from certiseg.errors import InputError
    from certiseg.verify import CERTIFICATE_VERSION

    if args.model.lower().endswith((".onnx", ".xml", ".tflite", ".pt", ".ts", ".pt2")):
        try:
            stored = read_archive(args.certificates[0], kind="certificate", version=CERTIFICATE_VERSION)
            args.num_classes = len(stored.meta["hierarchy"]["classes"])
        except (InputError, KeyError, TypeError):  # the checks will say what is wrong with the certificate
            args.num_classes = None
    return load_model_of(args)
