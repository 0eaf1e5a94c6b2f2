"""The table of figures: each ratio with its median, least and largest run, judged on the median."""

from __future__ import annotations

import operator
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure
from certiseg.archive import write_atomically
from certiseg.errors import InputError

BEGIN, END = "<!-- figures: written by python -m benchmarks --write -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Row:
    """All runs of one figure."""

    first: Figure
    values: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the aim; None for a figure without one."""
        if self.first.aim is None:
            return None
        return bool({"<=": operator.le, ">=": operator.ge}[self.first.direction](self.median, self.first.aim))

    @property
    def name(self) -> str:
        """The name, with what else was found and how often."""
        found = Counter(self.notes)
        several = len(found) > 1
        notes = [f"{note} ({count} times)" if several else note for note, count in found.most_common() if note]
        return f"{self.first.name}: {', '.join(notes)}" if notes else self.first.name

    @property
    def aim(self) -> str:
        return "" if self.first.aim is None else f"{self.first.direction} {self.first.aim:g}"

    @property
    def spread(self) -> str:
        """Least and largest run."""
        return f"{_value(min(self.values))} .. {_value(max(self.values))}" if len(self.values) > 1 else ""

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        least, largest = min(self.values), max(self.values)
        found = {"name": self.name, "median": self.median, "least": least, "largest": largest, "values": self.values}
        return found | {"aim": self.first.aim, "direction": self.first.direction, "met": self.met}


def rows_of(figures: Iterable[Figure]) -> list[Row]:
    """Figures of one name are one row."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.name, []).append(figure)
    return [Row(of[0], tuple(f.value for f in of), tuple(f.note for f in of)) for of in found.values()]


def line(row: Row) -> str:
    """A row for the terminal."""
    verdict = {True: "met", False: "MISSED", None: ""}[row.met]
    text = f"{verdict:<6} {_value(row.median):>9} {row.aim:<9} {row.spread:>18}  {row.name}"
    curve = _curve(row.first.curve)[::2] if row.first.curve else []
    return "\n".join([text, *(f"{'':37} {of}" for of in curve)])


def write_table(path: Path, rows: Sequence[Row], note: str) -> None:
    """Put the figures between the marks of a document."""
    before, after = split(path)
    table = ["| figure | median | least .. largest | runs | aim | met |", "|---|---|---|---|---|---|"]
    for row in rows:
        met = {True: "yes", False: "no", None: ""}[row.met]
        cells = [row.name, _value(row.median), row.spread, str(len(row.values)), row.aim, met]
        table.append(f"| {' | '.join(cells)} |")
    for row in rows:
        if row.first.curve:
            table += ["", f"{row.name}, if stopped after so many draws:", "", *_curve(row.first.curve)]
    with write_atomically(path) as file:
        file.write("\n".join([before + BEGIN, "", note, "", *table, "", END + after]).encode())


def split(path: Path) -> tuple[str, str]:
    """What stands before and after the marked part of a document."""
    text = path.read_text("utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{path}: must hold the lines {BEGIN!r} and {END!r}, between which the table is written")
    return before, after


def _curve(curve: Mapping[Any, float]) -> list[str]:
    """A curve as a Markdown table of ten columns at most."""
    points = list(curve.items())
    points = points[:: -max(1, len(points) // 10)][::-1]
    rows = ([f"{k}" for k, _ in points], ["---"] * len(points), [f"{v:.3f}" for _, v in points])
    return [f"| {' | '.join(cells)} |" for cells in rows]


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"
