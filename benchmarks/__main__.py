"""python -m benchmarks: ratios of speed and memory, each beside its aim. `make bench` runs it.

Each ratio is measured inside one process (interleaved repeats, medians), in several processes one after the other, on
an idle machine. Aims are judged on the median of the processes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import SUITES, WITH_MODEL
from benchmarks.measure import machine
from benchmarks.rounds import SuiteError, Taken, measured, planned, read_log
from benchmarks.table import Row, line, rows_of, split, write_table
from certiseg.errors import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the suites that were asked for; exit code 1 if one failed or, with --quick, if an aim is missed."""
    args = _parser().parse_args(arguments)
    for suite in args.suites:
        if suite not in SUITES:
            raise InputError(f"suite must be one of {', '.join(SUITES)}, got {suite!r}")
    if args.runs < 1:
        raise InputError(f"runs must be at least 1, got {args.runs}")
    if args.write:
        split(args.write)
    print(machine(), file=sys.stderr if args.json else sys.stdout)
    if args.quick:
        return _quick(as_json=args.json)
    return _measure(args)


def _quick(*, as_json: bool) -> int:
    """The small check; where an aim is missed, all is measured twice more and judged on the median: machines hiccup."""
    measure = import_module("benchmarks.quick").measure
    figures = measure()
    if not all(row.met for row in rows_of(figures)):
        figures += measure() + measure()
    rows = rows_of(figures)
    _show(rows, as_json=as_json)
    return int(not all(row.met for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="processes for each suite (default: 5)")
    parser.add_argument("--minutes", type=float, default=60.0, metavar="M", help="begin no process later (default: 60)")
    parser.add_argument("--resume", action="store_true", help="count the runs that stand in the log")
    parser.add_argument("--log", type=Path, default=Path("runs/bench.jsonl"), metavar="FILE", help="a line per process")
    parser.add_argument("--device", default="cpu", help="where the models run: cpu, cuda, cuda:1, ...")
    parser.add_argument("--quick", action="store_true", help="a small check with wide margins; exit code 1 if missed")
    parser.add_argument("--json", action="store_true", help="one object per figure: name, median, least, largest, met")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table between the marks of a document")
    return parser


def _measure(args: argparse.Namespace) -> int:
    """All rounds, told one by one, and the table at the end."""
    suites = args.suites or list(SUITES)
    if args.device != "cpu":
        _require_device(args.device)
        suites = [suite for suite in suites if suite in WITH_MODEL]
    if not args.resume:
        args.log.unlink(missing_ok=True)
    taken = read_log(args.log, args.device, suites)
    order, failed = planned(suites, args.runs, taken), False
    for number, found in enumerate(measured(order, args.device, args.log, minutes=args.minutes)):
        if isinstance(found, SuiteError):
            print(found, file=sys.stderr)
            failed = True
            continue
        taken.append(found)
        told = f"{number + 1}/{len(order)} {found.suite}: {found.seconds:.0f} s, others used {found.others:.2f} cores"
        print(told, file=sys.stderr, flush=True)
    taken.sort(key=lambda found: suites.index(found.suite))
    missing = planned(suites, args.runs, taken)
    if missing and not failed:
        print(f"{len(missing)} processes were not begun; --resume goes on", file=sys.stderr)
    rows = rows_of(figure for found in taken for figure in found.figures)
    _show(rows, as_json=args.json)
    if args.write and rows:
        write_table(args.write, rows, _note(taken, args.device))
    return int(failed or bool(missing))


def _require_device(device: str) -> None:
    from certiseg.models.load import load_model

    load_model("compact", device=device)


def _show(rows: Sequence[Row], *, as_json: bool) -> None:
    print(json.dumps([row.as_json() for row in rows], indent=1) if as_json else "\n".join(line(row) for row in rows))


def _note(taken: Sequence[Taken], device: str) -> str:
    """When and where, and how idle the machine was."""
    others = [found.others for found in taken]
    minutes = sum(found.seconds for found in taken) / 60
    where = machine().partition(", load")[0] + ("" if device == "cpu" else f" and {device}")
    return (
        f"Measured {time.strftime('%Y-%m-%d')} in {len(taken)} processes and {minutes:.0f} minutes on {where}. "
        f"Other programs used {statistics.median(others):.2f} cores beside the median process, "
        f"{max(others):.2f} beside the most disturbed one."
    )


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except InputError as error:
        raise SystemExit(f"benchmarks: error: {error}") from None
