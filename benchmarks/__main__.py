"""python -m benchmarks: ratios of speed and memory, each beside its aim. `make bench` runs it.

Ratios are measured inside one process (interleaved repeats, medians), on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import SUITES
from benchmarks.measure import Figure, machine
from certiseg.archive import write_atomically
from certiseg.errors import InputError

BEGIN, END = "<!-- figures: written by python -m benchmarks --write -->", "<!-- end of figures -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the suites that were asked for; exit code 1 if one failed or, with --quick, if an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SUITES, help=f"of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="a small check with wide margins; exit code 1 if missed")
    parser.add_argument("--json", action="store_true", help="one object per figure: name, value, aim, met")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table between the marks of a document")
    args = parser.parse_args(arguments)
    if args.write:
        _split(args.write)
    before, started = machine(), time.monotonic()
    if not args.json:
        print(before)
    figures: list[Figure] = []
    failed = False
    for name in ["quick"] if args.quick else args.only or SUITES:
        try:
            found: list[Figure] = import_module(f"benchmarks.{name}").measure()
        except Exception as error:  # what one suite lacks does not spoil the others
            print(f"{name}: not measured: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        figures += found
        if not args.json:
            print("\n".join(_line(figure) for figure in found), flush=True)
    print(json.dumps([{**vars(f), "met": f.met} for f in figures], indent=1) if args.json else machine())
    if args.write:
        taken = (
            f"in {time.monotonic() - started:.0f} s on {before} (load at the end: {machine().partition('load ')[2]})"
        )
        write_table(args.write, figures, f"Measured {time.strftime('%Y-%m-%d')} {taken}.")
    return int(failed or (args.quick and not all(figure.met for figure in figures)))


def write_table(path: Path, figures: Sequence[Figure], note: str) -> None:
    """Put the figures between the marks of a document."""
    before, after = _split(path)
    rows = [f"| {f.name} | {_value(f.value)} | {f.direction} {f.aim:g} | {'yes' if f.met else 'no'} |" for f in figures]
    table = ["| figure | measured | aim | met |", "|---|---|---|---|", *rows]
    for figure in figures:
        if figure.curve:
            table += ["", f"{figure.name}, if stopped after so many draws:", "", *_curve(figure.curve)]
    with write_atomically(path) as file:
        file.write("\n".join([before + BEGIN, "", note, "", *table, "", END + after]).encode())


def _split(path: Path) -> tuple[str, str]:
    """What stands before and after the marked part of a document."""
    text = path.read_text("utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{path}: must hold the lines {BEGIN!r} and {END!r}, between which the table is written")
    return before, after


def _curve(curve: Mapping[int, float]) -> list[str]:
    """A curve as a Markdown table of ten columns at most."""
    points = list(curve.items())
    points = points[:: -max(1, len(points) // 10)][::-1]
    rows = ([f"{k}" for k, _ in points], ["---"] * len(points), [f"{v:.3f}" for _, v in points])
    return [f"| {' | '.join(cells)} |" for cells in rows]


def _line(figure: Figure) -> str:
    verdict = "met   " if figure.met else "MISSED"
    line = f"{verdict} {_value(figure.value):>9} {figure.direction} {figure.aim:<6g} {figure.name}"
    return line + "".join(f"\n{'':17} {row}" for row in _curve(figure.curve)[::2]) if figure.curve else line


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except InputError as error:
        raise SystemExit(f"benchmarks: error: {error}") from None
