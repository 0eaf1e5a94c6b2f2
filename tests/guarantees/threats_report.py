"""The long simulation of ranges: `python -m tests.guarantees.threats_report` writes docs/threats-guarantee.md.

Exit code 1 if a promise for a range exceeds alpha, or a broken variant does not.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from certiseg.certify import NothingCertifiable

from .along_threats import Measured, broken, measure, stopped_at_best, worlds

OUT = Path("docs/threats-guarantee.md")
TRIALS = 5000
_HEAD = """# Ranges of threats, by simulation

This page is written by `make guarantee` (`python -m tests.guarantees.threats_report`). {verdict}

Models whose answer is a known function of the parameter t are certified over and over. A promise is *false* if the
label is not that of more than half of the draws somewhere in the promised range. The worlds sit where the proof is
tight: at a share of exactly tau the label has exactly half of the draws at the end of the range, so that every
certificate is false, and may come with probability alpha at most. What the worlds are is in
`tests/guarantees/along_threats.py`; docs/threats.md has the proofs. The bound is what a promise that holds stays below
with probability 1 - 1e-6. Transformations that do not compose, a Gaussian kernel that is cut off and contrast that is
clipped before the next one, are certified and refuted inside the range in `tests/guarantees/test_along_threats.py`;
every threat is also drawn through the whole package there, with and without pixel noise and anchors.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write; 0 if every promise held and every broken variant was caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        promised, wrong = _promised(options.trials), _wrong(options.trials)
    problems = [f"exceeds its promise: {m.name}" for m in promised if not m.holds]
    problems += [f"broken variant not caught: {m.name}" for m in wrong if m.holds]
    verdict = (
        "; ".join(problems) or f"All {len(promised)} promises held, and all {len(wrong)} broken variants were caught."
    )
    parts = [
        _HEAD.format(verdict=verdict),
        "## Promises\n",
        *_table(promised),
        "\n## Broken on purpose\n",
        *_table(wrong),
    ]
    options.out.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(verdict)
    return 1 if problems else 0


def _promised(trials: int) -> list[Measured]:
    found = [measure(world, trials) for world in tqdm(worlds(), desc="fixed n")]
    for world in tqdm(worlds(), desc="stopped"):
        stopped = measure(world, max(trials // 5, 1), draw=stopped_at_best, test="anytime")
        found.append(Measured(f"stopped at its best: {stopped.name}", stopped.trials, stopped.rate, stopped.alpha))
    return found


def _wrong(trials: int) -> list[Measured]:
    measured = [(variant.name, variant.wrong(max(trials // 5, 1))) for variant in tqdm(broken(), desc="broken")]
    return [Measured(name, m.trials, m.rate, m.alpha) for name, m in measured]


def _table(measured: Sequence[Measured]) -> list[str]:
    rows = [f"| {m.name} | {m.trials:,} | {m.alpha:g} | {m.rate:.4f} | {m.bound:.4f} |" for m in measured]
    return ["| world | trials | alpha | false promises | bound |", "|---|---|---|---|---|", *rows]


if __name__ == "__main__":
    sys.exit(main())
