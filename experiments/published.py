"""The figures printed in the paper, to stand beside those of a run; never targets (see the note in published.json).

python -m experiments.published RUN
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from certiseg.analysis.boundaries import boundary_table
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.tables import score_column, score_table
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED

_NAMES = {"coco_stuff": "coco_stuff_10k"}
_PERCENT = {"abstain_pct": "abstain", "class_abstain_pct": "class_abstain"}
BOUNDARY_SETTING = Setting(0.25, 100, 0.75)
"""Where the paper has figures for boundary pixels."""
_NOTE = " Published figures are the paper's, for its own network, images and test; they are no targets."


def left_out(dataset: str) -> str:
    """Which published figures are not shown beside ours, and why."""
    tree = load_hierarchy(dataset)
    vertices = len(tree.vertices) + 1
    return (
        "The paper's mIoU is not shown: its code averages over all vertices of the hierarchy, inner ones and root "
        f"included, whose IoU is 0 ({tree.num_classes} classes of {vertices} vertices for {dataset}), so it is smaller "
        "than the mean over classes by that factor. Nor is its cCIG of the uncertified model, which seems to be "
        "averaged in the same way: it lies below that of the certified one."
    )


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text("utf-8"))
    return found


def is_published(dataset: str) -> bool:
    """Whether the data set is one of the paper's."""
    return _NAMES.get(dataset, dataset) in _document()["tables"]


def published_scores(dataset: str, method: str, setting: Setting | None = None) -> dict[str, float]:
    """Scores printed for a method at a setting, as fractions; empty where the paper has none; see `left_out`.

    The method is the run's: `adaptive` with any thresholds stands beside the paper's, chosen by its authors.
    """
    name = method.partition(":")[0]
    wanted = (name,) if setting is None else (name, setting.n, setting.tau, setting.sigma)
    keys = ("method", "n", "tau", "sigma")[: len(wanted)]
    for row in _document()["tables"].get(_NAMES.get(dataset, dataset), []):
        if tuple(row.get(key) for key in keys) == wanted and (setting is None) == (row["method"] == UNCERTIFIED):
            comparable = ("cig",) if setting is None else ("cig", "ccig")
            scores = {key: row[key] for key in comparable if row.get(key) is not None}
            return scores | {ours: row[key] / 100 for key, ours in _PERCENT.items() if key in row}
    return {}


def published_boundary(dataset: str, method: str) -> dict[str, float]:
    """Abstain rate and CIG on all, boundary and other pixels, as fractions, at BOUNDARY_SETTING."""
    document = _document()["boundary"]
    figures, name = document.get(_NAMES.get(dataset, dataset)), method.partition(":")[0]
    if figures is None or name not in document["columns"]:
        return {}
    place = document["columns"].index(name)
    return {
        key.removesuffix("_pct"): values[place] / 100 if key.endswith("_pct") else values[place]
        for key, values in figures.items()
    }


def scores_beside(table: Table, dataset: str) -> Table:
    """A score table with the paper's columns."""
    rows = []
    for row in table.rows:
        setting = Setting(row["sigma"], row["n"], row["tau"]) if "sigma" in row else None
        rows.append(row | _prefixed(published_scores(dataset, row["method"], setting)))
    shown = _with_columns(table, rows, ("cig", "ccig", "abstain", "class_abstain"))
    return replace(shown, note=f"{shown.note} {left_out(dataset)}")


def boundaries_beside(table: Table, dataset: str) -> Table:
    """A boundary table at BOUNDARY_SETTING with the paper's columns."""
    rows = []
    for row in table.rows:
        figures, part = published_boundary(dataset, row["method"]), row["part"].replace("-", "_")
        ending = "" if part == "all" else f"_{part}"
        rows.append(row | _prefixed({key: figures[f"{key}{ending}"] for key in ("cig", "abstain") if figures}))
    return _with_columns(table, rows, ("cig", "abstain"))


def _prefixed(scores: dict[str, float]) -> dict[str, float]:
    return {f"published_{name}": value for name, value in scores.items()}


def _with_columns(table: Table, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Table:
    columns = [score_column(name) for name in names]
    more = tuple(Column(f"published_{c.key}", f"{c.head} (published)", c.kind) for c in columns)
    return replace(table, note=table.note + _NOTE, columns=(*table.columns, *more), rows=tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of a run with the paper's figures beside them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.published", description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", help="a run folder, of one of the paper's data sets")
    folder = RunFolder(parser.parse_args(arguments).run)
    dataset = folder.manifest.dataset
    if not is_published(dataset):
        raise InputError(f"RUN must be of a data set of the paper, got {dataset}; nothing was published for it")
    run = ScoredRun(folder)
    print(scores_beside(score_table(run), dataset).markdown())
    if BOUNDARY_SETTING in folder.manifest.each_setting():
        print(boundaries_beside(boundary_table(run, BOUNDARY_SETTING), dataset).markdown())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
