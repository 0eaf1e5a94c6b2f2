"""The tables of the paper: every method at every setting, pooled over the images of a run."""

from __future__ import annotations

from typing import Any

from certiseg.analysis.pooling import Pools
from certiseg.runs.folder import RunFolder
from certiseg.runs.table import UNCERTIFIED

COLUMNS = ("cig", "ccig", "abstain", "class_abstain", "accuracy", "miou")


def summary_table(folder: RunFolder) -> list[dict[str, Any]]:
    """A row per setting and method with all scores, the uncertified model first."""
    pools = Pools(folder)
    model = pools.pool(UNCERTIFIED).scores()
    rows: list[dict[str, Any]] = [{"method": UNCERTIFIED, "accuracy": model.accuracy, "miou": model.miou}]
    for setting in folder.manifest.each_setting():
        for method in folder.manifest.methods:
            scores = pools.pool(method, setting).scores()
            key = {"sigma": setting.sigma, "n": setting.n, "tau": setting.tau, "method": method}
            rows.append({**key, **{name: getattr(scores, name) for name in COLUMNS}})
    return rows


def summary_lines(folder: RunFolder, table: list[dict[str, Any]]) -> list[str]:
    """The table as text."""
    lines = [f"{len(folder.finished())} images of {folder.manifest.dataset}, {folder.manifest.promise()}"]
    lines.append(f"{'sigma':>6}{'n':>6}{'tau':>6}  {'method':<22}" + "".join(f"{name:>14}" for name in COLUMNS))
    for row in table:
        key = f"{row['sigma']:>6g}{row['n']:>6}{row['tau']:>6g}" if "sigma" in row else " " * 18
        cells = "".join(f"{_number(row.get(name)):>14}" for name in COLUMNS)
        lines.append(f"{key}  {row['method']:<22}{cells}")
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
