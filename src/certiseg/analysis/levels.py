"""Share of pixels per level of the hierarchy: certified rightly, certified but wrong, abstained, per method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certiseg.analysis.drawing import draw_shares, method_name
from certiseg.analysis.exports import Column, Table
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    Column("name", "method"),
    Column("level", "level"),
    Column("certified", "certified", "percent"),
    Column("wrong", "wrong (of all pixels)", "percent"),
    Column("abstained", "abstained", "percent"),
)


def level_table(run: ScoredRun, setting: Setting) -> Table:
    """A row per method and level that it uses; the shares of a method add up to 1. Sets have no level."""
    rows = [
        {"name": method_name(method), "level": f"H{level}", "certified": certified, "wrong": wrong, "abstained": gone}
        for method in run.manifest.methods
        if not method.startswith("sets")
        for level, (certified, gone, wrong) in enumerate(run.sums(method, setting).scores().per_level)
        if certified or gone
    ]
    note = f"{run.describe()} Nested counts its abstentions at the coarsest level; label sets have no level."
    return Table(f"Pixels per level, {run.manifest.words(setting)}", note, _COLUMNS, tuple(rows))


def draw(table: Table) -> Figure:
    """Stacked bars: for every level a bar per method that uses it."""
    levels = sorted({row["level"] for row in table.rows})
    return draw_shares(
        table.title,
        {
            level: [
                (row["name"], row["certified"] - row["wrong"], row["wrong"], row["abstained"])
                for row in table.rows
                if row["level"] == level
            ]
            for level in levels
        },
    )
