"""Methods without thresholds against `adaptive` with thresholds tuned on other images.

The images are split in two. Each part is scored with the threshold function chosen on the other, so every image is
scored and none is used to choose its own thresholds. The best function in hindsight is shown as well: no certificate,
but the most that tuning on this grid could have given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.thresholds import ThresholdSearch, name_of, rank_functions
from certiseg.runs.pooling import ImageSums, Interval, ScoredRun, brackets, interval_cells
from certiseg.runs.settings import Setting
from certiseg.scores import PixelSums

TUNED, HINDSIGHT = "tuned", "hindsight"
_COLUMNS = (
    Column("name", "method"),
    Column("cig", "CIG", "score"),
    Column("cig_over", "CIG over tuned", "change"),
    Column("ccig", "cCIG", "score"),
    Column("ccig_over", "cCIG over tuned", "change"),
    Column("abstain", "abstain", "percent"),
    Column("accuracy", "certified, right", "percent"),
    Column("wrong", "certified, wrong", "percent"),
)


@dataclass(frozen=True, eq=False)
class TunedComparison:
    """The sums of the same images by method; TUNED and HINDSIGHT are `adaptive`."""

    setting: Setting
    methods: dict[str, ImageSums]
    chosen: tuple[tuple[float, ...], tuple[float, ...]]
    """The functions used on the first part and on the second."""
    parts: tuple[int, int]
    """Images of the first part and of the second."""
    hindsight: tuple[float, ...]
    words: str
    """The setting as titles say it."""
    note: str

    def difference(self, method: str, score: str, *, against: str = TUNED, draws: int = 1000) -> Interval:
        """The difference of a score, both methods on the same resampled images."""
        return self.methods[method].compared(self.methods[against], [score], np.subtract, draws=draws)[score]

    def class_differences(self, method: str) -> dict[int, float]:
        """CIG by true class, method minus TUNED, for the classes that occur."""
        ours, theirs = (self.methods[name].scores().class_cig for name in (method, TUNED))
        return {int(c): float(ours[c] - theirs[c]) for c in np.flatnonzero(np.isfinite(ours))}


def compare_with_tuned(run: ScoredRun, search: ThresholdSearch) -> TunedComparison:
    """The run's methods, and `adaptive` with thresholds chosen on each part of a search for the other."""
    half, count = search.choose_on, len(search.images)
    parts = (slice(half, count), slice(half), slice(count))
    first, second, whole = (rank_functions(search.functions, [search.scores(p)], search.by)[0] for p in parts)
    used = [first] * half + [second] * (count - half)
    tuned = [sums.of(index) for sums, index in zip(search.each, used, strict=True)]
    found = {m: run.sums(m, search.setting).only(search.images) for m in run.manifest.methods}
    placed = {m: found[m] for m in found if m.startswith(("segcertify", "level", "adaptive"))}
    placed[TUNED] = ImageSums(search.images, PixelSums.stack(tuned))
    placed[HINDSIGHT] = search.sums(whole, slice(count))
    return TunedComparison(
        search.setting,
        placed | found,
        (search.functions[first], search.functions[second]),
        (half, count - half),
        search.functions[whole],
        search.words,
        run.describe(),
    )


def to_table(found: TunedComparison, *, draws: int = 1000) -> Table:
    """A row per method; the differences to the tuned thresholds are on the same resampled images."""
    rows = []
    for method, sums in found.methods.items():
        row: dict[str, Any] = {"name": shown_name(method)}
        row |= sums.row(("cig", "ccig", "abstain", "accuracy", "wrong"), draws=draws)
        if method != TUNED:
            for key in ("cig", "ccig"):
                row |= interval_cells(f"{key}_over", found.difference(method, key, draws=draws))
        rows.append(row)
    (one, other), (first, second) = found.chosen, found.parts
    note = (
        f"{found.note} Tuned: {name_of(one)} on the first {first} images and {name_of(other)} on the other {second}, "
        f"each chosen by CIG on the other part. In hindsight: {name_of(found.hindsight)}, the best of the grid on "
        f"these images, which is no certificate. {brackets(first + second, draws)}"
    )
    return Table(f"Against tuned thresholds, {found.words}", note, _COLUMNS, tuple(rows))


def shown_name(method: str) -> str:
    """A method as tables call it, tuned ones included."""
    names = {TUNED: "Adaptive, tuned on other images", HINDSIGHT: "Adaptive, best in hindsight"}
    return names.get(method) or method_name(method)
