"""The long simulation: `python -m tests.guarantees.report` writes docs/guarantee.md, and fails if a promise does.

Exit code 1 if a cell exceeds its promise, a scene does not bite, or a broken variant passes.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy
from tqdm import tqdm

import certiseg as cs

from .broken import Broken, broken_variants
from .end_to_end import end_to_end_scenarios
from .promises import Outcome, Scenario, failures, measure
from .real import real_scenarios
from .scenarios import anytime_scenarios, fixed_scenarios

DEFAULT_OUT = Path("docs/guarantee.md")
TEXT = Path(__file__).with_name("guarantee_text.md")
IMAGES = 65_000
"""Simulated images in all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print and write the report; 0 if every promise held and every broken variant was caught."""
    options = _parser().parse_args(arguments)
    started = time.monotonic()
    chosen = [scenario for scenario in all_scenarios() if options.only in scenario.name]
    outcomes = simulate(chosen, images=options.images, seed=options.seed)
    caught = try_broken([] if options.only else broken_variants(), seed=options.seed)
    problems = [*failures(outcomes), *_escaped(caught)]
    facts = run_facts(options, outcomes, caught, seconds=time.monotonic() - started)
    text = write_up(outcomes, caught, facts, problems)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def all_scenarios() -> list[Scenario]:
    return [*fixed_scenarios(), *anytime_scenarios(), *end_to_end_scenarios(), *real_scenarios()]


def simulate(scenarios: Sequence[Scenario], *, images: int, seed: int) -> list[Outcome]:
    """The outcomes of all cells; the images are spread over the scenarios by weight."""
    unit = images / sum(scenario.weight for scenario in scenarios)
    shares = [scenario.images(int(np.ceil(unit))) for scenario in scenarios]
    outcomes: list[Outcome] = []
    with tqdm(total=sum(shares), unit="image", desc="simulating", mininterval=1) as bar:
        for scenario, share in zip(scenarios, shares, strict=True):
            bar.set_postfix_str(scenario.name[:40])
            outcomes += measure(scenario, images=share, seed=seed, tick=bar.update)
    return outcomes


def try_broken(variants: Sequence[Broken], *, seed: int) -> list[tuple[Broken, Outcome]]:
    """How far the wrong ways of certifying exceed their promises."""
    with tqdm(
        total=sum(broken.images for broken in variants), unit="image", desc="broken variants", mininterval=1
    ) as bar:
        return [(broken, broken.measure(seed=seed, tick=bar.update)) for broken in variants]


def _escaped(caught: Sequence[tuple[Broken, Outcome]]) -> list[str]:
    return [f"broken variant not caught: {broken.name} ({o.error:.4f})" for broken, o in caught if o.holds]


# -- writing -----------------------------------------------------------------------------------------------------


def write_up(
    outcomes: Sequence[Outcome],
    caught: Sequence[tuple[Broken, Outcome]],
    facts: Sequence[tuple[str, str]],
    problems: Sequence[str],
) -> str:
    """The whole document."""
    verdict = (
        f"Every one of {len(outcomes)} promises held, and all {len(caught)} broken variants were caught."
        if not problems
        else "**Not everything held:**\n\n" + "\n".join(f"- {problem}" for problem in problems)
    )
    parts = {
        "VERDICT": verdict,
        "RUN": "\n".join(f"- {name}: {value}" for name, value in facts),
        "WORST": worst_table(outcomes),
        "CELLS": cell_table(outcomes),
        "BROKEN": broken_table(caught),
    }
    text = TEXT.read_text("utf-8")
    for name, value in parts.items():
        text = text.replace(f"<!-- {name} -->", value)
    return text


def worst_table(outcomes: Sequence[Outcome]) -> str:
    """For every way of certifying, the scenario that came closest to (or beyond) its promise."""
    worst: dict[tuple[str, str, str], Outcome] = {}
    for o in outcomes:
        key = (o.cell.method, "radius map" if o.cell.radii else o.cell.correction, o.cell.test)
        if key not in worst or o.error / o.scenario.alpha > worst[key].error / worst[key].scenario.alpha:
            worst[key] = o
    rows = [
        (*key, o.cell.promise, f"{o.scenario.alpha:g}", f"{o.error:.4f}", f"{o.bound:.4f}", o.scenario.name)
        for key, o in sorted(worst.items(), key=lambda item: (item[0][2] != "fixed", item[0][1], item[0][0]))
    ]
    return _table(("method", "correction", "test", "error", "alpha", "measured", "bound", "in the scenario"), rows)


def cell_table(outcomes: Sequence[Outcome]) -> str:
    """Every cell of every scenario."""
    rows = [
        (
            o.cell.label,
            "radius map" if o.cell.radii else f"kfwer, k = {o.cell.k}" if o.cell.k > 1 else o.cell.correction,
            o.cell.test,
            o.scenario.name,
            f"{o.scenario.scene.tested:,}",
            f"up to {o.scenario.scene.n}" if o.cell.test == "anytime" else str(o.scenario.scene.n),
            f"{o.scenario.scene.tau:g}",
            f"{o.scenario.alpha:g}",
            f"{o.images:,}",
            f"{o.error:.4f}",
            f"{o.bound:.4f}",
            "holds" if o.holds else "**exceeds**",
        )
        for o in outcomes
    ]
    head = (
        "method",
        "correction",
        "test",
        "scenario",
        "N",
        "n",
        "tau",
        "alpha",
        "images",
        "measured",
        "bound",
        "verdict",
    )
    return _table(head, rows)


def broken_table(caught: Sequence[tuple[Broken, Outcome]]) -> str:
    """The wrong ways of certifying, and how far they exceed."""
    rows = [
        (
            broken.name,
            f"{o.cell.method}, {o.cell.correction}",
            f"{o.scenario.scene.tested}",
            f"{o.images:,}",
            f"{o.scenario.alpha:g}",
            f"{o.error:.4f}",
            f"{o.bound:.4f}",
            f"{o.error / o.scenario.alpha:.1f} x",
            "**passes**" if o.holds else "caught",
        )
        for broken, o in caught
    ]
    return _table(("what is wrong", "cell", "N", "images", "alpha", "measured", "bound", "over alpha", "verdict"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def run_facts(
    options: argparse.Namespace,
    outcomes: Sequence[Outcome],
    caught: Sequence[tuple[Broken, Outcome]],
    *,
    seconds: float,
) -> list[tuple[str, str]]:
    """What a reader needs to repeat the run."""
    images = sum({o.scenario.name: o.images for o in outcomes}.values())
    certificates = sum(o.images for o in outcomes)
    only = f" --only {options.only!r}" if options.only else ""
    return [
        ("command", f"`python -m tests.guarantees.report --images {options.images} --seed {options.seed}{only}`"),
        (
            "images",
            f"{images:,} simulated, {certificates:,} errors judged; {sum(o.images for _, o in caught):,} more broken",
        ),
        ("time", f"{seconds / 60:.1f} minutes in one process; load average at the end {os.getloadavg()[1]:.1f}"),
        ("machine", f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"),
        (
            "versions",
            f"certiseg {cs.__version__}, Python {platform.python_version()}, numpy {np.__version__}, "
            f"scipy {scipy.__version__}",
        ),
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.guarantees.report", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=IMAGES, help="simulated images in all (default %(default)s)")
    parser.add_argument("--seed", type=int, default=2024, help="seed of the simulation (default %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios named so, and no broken variants")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="document to write (default %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
