"""Share of pixels by the size of the certified label set: right, wrong, abstained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from certiseg.analysis.drawing import draw_shares, method_name
from certiseg.analysis.exports import Column, Table
from certiseg.hierarchy import VOID
from certiseg.runs.folder import RunFolder
from certiseg.runs.settings import MethodChoice, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    Column("size", "classes in the set"),
    Column("share", "share of all pixels", "percent"),
    Column("wrong", "wrong (of all pixels)", "percent"),
)


def set_methods(methods: tuple[str, ...]) -> list[str]:
    """Those of a run's methods that give label sets."""
    return [method for method in methods if MethodChoice(method).options["method"] == "sets"]


def set_size_table(folder: RunFolder, method: str, setting: Setting, *, note: str) -> Table:
    """A row per size up to the largest that occurs, abstentions last; from the stored certificates, without void."""
    largest = folder.manifest.tree.num_classes
    certified, wrong = np.zeros(largest + 1, np.int64), np.zeros(largest + 1, np.int64)
    for name in folder.finished():
        certificate, label = folder.certificate(name, setting, method), folder.label(name)
        known = label != VOID
        size, ranking = certificate.set_size[known].astype(np.intp), certificate.votes.ranking[known]
        inside = (ranking == label[known][:, None]) & (np.arange(ranking.shape[1]) < size[:, None])
        certified += np.bincount(size, minlength=largest + 1)
        wrong += np.bincount(size[(size > 0) & ~inside.any(axis=1)], minlength=largest + 1)
    pixels = max(int(certified.sum()), 1)
    sizes = range(1, max(int(np.flatnonzero(certified).max(initial=0)), 1) + 1)
    rows = [
        {"size": f"{s} class{'es' if s > 1 else ''}", "share": certified[s] / pixels, "wrong": wrong[s] / pixels}
        for s in sizes
    ]
    rows.append({"size": "abstained", "share": certified[0] / pixels, "wrong": None})
    title = f"{method_name(method)} by size of the certified set, {folder.manifest.words(setting)}"
    return Table(title, note, _COLUMNS, tuple(rows))


def draw(table: Table) -> Figure:
    """A bar per size, abstentions last."""
    *sizes, abstained = table.rows
    bars = [(row["size"], row["share"] - row["wrong"], row["wrong"], 0.0) for row in sizes]
    return draw_shares(table.title, {"": [*bars, (abstained["size"], 0.0, 0.0, abstained["share"])]})
