"""python -m benchmarks.process SUITE: one suite once in this process; the last line printed is its figures as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module

from benchmarks import SUITES


def main(suite: str) -> None:
    """Measure one suite."""
    figures = import_module(f"benchmarks.{suite}").measure()
    print(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SUITES:
        raise SystemExit(f"usage: python -m benchmarks.process SUITE, one of {', '.join(SUITES)}")
    main(sys.argv[1])
