"""The long simulation of bounds of measures: `python -m tests.guarantees.measures_report` writes a page.

Exit code 1 if bounds exceed the truth more often than promised, or if a broken rule is not caught.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .measures_worlds import ALPHA, Measured, promised, wrong

OUT = Path("docs/measures-guarantee.md")
TRIALS = 5000
_HEAD = """# Bounds of measures, by simulation

This page is written by `make guarantee` (`python -m tests.guarantees.measures_report`). {verdict}

Values with known laws are drawn and bounded over and over. A bound is *false* if it exceeds the supremum of t with
P(m >= t) > tau; what counts is how often any of the M bounds is, which may be alpha = {alpha:g}. Laws sit where that is
easiest: an atom exactly at tau, ties around it, a continuous law; measures are independent or all the same. The
adversary looks after every draw and stops as soon as some bound is false. Along a threat the values of one anchor
follow the law, and those of the others are 1. What the worlds are is in `tests/guarantees/measures_worlds.py`;
[measures.md](measures.md) has the proof. The bound of the last column is what a rule that keeps its promise stays at or
below with probability 0.9999.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write; 0 if every promise held and every broken rule was caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    right, broken = promised(options.trials), wrong(options.trials)
    problems = [f"exceeds its promise: {m.name}" for m in right if not m.holds]
    problems += [f"broken rule not caught: {m.name}" for m in broken if m.holds]
    told = f"All {len(right)} promises held, and all {len(broken)} broken rules were caught."
    parts = [_HEAD.format(verdict="; ".join(problems) or told, alpha=ALPHA), "## Promises\n", *_table(right)]
    parts += ["\n## Broken on purpose\n", *_table(broken)]
    options.out.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print("; ".join(problems) or told)
    return 1 if problems else 0


def _table(measured: Sequence[Measured]) -> list[str]:
    rows = [f"| {m.name} | {m.trials:,} | {m.wrong / m.trials:.4f} | {m.most / m.trials:.4f} |" for m in measured]
    return ["| what | trials | some bound false | bound |", "|---|---|---|---|", *rows]


if __name__ == "__main__":
    sys.exit(main())
