"""The command line: one file per command, each with `add_parser(subparsers)` and `run(args) -> exit code`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

from certiseg import __version__
from certiseg.cli.codes import BAD_INPUT, BUG, ENGINE_LOST, INTERRUPTED
from certiseg.errors import EngineLostError, InputError, in_one_line

COMMANDS = {
    "demo": "certify three street scenes and look at them",
    "certify": "certify images",
    "calibrate": "make sets that hold the truth, from labelled images",
    "evaluate": "certify a data set, resumable, and score it",
    "merge": "join the shards of a run",
    "tune": "choose the thresholds of adaptive on a run",
    "report": "a run or a certificate as one HTML file",
    "view": "look at a run in the browser",
    "plan": "what an image size, n, tau and alpha can certify",
    "verify": "check certificates, bounds, calibrated sets or a whole run by recomputing them independently",
    "attack": "try to refute certificates by gradients",
    "hierarchy": "show, check or begin a class hierarchy",
    "train": "train a network under noise",
    "adapt": "make a clean-trained network survive noise, without labels",
}
"""Each command with what it does: `certiseg --help` loads none of them."""


class _Parser(argparse.ArgumentParser):
    """Answers bad arguments with one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            BAD_INPUT, f"{self.prog}: error: {_with_nearest(' '.join(message.split()))} (see {self.prog} --help)\n"
        )


def _with_nearest(message: str) -> str:
    """A mistyped command is answered with the nearest one instead of the whole list."""
    typed = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
    if typed is None:
        return message
    nearest = get_close_matches(typed[1], COMMANDS, n=1)
    return f"there is no command {typed[1]!r}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")


def build_parser(names: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of `certiseg` with all its commands, or with those named alone: no other is loaded.

    Without any name it knows what the commands are called and what they do.
    """
    parser = _Parser(
        prog="certiseg",
        description="Prove what a segmentation model will not confuse under perturbations of the image.",
        epilog="example: certiseg certify street.png --model compact --out certified/",
    )
    parser.add_argument("--version", action="version", version=f"certiseg {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in names:
        import_module(f"certiseg.cli.{name}").add_parser(commands)
    for name, does in () if names else COMMANDS.items():
        commands.add_parser(name, help=does)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; whatever goes wrong is one sentence on stderr, and the exit code says which kind it is."""
    command, code = "certiseg", BAD_INPUT
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        args = build_parser([name for name in given[:1] if name in COMMANDS]).parse_args(given)
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
    except EngineLostError as error:
        message, code = str(error), ENGINE_LOST
    except KeyboardInterrupt as stop:
        print(f"\ncertiseg: interrupted{''.join(f'; {text}' for text in stop.args)}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if "CERTISEG_DEBUG" in os.environ:
            raise
        message, code = f"unexpected error: {in_one_line(error)}; set CERTISEG_DEBUG=1 for the traceback", BUG
    print(f"{command}: error: {message}", file=sys.stderr)
    return code
