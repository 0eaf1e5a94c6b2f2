"""certiseg bench: ratios of speed and memory, each beside its aim."""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from certiseg.errors import InputError

_BEGIN, _END = "<!-- figures: written by certiseg bench --write -->", "<!-- end of figures -->"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure speed and memory as ratios",
        description="Measures speed and memory as ratios inside one process (interleaved repeats, medians) and prints "
        "each beside its aim. Needs the source checkout, where the comparison pipelines lie, and an idle machine.",
        epilog="example: certiseg bench --only overhead certify_speed",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these suites; see --list")
    parser.add_argument("--list", action="store_true", help="print the names of the suites")
    parser.add_argument("--quick", action="store_true", help="a small check with wide margins; exit code 1 if missed")
    parser.add_argument("--json", action="store_true", help="one object per figure: name, value, aim, met")
    parser.add_argument("--write", metavar="FILE", help="put the table between the marks of a document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    suites = _suites()
    if args.list:
        print("\n".join(f"{name:16} {text}" for name, text in suites.items()))
        return 0
    names = ["quick"] if args.quick else args.only or list(suites)
    unknown = [name for name in names if name not in (*suites, "quick")]
    if unknown:
        raise InputError(f"--only must name suites of {', '.join(suites)}, got {unknown[0]!r}")
    if args.write:
        _split(Path(args.write))
    measure = import_module("benchmarks.measure")
    lines = [measure.machine()]
    if not args.json:
        print(lines[0])
    figures: list[Any] = []
    failed: list[str] = []
    started = time.monotonic()
    for name in names:
        try:
            found = import_module(f"benchmarks.{name}").measure()
        except Exception as error:  # whatever is missing for one suite does not spoil the others
            print(f"{name}: not measured: {type(error).__name__}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        figures += found
        if not args.json:
            print("\n".join(_line(figure) for figure in found), flush=True)
    lines += [measure.machine(), f"{time.monotonic() - started:.0f} s"]
    if args.json:
        print(json.dumps([{**vars(figure), "met": figure.met} for figure in figures], indent=1))
    else:
        print(lines[1])
    if args.write:
        write_table(Path(args.write), figures, lines)
    missed = args.quick and not all(figure.met for figure in figures)
    return 1 if failed or missed else 0


def write_table(path: Path, figures: list[Any], lines: list[str]) -> None:
    """Put the figures between the marks of a document."""
    from certiseg.archive import write_atomically

    before, after = _split(path)
    rows = [f"| {f.name} | {_value(f.value)} | {f.direction} {f.aim:g} | {'yes' if f.met else 'no'} |" for f in figures]
    table = ["| figure | measured | aim | met |", "|---|---|---|---|", *rows]
    for figure in figures:
        if figure.curve:
            table += ["", f"{figure.name}, if stopped after so many draws:", "", *_curve(figure.curve)]
    day = time.strftime("%Y-%m-%d")
    note = f"Measured {day} in {lines[2]} on {lines[0]} (load at the end: {lines[1].partition('load ')[2]})."
    with write_atomically(path) as file:
        file.write("\n".join([before + _BEGIN, "", note, "", *table, "", _END + after]).encode())


def _split(path: Path) -> tuple[str, str]:
    """What stands before and after the marked part of a document."""
    text = path.read_text("utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise InputError(f"{path}: must hold the lines {_BEGIN!r} and {_END!r}, between which the table is written")
    return before, after


def _curve(curve: dict[int, float]) -> list[str]:
    """A curve as a table of two lines, thinned to ten columns."""
    points = list(curve.items())
    points = points[:: -max(1, len(points) // 10)][::-1]
    keys, values = ([f"{k}" for k, _ in points], [f"{v:.3f}" for _, v in points])
    return [f"| {' | '.join(cells)} |" for cells in (keys, ["---"] * len(points), values)]


def _line(figure: Any) -> str:
    verdict = "met   " if figure.met else "MISSED"
    line = f"{verdict} {_value(figure.value):>9} {figure.direction} {figure.aim:<6g} {figure.name}"
    return line + "".join(f"\n{'':17} {row}" for row in _curve(figure.curve)[::2]) if figure.curve else line


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _suites() -> dict[str, str]:
    """The suites of the checkout that this package was installed from."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "measure.py").is_file():
        raise InputError(
            "bench must run from a source checkout, which holds the comparison pipelines in benchmarks/; "
            "clone it and call `make bench`"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return dict(import_module("benchmarks").SUITES)
