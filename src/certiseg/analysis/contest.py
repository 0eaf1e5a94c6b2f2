"""Methods without thresholds against `adaptive` with tuned ones, each image tuned on images that it is not among.

The images are parted in two. Each part is scored with the threshold function chosen on the other, so every image is
reported and none had a part in its own choice. The best function of all in hindsight stands beside it: no
certificate, but a bound on what tuning could have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.grid import GridSums
from certiseg.analysis.pooling import LEVEL, Pool, Pools, percentile_interval, pool_of
from certiseg.analysis.tables import describe
from certiseg.analysis.thresholds import ThresholdSearch, name_of, rank_functions
from certiseg.runs.manifest import Setting
from certiseg.scores import Scores, scores_of

Interval = tuple[float, float, float]
"""A value with the ends of its interval."""
TUNED, HINDSIGHT = "tuned", "hindsight"
SCORED = ("cig", "ccig", "abstain", "accuracy")


@dataclass(frozen=True, eq=False)
class Contest:
    """Pools over the same images, by method; TUNED and HINDSIGHT are `adaptive`."""

    setting: Setting
    pools: dict[str, Pool]
    chosen: tuple[tuple[float, ...], tuple[float, ...]]
    """The functions used on the first part and on the second."""
    parts: tuple[int, int]
    hindsight: tuple[float, ...]
    note: str

    def difference(self, method: str, score: str, *, against: str = TUNED, draws: int = 1000) -> Interval:
        """(difference, low, high) of a score, both methods on the same resampled images."""
        ours, theirs = self.pools[method], self.pools[against]
        found = _score(ours, score) - _score(theirs, score)
        samples = ours.resampled(draws=draws)[score] - theirs.resampled(draws=draws)[score]
        low, high = percentile_interval(samples)
        return found, low, high

    def class_differences(self, method: str, *, against: str = TUNED) -> dict[int, float]:
        """CIG by true class, method minus the other, for the classes that occur."""
        ours, theirs = (self.pools[name].scores().class_cig for name in (method, against))
        return {int(c): float(ours[c] - theirs[c]) for c in np.flatnonzero(np.isfinite(ours))}


def contest(pools: Pools, search: ThresholdSearch) -> Contest:
    """The run's methods, and `adaptive` tuned crosswise over the parts of a search."""
    half = search.choose_on
    first, second, whole = (_best(search, part) for part in (search.each[half:], search.each[:half], search.each))
    used = [first] * half + [second] * (len(search.each) - half)
    tuned = pool_of(search.images, [s.sums(index) for s, index in zip(search.each, used, strict=True)])
    best = pool_of(search.images, [s.sums(whole) for s in search.each])
    found = {m: pools.pool(m, search.setting).only(search.images) for m in pools.manifest.methods}
    placed = [m for m in found if m.startswith(("segcertify", "level", "adaptive"))]
    ordered = {m: found[m] for m in placed} | {TUNED: tuned, HINDSIGHT: best} | found
    return Contest(
        search.setting,
        ordered,
        (search.functions[first], search.functions[second]),
        (half, len(search.each) - half),
        search.functions[whole],
        describe(pools),
    )


def to_table(found: Contest, *, draws: int = 1000) -> Table:
    """A row per method; the last columns are differences to the tuned thresholds, on the same resampled images."""
    rows = []
    for method, pool in found.pools.items():
        scores, samples = pool.scores(), pool.resampled(draws=draws)
        row: dict[str, Any] = {"name": shown_name(method), "wrong": 1 - scores.abstain - scores.accuracy}
        for key in SCORED:
            row[key] = getattr(scores, key)
            row[f"{key}_low"], row[f"{key}_high"] = percentile_interval(samples[key])
        if method != TUNED:
            for key in ("cig", "ccig"):
                over = f"{key}_over"
                row[over], row[f"{over}_low"], row[f"{over}_high"] = found.difference(method, key, draws=draws)
        rows.append(row)
    columns = (
        Column("name", "method"),
        Column("cig", "CIG", "score"),
        Column("cig_over", "CIG over tuned", "change"),
        Column("ccig", "cCIG", "score"),
        Column("ccig_over", "cCIG over tuned", "change"),
        Column("abstain", "abstain", "percent"),
        Column("accuracy", "certified, right", "percent"),
        Column("wrong", "certified, wrong", "percent"),
    )
    (one, other), (first, second) = found.chosen, found.parts
    note = (
        f"{found.note} Tuned: {name_of(one)} on the first {first} images and {name_of(other)} on the other {second}, "
        f"each chosen by CIG on the opposite part. In hindsight: {name_of(found.hindsight)}, the best of the grid on "
        f"these very images, which is no certificate. Brackets: {LEVEL:.0%} intervals from {draws} bootstrap samples."
    )
    return Table(f"Against tuned thresholds, {found.setting}", note, columns, tuple(rows))


def shown_name(method: str) -> str:
    names = {TUNED: "Adaptive, tuned on other images", HINDSIGHT: "Adaptive, best in hindsight"}
    return names.get(method) or method_name(method)


def _best(search: ThresholdSearch, part: Sequence[GridSums]) -> int:
    """The best function on some images."""
    pooled = sum(part[1:], start=part[0])
    scores: list[Scores] = [scores_of(pooled.sums(index)) for index in range(len(search.functions))]
    return rank_functions(search.functions, [scores], search.by)[0]


def _score(pool: Pool, score: str) -> float:
    value: float = getattr(pool.scores(), score)
    return value
