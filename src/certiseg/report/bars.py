"""Charts of a page: stacked bars in the rows of a table, told on hover, printed like text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from certiseg.report.page import part

OUTCOMES = (("right", "certified and right"), ("wrong", "certified and wrong"), ("none", "abstained"))
"""Class of a part in page.css, and its words."""


@dataclass(frozen=True)
class Part:
    """A part of a bar."""

    kind: str
    start: float
    share: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A row: its name, what is drawn, and the cells behind it."""

    name: str
    parts: tuple[Part, ...]
    cells: tuple[str, ...]
    note: str = ""
    """Beside the name, in small letters."""

    @property
    def words(self) -> str:
        """The whole bar in words."""
        return "; ".join(part.text for part in self.parts)


def outcome_bar(name: str, shares: Sequence[float], *, more: Iterable[str] = (), note: str = "") -> Bar:
    """Right, wrong and abstained as shares of the pixels, drawn and printed; more: further cells."""
    parts, start = [], 0.0
    for share, (kind, words) in zip(shares, OUTCOMES, strict=True):
        parts.append(Part(kind, 100 * start, 100 * share, f"{name}: {words} {share:.1%}"))
        start += share
    return Bar(name, tuple(parts), (*(f"{share:.1%}" for share in shares), *more), note)


def outcome_table(title: str, head: str, bars: Sequence[Bar], *, more: Sequence[str] = (), note: str = "") -> Markup:
    """Bars of right, wrong and abstained under their legend; more: heads of further cells."""
    heads = ("right", "wrong", "abstained", *more)
    return part("bars", title, head, heads, bars, OUTCOMES, note)


def outcome_strip(bars: Sequence[Bar]) -> Markup:
    """A thin column for each bar, in order; its name and shares appear on hover."""
    return part("strip", bars)
