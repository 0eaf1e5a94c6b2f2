"""The command line: one file per command, each with `add_parser(subparsers)` and `run(args) -> exit code`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from certiseg.errors import InputError

COMMANDS = (
    "demo",
    "certify",
    "evaluate",
    "merge",
    "tune",
    "report",
    "view",
    "plan",
    "verify",
    "attack",
    "hierarchy",
    "train",
    "adapt",
    "bench",
)


class _Parser(argparse.ArgumentParser):
    """Answers bad arguments with one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of `certiseg` with all its commands."""
    from certiseg import __version__

    parser = _Parser(
        prog="certiseg",
        description="Prove what a segmentation model will not confuse under perturbations of the image.",
        epilog="example: certiseg certify street.png --model compact --out certified/",
    )
    parser.add_argument("--version", action="version", version=f"certiseg {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in COMMANDS:
        import_module(f"certiseg.cli.{name}").add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; input that cannot be used is one sentence on stderr and exit code 2."""
    command = "certiseg"
    try:
        args = build_parser().parse_args(arguments)
        command = f"certiseg {args.command}"
        return int(args.run(args))
    except InputError as error:
        message = str(error)
    except BrokenPipeError:
        return 0
    except OSError as error:
        message = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    except MemoryError:
        message = "not enough memory for this image and model; try a smaller batch or image"
    except KeyboardInterrupt:
        print("\ncertiseg: interrupted", file=sys.stderr)
        return 130
    print(f"{command}: error: {message}", file=sys.stderr)
    return 2
