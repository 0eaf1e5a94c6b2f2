"""Tables as CSV, Markdown and LaTeX: the same rows, a caption, and a note that says what is promised."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from certiseg.archive import write_atomically

Kind = Literal["text", "count", "plain", "score", "percent", "gain", "change"]
MISSING = "-"

_FORMATS = {"text": "{}", "count": "{:,}", "plain": "{:g}", "score": "{:.3f}", "percent": "{:.1%}"}
_FORMATS |= {"gain": "{:+.1%}", "change": "{:+.3f}"}
_LATEX = {character: f"\\{character}" for character in "%_&#${}"}
_LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


@dataclass(frozen=True)
class Column:
    """A column. `key` finds its value in a row; `KEY_low` and `KEY_high`, if there, are the ends of its interval."""

    key: str
    head: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """Rows of values by key; percentages are stored as fractions."""

    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]

    def csv(self) -> str:
        """Every value in full, with the ends of intervals in columns of their own; missing values are empty."""
        extra = [f"{c.key}_{end}" for c in self.columns for end in ("low", "high")]
        present = {key for row in self.rows for key in row}
        keys = [c.key for c in self.columns] + [key for key in extra if key in present]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([["" if is_missing(row.get(key)) else row[key] for key in keys] for row in self.rows])
        return text.getvalue()

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _pipes([c.head for c in self.columns])]
        lines.append(_pipes(["---" if c.kind == "text" else "---:" for c in self.columns]))
        lines += [_pipes([cell.replace("|", "\\|") for cell in self._cells(row)]) for row in self.rows]
        return "\n".join([*lines, "", f"_{self.note}_", ""])

    def latex(self) -> str:
        """A `table` for the booktabs package."""
        align = "".join("l" if c.kind == "text" else "r" for c in self.columns)
        body = [" & ".join(_escape_latex(c.head) for c in self.columns) + r" \\", r"\midrule"]
        body += [" & ".join(_escape_latex(cell) for cell in self._cells(row)) + r" \\" for row in self.rows]
        caption = _escape_latex(f"{self.title}. {self.note}")
        head = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
        return "\n".join(
            [*head, *body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}", ""]
        )

    def write(self, stem: str | Path) -> None:
        """STEM.csv, STEM.md and STEM.tex."""
        for ending, text in {"csv": self.csv(), "md": self.markdown(), "tex": self.latex()}.items():
            path = Path(f"{stem}.{ending}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(text.encode())

    def _cells(self, row: dict[str, Any]) -> list[str]:
        return [" ".join(part for part in show_cell(row, c) if part) for c in self.columns]


def show(value: Any, kind: Kind) -> str:
    """A value as a table shows it."""
    return MISSING if is_missing(value) else _FORMATS[kind].format(value)


def show_cell(row: dict[str, Any], column: Column) -> tuple[str, str]:
    """(value, interval) as a table shows them; the interval is empty where there is none."""
    value = show(row.get(column.key), column.kind)
    low, high = row.get(f"{column.key}_low"), row.get(f"{column.key}_high")
    if value == MISSING or is_missing(low) or is_missing(high):
        return value, ""
    return value, f"[{show(low, column.kind)}, {show(high, column.kind)}]"


def is_missing(value: Any) -> bool:
    """Whether there is no value: not computed, or no pixel to compute it from."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """The row with None for what has no value, as JSON wants it."""
    return {key: None if is_missing(value) else value for key, value in row.items()}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
