"""Several runs side by side, as the paper shows four data sets: one table of scores, one of changes, one of levels.

Each run keeps the promise that it was made with. Everything else is a comparison, and so is what differs between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiseg.analysis import levels
from certiseg.analysis.drawing import draw_bars, method_name, share_legend
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pieces import Piece
from certiseg.analysis.tables import gain_table, score_table
from certiseg.errors import InputError
from certiseg.render.figures import new_figure
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.runs.verify import require_sound
from certiseg.words import PROMISE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 12
_PANELS = 4
"""Runs in one row of a figure."""
NOTE = (
    "Each run has a promise of its own, for its own images, with its own alpha; all other rows are comparisons from "
    "the same draws. Nothing is promised about differences between runs, whose images, classes, models or settings "
    "may differ."
)


@dataclass(frozen=True)
class Beside:
    """A finished run among others, with the setting at which it is shown."""

    name: str
    folder: RunFolder
    run: ScoredRun
    setting: Setting


def open_beside(
    paths: Sequence[str | Path], setting: Setting | None = None, *, each: Callable[[str], None] = lambda _: None
) -> list[Beside]:
    """Finished, undamaged runs, each at the setting of its promise or at one that all of them have."""
    if not 2 <= len(paths) <= MOST_RUNS or len({Path(path).resolve() for path in paths}) < len(paths):
        raise InputError(f"runs must be 2 to {MOST_RUNS} different folders, got {', '.join(map(str, paths))}")
    folders = [RunFolder(path) for path in paths]
    for folder in folders:
        known = folder.manifest.each_setting()
        if setting is not None and setting not in known:
            typed = ", ".join(one.typed for one in known)
            raise InputError(f"setting must be one that every run has, got {setting.typed}; {folder.path} has {typed}")
    found = []
    for folder, name in zip(folders, _names(folders), strict=True):
        require_sound(folder)
        run = ScoredRun(folder)
        if run.images != tuple(folder.finished()):
            raise InputError(
                f"{folder.path}: its table must be of its finished images, but it is of others; resume the run"
            )
        found.append(Beside(name, folder, run, setting or folder.manifest.promised[1]))
        each(name)
    return found


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """The data set of each run, with its split, model or folder where that alone does not tell them apart."""
    manifests = [folder.manifest for folder in folders]
    names = [manifest.dataset for manifest in manifests]
    further = [
        [manifest.split or "default split" for manifest in manifests],
        [manifest.model for manifest in manifests],
        [str(folder.path) for folder in folders],
    ]
    for words in further:
        if len(set(names)) < len(names) and len(set(words)) > 1:
            names = [f"{name}, {word}" for name, word in zip(names, words, strict=True)]
    return names


def all_pieces(runs: Sequence[Beside], *, draws: int = 1000) -> Iterator[Piece]:
    """Scores, changes against segcertify, and levels."""
    text = "Every method of every run at one setting, the uncertified model first."
    yield Piece("scores", "Scores", text, scores_beside(runs, draws=draws))
    if changes := changes_beside(runs, draws=draws):
        text = "Relative to SegCertify of the same run; fewer abstentions are better."
        yield Piece("gains", "Change against SegCertify", text, changes)
    if (table := levels_beside(runs)).rows:
        text = "How coarse the labels of each run are: share of its pixels at each level of its hierarchy."
        yield Piece("levels", "Per level", text, table, partial(draw_levels, table))


def scores_beside(runs: Sequence[Beside], *, draws: int = 1000) -> Table:
    """The score tables of all runs as one."""
    tables = [score_table(each.run, settings=[each.setting], draws=draws) for each in runs]
    return _joined("Certified segmentation, runs side by side", runs, tables)


def changes_beside(runs: Sequence[Beside], *, draws: int = 1000) -> Table | None:
    """Changes against segcertify in each run that has it; None where no run can be compared."""
    able = [each for each in runs if BASELINE in (methods := each.run.manifest.methods) and len(methods) > 1]
    tables = [gain_table(each.run, settings=[each.setting], draws=draws) for each in able]
    return _joined("Change against SegCertify, runs side by side", able, tables) if able else None


def levels_beside(runs: Sequence[Beside]) -> Table:
    """The level tables of all runs as one."""
    tables = [levels.level_table(each.run, each.setting) for each in runs]
    return _joined("Pixels per level, runs side by side", runs, tables)


def _joined(title: str, runs: Sequence[Beside], tables: Sequence[Table]) -> Table:
    """One table with the rows of all, each with its run, how many images that has, and whether it is its promise."""
    rows = []
    for each, table in zip(runs, tables, strict=True):
        manifest = each.run.manifest
        roles = {method_name(method): manifest.role(method, each.setting) for method in manifest.methods}
        head = {"run": each.name, "images": len(each.run.images)}
        rows += [{**head, **row, "role": roles.get(row["name"])} for row in table.rows]
    role = Column("role", "what it is")
    columns = dict.fromkeys(c for table in tables for c in table.columns if c != role)
    first = Column("run", "run"), role, Column("images", "images", "count")
    notes = " ".join(f"{each.name}: {each.run.describe()}" for each in runs)
    return replace(tables[0], title=title, note=f"{NOTE} {notes}", columns=(*first, *columns), rows=tuple(rows))


def draw_levels(table: Table) -> Figure:
    """A column of panels for each run, a row for each level: stacked bars of the methods that use it."""
    runs = list(dict.fromkeys(row["run"] for row in table.rows))
    stages = sorted({row["level"] for row in table.rows})
    bars = {
        (run, level): [
            (_starred(row), row["certified"] - row["wrong"], row["wrong"], row["abstained"])
            for row in table.rows
            if (row["run"], row["level"]) == (run, level)
        ]
        for run in runs
        for level in stages
    }
    blocks = [runs[start : start + _PANELS] for start in range(0, len(runs), _PANELS)]
    places = [(block, level) for block in blocks for level in stages]
    most = [max(len(bars[run, level]) for run in block) for block, level in places]
    heights = [0.5 + 0.36 * count for count in most]
    columns = min(len(runs), _PANELS)
    size = 4.6 * columns + 1, sum(heights) + 1.4
    figure, panels = new_figure(*size, rows=len(places), columns=columns, sharex=True, height_ratios=heights)
    for line, (block, level), count in zip(panels, places, most, strict=True):
        for axes, run in zip(line, block, strict=False):
            draw_bars(axes, bars[run, level], f"{run}, {level}" if level == stages[0] else level)
            axes.set_ylim(count - 0.4, -0.6)
        for axes in line[len(block) :]:
            axes.set_axis_off()
    for axes in panels[-1]:
        axes.set_xlabel("share of all pixels (%)")
    share_legend(figure)
    figure.suptitle(f"{table.title} (*: the promise of its run)", fontsize=12)
    return figure


def _starred(row: dict[str, Any]) -> str:
    return f"{row['name']} *" if row["role"] == PROMISE else str(row["name"])
