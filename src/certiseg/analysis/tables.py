"""The tables of the paper: every method at every setting, pooled over the images of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table, without_nan
from certiseg.runs.pooling import (
    BASELINE,
    HEADS,
    LEGEND,
    SCORES,
    ScoredRun,
    brackets,
    interval_cells,
    relative_gain,
)
from certiseg.runs.run import setting_cells
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED

GAINS = ("cig", "ccig", "abstain", "class_abstain")
"""Scores whose relative change against the baseline is reported."""
SHARES = ("abstain", "class_abstain", "accuracy", "wrong", "agreement")
"""Scores that are shown in percent."""
SETTING_COLUMNS = (
    Column("sigma", "sigma", "plain"),
    Column("n", "n", "count"),
    Column("tau", "tau", "plain"),
    Column("radius", "R", "score"),
)


def score_table(
    run: ScoredRun, *, settings: Sequence[Setting] | None = None, draws: int = 1000, seed: int = 0
) -> Table:
    """All scores with bootstrap intervals, at all settings of the run or at some."""
    model = run.sums(UNCERTIFIED).row(("cig", "ccig", "accuracy", "miou"), draws=draws, seed=seed)
    rows = [without_nan({"method": UNCERTIFIED, "name": UNCERTIFIED} | model)]
    for setting in settings or run.manifest.each_setting():
        for method in run.manifest.methods:
            row = _cells(run, setting, method) | {"role": run.manifest.role(method, setting)}
            rows.append(without_nan(row | run.sums(method, setting).row(SCORES, draws=draws, seed=seed)))
    named = (Column("name", "method"), Column("role", "what it is"))
    columns = (*_setting_columns(run), *named, *(score_column(name) for name in SCORES))
    note = f"{run.describe()} {LEGEND} {brackets(len(run.images), draws)}"
    return Table(f"Certified segmentation of {run.manifest.dataset}", note, columns, tuple(rows))


def gain_table(run: ScoredRun, *, settings: Sequence[Setting] | None = None, draws: int = 1000, seed: int = 0) -> Table:
    """Relative change of every method against segcertify at the same setting; for abstain rates less is better."""
    rows = []
    for setting in settings or run.manifest.each_setting():
        baseline = run.sums(BASELINE, setting)
        for method in (m for m in run.manifest.methods if m != BASELINE):
            row = _cells(run, setting, method)
            gains = run.sums(method, setting).compared(baseline, GAINS, relative_gain, draws=draws, seed=seed)
            for score, gain in gains.items():
                row |= interval_cells(f"{score}_gain", gain)
            rows.append(without_nan(row))
    changes = (Column(f"{name}_gain", f"{HEADS[name]} change", "gain") for name in GAINS)
    columns = (*_setting_columns(run), Column("name", "method"), *changes)
    title = f"Change against SegCertify on {run.manifest.dataset}"
    return Table(title, f"{run.describe()} {brackets(len(run.images), draws)}", columns, tuple(rows))


def _setting_columns(run: ScoredRun) -> tuple[Column, ...]:
    along = () if run.manifest.threat.law == "none" else (Column("covered", "certified for"),)
    stops = () if run.manifest.stop_undecided is None else (Column("stopped", "draws"),)
    return (*SETTING_COLUMNS, *stops, *along)


def _cells(run: ScoredRun, setting: Setting, method: str) -> dict[str, Any]:
    """What a row says about its setting and method, and about the draws of images that were stopped early."""
    made = run.draws(setting.sigma)
    stopped = {"stopped": f"{made['draws']:.0f} ({made['draws_least']} to {made['draws_most']})"} if made else {}
    return setting_cells(setting, run.manifest) | {"method": method, "name": method_name(method)} | stopped


def score_column(name: str) -> Column:
    """The column of a score, as a share or as a number."""
    return Column(name, HEADS[name], "percent" if name in SHARES else "score")
