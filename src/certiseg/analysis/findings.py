"""What contests show, in sentences that follow from their numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from certiseg.analysis.contest import HINDSIGHT, TUNED, Contest, shown_name
from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table
from certiseg.runs.manifest import Setting
from certiseg.stats.radius import radius

WORDS = {"cig": "CIG", "ccig": "CIG averaged over classes", "accuracy": "share of pixels certified and right"}


def over_settings(contests: Sequence[Contest], method: str, score: str = "cig", *, against: str = TUNED) -> list[str]:
    """Where a method is above another, tuned thresholds by default, where below, where the interval holds zero."""
    above: list[tuple[Contest, float]] = []
    below: list[tuple[Contest, float]] = []
    open_: list[tuple[Contest, float]] = []
    for each in contests:
        found, low, high = each.difference(method, score, against=against)
        (above if low > 0 else below if high < 0 else open_).append((each, found))
    name, sentences = method_name(method), []
    other = "adaptive with tuned thresholds" if against == TUNED else method_name(against)
    if above:
        where = _count(above, contests)
        span = _span([d for _, d in above])
        sentences.append(f"{name} has the higher {WORDS[score]} than {other} at {where}, by {span}.")
    if below:
        where = f"{_count(below, contests)} ({_settings(c for c, _ in below)})"
        span = _span([-d for _, d in below])
        sentences.append(f"{name} has the lower {WORDS[score]} than {other} at {where}, by {span}.")
    if open_:
        where = f"{_count(open_, contests)} ({_settings(c for c, _ in open_)})"
        span = _span([d for _, d in open_], sign=True)
        sentences.append(
            f"At {where} the interval of the difference in {WORDS[score]} between {name} and {other} holds zero "
            f"({span})."
        )
    return sentences


def against_hindsight(contests: Sequence[Contest], method: str) -> str:
    """Whether a method is above even the best function of the grid on the very images."""
    better = [c for c in contests if c.difference(method, "cig", against=HINDSIGHT)[0] > 0]
    name = method_name(method)
    if len(better) == len(contests):
        return f"{name} is above even the best of the grid in hindsight at every setting."
    missed = [c for c in contests if c not in better]
    return (
        f"{name} is above the best of the grid in hindsight at {_count(better, contests)}; "
        f"it is not at {_settings(missed)}."
    )


def price(found: Contest, method: str) -> str:
    """What more certified pixels cost: wrong ones among them."""
    ours, theirs = (found.pools[name].scores() for name in (method, TUNED))
    wrong, their_wrong = (1 - s.abstain - s.accuracy for s in (ours, theirs))
    more = "more" if wrong > their_wrong else "fewer"
    return (
        f"{method_name(method)} abstains from {ours.abstain:.1%} of the pixels, tuned adaptive from "
        f"{theirs.abstain:.1%}; certified and right are {ours.accuracy:.1%} against {theirs.accuracy:.1%}, certified "
        f"but wrong {wrong:.1%} against {their_wrong:.1%}, that is {more}."
    )


def by_class(found: Contest, method: str, classes: Sequence[str], *, least: float = 0.0005, most: int = 5) -> str:
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


def difference_table(contests: Sequence[Contest], methods: Sequence[str], counts: Sequence[int]) -> Table:
    """CIG of tuned thresholds at every setting, and how far the others are above or below."""
    rows = []
    for found, count in zip(contests, counts, strict=True):
        s = found.setting
        row: dict[str, object] = {"sigma": s.sigma, "n": s.n, "tau": s.tau, "radius": radius(s.sigma, s.tau)}
        row |= {"images": count, "tuned": found.pools[TUNED].scores().cig}
        for method in (HINDSIGHT, *methods):
            row[method], row[f"{method}_low"], row[f"{method}_high"] = found.difference(method, "cig")
        rows.append(row)
    columns = [Column("sigma", "sigma", "plain"), Column("n", "n", "count"), Column("tau", "tau", "plain")]
    columns += [Column("radius", "R", "score"), Column("images", "images", "count")]
    columns += [Column("tuned", "CIG of adaptive, tuned", "score")]
    columns += [Column(m, f"{shown_name(m)}: difference", "change") for m in (HINDSIGHT, *methods)]
    note = (
        "Thresholds were chosen crosswise, on images that are not scored with them. Brackets: 95% intervals from 1000 "
        "bootstrap samples of the images, both methods on the same."
    )
    return Table("CIG against tuned thresholds at every setting", note, tuple(columns), tuple(rows))


def _count(part: Sequence[object], whole: Sequence[object]) -> str:
    if len(part) == len(whole):
        return "every setting" if len(whole) > 1 else "the setting"
    return f"{len(part)} of {len(whole)} settings"


def _span(values: Sequence[float], *, sign: bool = False) -> str:
    shown = [f"{v:+.3f}" if sign else f"{v:.3f}" for v in (min(values), max(values))]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def _settings(contests: Iterable[Contest]) -> str:
    found: list[Setting] = [c.setting for c in contests]
    return "; ".join(f"sigma {s.sigma:g}, n {s.n}, tau {s.tau:g}" for s in found)
