"""python -m benchmarks [--json]: every figure beside its aim."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from benchmarks import certify_speed, sample_memory, tune_speed
from benchmarks.measure import machine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object per figure: name, value, aim, met")
    args = parser.parse_args()
    if not args.json:
        print(machine())
    figures = [figure for suite in (certify_speed, tune_speed, sample_memory) for figure in suite.measure()]
    if args.json:
        print(json.dumps([{**asdict(figure), "met": figure.met} for figure in figures], indent=1))
        return 0
    for figure in figures:
        verdict = "met   " if figure.met else "MISSED"
        print(f"{verdict} {figure.value:9.3f} {figure.direction} {figure.aim:<6g} {figure.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
