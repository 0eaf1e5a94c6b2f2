"""The figures printed in the paper, to stand beside ours; never targets (see the note in published.json)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from certiseg.runs.manifest import Setting
from certiseg.runs.table import UNCERTIFIED

_NAMES = {"coco_stuff": "coco_stuff_10k"}
_PERCENT = {"abstain_pct": "abstain", "class_abstain_pct": "class_abstain"}


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    return json.loads(files("certiseg").joinpath("analysis/published.json").read_text("utf-8"))


def is_published(dataset: str) -> bool:
    """Whether the data set is one of the paper's."""
    return _NAMES.get(dataset, dataset) in _document()["tables"]


def published_scores(dataset: str, method: str, setting: Setting | None = None) -> dict[str, float]:
    """Scores printed for a method at a setting, as fractions; empty where the paper has none.

    The method is the run's: `adaptive` with any thresholds stands beside the paper's, chosen by its authors.
    """
    name = method.partition(":")[0]
    for row in _document()["tables"].get(_NAMES.get(dataset, dataset), []):
        same = row["method"] == name == UNCERTIFIED or (
            setting is not None
            and (row["method"], row.get("n"), row.get("tau"), row.get("sigma"))
            == (name, setting.n, setting.tau, setting.sigma)
        )
        if same:
            scores = {key: row[key] for key in ("cig", "ccig", "miou") if row.get(key) is not None}
            return scores | {ours: row[key] / 100 for key, ours in _PERCENT.items() if key in row}
    return {}


def published_boundary(dataset: str, method: str) -> dict[str, float]:
    """Abstain rate and CIG on all, boundary and other pixels, as fractions (sigma 0.25, n = 100, tau = 0.75)."""
    document = _document()["boundary"]
    figures, name = document.get(_NAMES.get(dataset, dataset)), method.partition(":")[0]
    if figures is None or name not in document["columns"]:
        return {}
    place = document["columns"].index(name)
    return {
        key.removesuffix("_pct"): values[place] / 100 if key.endswith("_pct") else values[place]
        for key, values in figures.items()
    }
