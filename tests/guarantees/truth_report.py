"""The long simulation of promises about the truth: `python -m tests.guarantees.truth_report` writes a page.

Exit code 1 if a promise is broken, or if a broken rule is not caught.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from certiseg.truth.settings import CalibrationSettings

from . import truth_end_to_end
from .truth_worlds import BROKEN, Measured, broken, measure, worlds

OUT = Path("docs/truth-guarantee.md")
TRIALS = 20_000
_HEAD = """# Sets that hold the truth, by simulation

This page is written by `make guarantee` (`python -m tests.guarantees.truth_report`). {verdict}

Images with known truth are drawn alike, calibrated by the package, and new ones attacked by the worst perturbation
there is, which is known in closed form; see `tests/guarantees/truth_worlds.py`, and [truth.md](truth.md) for the
proof. Where images are alike (spread 0) the proof gives hardly anything away; where they differ much, coverage lies
above the promise.
Coverage is a mean over {trials:,} calibrations with 50 new images each; the error is its standard error.
"""
_TABLE = "| {what} | promised | covered under attack | error | covered without attack | |\n|---|---|---|---|---|---|"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write; 0 if every promise held and every broken rule was caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--calibrations", type=int, default=400, help="through the whole package")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    promised = [measure(world, trials=options.trials) for world in tqdm(worlds(), desc="worlds", disable=None)]
    promised += [
        truth_end_to_end.measure(asked, images=images, calibrations=options.calibrations, tests=20)
        for asked, images in (
            (CalibrationSettings(radius=0.169, risk=(0.3,)), 8),
            (CalibrationSettings(radius=0.169, risk=(0.1,)), 39),
            (CalibrationSettings(radius=0.169, risk=(0.3,), score="adaptive"), 8),
        )
    ]
    wrong = [measure(broken(rule), rule=rule, trials=options.trials) for rule in BROKEN]
    problems = [f"broken promise: {m.name}" for m in promised if not m.holds]
    problems += [f"broken rule not caught: {m.rule}" for m in wrong if m.holds]
    told = f"All {len(promised)} promises held, and all {len(wrong)} broken rules were caught."
    parts = [
        _HEAD.format(verdict="; ".join(problems) or told, trials=options.trials),
        _TABLE.format(what="promise"),
        *(_row(m, m.name, "held" if m.holds else "**broken**") for m in promised),
        "\n## Broken rules\n",
        _TABLE.format(what="rule"),
        *(_row(m, f"{m.rule}: {m.name}", "not caught" if m.holds else "caught") for m in wrong),
    ]
    options.out.write_text("\n".join(parts) + "\n", "utf-8")
    print("; ".join(problems) or told)
    return 1 if problems else 0


def _row(m: Measured, name: str, verdict: str) -> str:
    return f"| {name} | {m.promised:g} | {m.coverage:.4f} | {m.error:.4f} | {m.clean:.4f} | {verdict} |"


if __name__ == "__main__":
    sys.exit(main())
