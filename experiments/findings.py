"""What comparisons show, in sentences that follow from their numbers alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized

from certiseg.analysis.drawing import method_name, setting_text
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.tables import SETTING_COLUMNS
from certiseg.analysis.tuned_comparison import HINDSIGHT, TUNED, TunedComparison, shown_name
from certiseg.runs.pooling import brackets, interval_cells
from certiseg.runs.run import setting_cells
from certiseg.runs.settings import Setting

WORDS = {"cig": "CIG", "ccig": "CIG averaged over classes", "accuracy": "share of pixels certified and right"}


def over_settings(
    comparisons: Sequence[TunedComparison], method: str, score: str = "cig", *, against: str = TUNED
) -> list[str]:
    """Where a method is above another, tuned thresholds by default, where below, and where that is not settled."""
    found = [(c.setting, *c.difference(method, score, against=against)) for c in comparisons]
    above = {setting: value for setting, value, low, _ in found if low > 0}
    below = {setting: -value for setting, value, _, high in found if high < 0}
    unclear = {setting: value for setting, value, low, high in found if low <= 0 <= high}
    told = {setting: value for setting, value, low, _ in found if math.isnan(low)}
    name, words = method_name(method), WORDS[score]
    other = "adaptive with tuned thresholds" if against == TUNED else method_name(against)
    sentences = []
    if above:
        where = _count(above, comparisons)
        sentences.append(f"{name} has the higher {words} than {other} at {where}, by {_span(above.values())}.")
    if below:
        where = f"{_count(below, comparisons)} ({_settings(below)})"
        sentences.append(f"{name} has the lower {words} than {other} at {where}, by {_span(below.values())}.")
    if unclear:
        where, span = f"{_count(unclear, comparisons)} ({_settings(unclear)})", _span(unclear.values(), sign=True)
        sentences.append(
            f"At {where} the interval of the difference in {words} between {name} and {other} holds zero ({span})."
        )
    if told:
        where, span = _count(told, comparisons), _span(told.values(), sign=True)
        sentences.append(
            f"At {where}, of too few images for an interval, the {words} of {name} less that of {other} is {span}."
        )
    return sentences


def against_hindsight(comparisons: Sequence[TunedComparison], method: str) -> str:
    """Whether a method is above even the best function of the grid on the very images."""
    better = [c for c in comparisons if c.difference(method, "cig", against=HINDSIGHT)[0] > 0]
    name = method_name(method)
    if len(better) == len(comparisons):
        return f"{name} is above even the best of the grid in hindsight at every setting."
    missed = [c.setting for c in comparisons if c not in better]
    return (
        f"{name} is above the best of the grid in hindsight at {_count(better, comparisons)}; "
        f"it is not at {_settings(missed)}."
    )


def price(found: TunedComparison, method: str) -> str:
    """What more certified pixels cost: wrong ones among them."""
    ours, theirs = (found.methods[name].scores() for name in (method, TUNED))
    wrong, their_wrong = (1 - s.abstain - s.accuracy for s in (ours, theirs))
    more = "more" if wrong > their_wrong else "fewer"
    return (
        f"{method_name(method)} abstains from {ours.abstain:.1%} of the pixels, tuned adaptive from "
        f"{theirs.abstain:.1%}; certified and right are {ours.accuracy:.1%} against {theirs.accuracy:.1%}, certified "
        f"but wrong {wrong:.1%} against {their_wrong:.1%}, that is {more}."
    )


def by_class(
    found: TunedComparison, method: str, classes: Sequence[str], *, least: float = 0.0005, most: int = 5
) -> str:
    """In how many classes a method has more CIG than tuned thresholds, and in which it has less."""
    differences = found.class_differences(method)
    up = [c for c, d in differences.items() if d > least]
    down = sorted((d, c) for c, d in differences.items() if d < -least)
    text = (
        f"By class, {method_name(method)} has more CIG than tuned adaptive in {len(up)} of {len(differences)} classes"
    )
    if not down:
        return f"{text} and less in none."
    named = ", ".join(f"{classes[c]} ({d:+.3f})" for d, c in down[:most])
    rest = f" and {len(down) - most} more" if len(down) > most else ""
    return f"{text} and less in {len(down)}: {named}{rest}."


def difference_table(comparisons: Sequence[TunedComparison], methods: Sequence[str], counts: Sequence[int]) -> Table:
    """CIG of tuned thresholds at every setting, and how far the others are above or below."""
    rows = []
    for found, count in zip(comparisons, counts, strict=True):
        row = setting_cells(found.setting) | {"images": count, "tuned": found.methods[TUNED].scores().cig}
        for method in (HINDSIGHT, *methods):
            row |= interval_cells(method, found.difference(method, "cig"))
        rows.append(row)
    columns = [*SETTING_COLUMNS, Column("images", "images", "count")]
    columns += [Column("tuned", "CIG of adaptive, tuned", "score")]
    columns += [Column(m, f"{shown_name(m)}: difference", "change") for m in (HINDSIGHT, *methods)]
    note = f"Thresholds were chosen crosswise, on images that are not scored with them. {brackets(min(counts), 1000)}"
    return Table("CIG against tuned thresholds at every setting", note, tuple(columns), tuple(rows))


def _count(part: Sized, whole: Sized) -> str:
    if len(part) == len(whole):
        return "every setting" if len(whole) > 1 else "the setting"
    return f"{len(part)} of {len(whole)} settings"


def _span(values: Iterable[float], *, sign: bool = False) -> str:
    low, *_, high = [f"{value:+.3f}" if sign else f"{value:.3f}" for value in sorted([*values] * 2)]
    return low if low == high else f"{low} to {high}"


def _settings(settings: Iterable[Setting]) -> str:
    return "; ".join(setting_text(setting) for setting in settings)
