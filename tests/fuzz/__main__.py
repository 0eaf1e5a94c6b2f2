"""`make fuzz`: python -m tests.fuzz --count 2400; a case again: python -m tests.fuzz --case certificate:17."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.base import make_base
from tests.fuzz.campaign import run_cases, summary
from tests.fuzz.cases import Case, cases, every_kind


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile input for every reader of files and for the command line.")
    parser.add_argument("--count", type=int, default=2400, help="number of cases (default: 2400)")
    parser.add_argument("--kinds", nargs="+", choices=list(every_kind()))
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first case of each kind")
    parser.add_argument("--case", nargs="+", metavar="KIND:NUMBER", help="just these cases")
    args = parser.parse_args()
    chosen = cases(args.count, args.kinds, first=args.first)
    if args.case:
        pairs = (text.rpartition(":") for text in args.case)
        chosen = [Case(name, int(number)) for name, _, number in pairs]
    with tempfile.TemporaryDirectory() as folder:
        base, scratch = Path(folder) / "base", Path(folder) / "scratch"
        base.mkdir()
        scratch.mkdir()
        make_base(base)
        answers = []
        for answer in run_cases(base, scratch, chosen):
            answers.append(answer)
            for wrong in answer["wrong"]:
                print(f"{answer['case']} {answer['command']}\n  {wrong}", flush=True)
            if args.case:
                print(answer)
    print("\n".join(summary(answers)))
    bad = sum(bool(answer["wrong"]) for answer in answers)
    print(f"{len(answers)} inputs, {bad} of them with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
