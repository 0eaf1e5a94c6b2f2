"""CIG and certified rate over n for every level: coarse levels certify more and say less, adaptive ones do both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certiseg.analysis.drawing import MARKERS, method_colour, method_name, new_figure, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import BASELINE, describe
from certiseg.certify import NothingCertifiable
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.scores import PixelSums, Scores, scores_of, sum_pixels
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test


@dataclass(frozen=True)
class Point:
    """One method at one n."""

    method: str
    n: int
    cig: float
    certified: float


@dataclass(frozen=True)
class Tradeoff:
    """All methods over all kept n, at one sigma and tau."""

    sigma: float
    tau: float
    points: tuple[Point, ...]
    note: str

    def of(self, method: str) -> list[Point]:
        return [point for point in self.points if point.method == method]

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(point.method for point in self.points))


def tradeoff(
    folder: RunFolder,
    *,
    sigma: float,
    tau: float,
    methods: Sequence[str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Tradeoff:
    """Every level and method of the run at each n kept, from the table or, where it has no such row, from votes."""
    pools, levels = Pools(folder), folder.manifest.tree.num_levels
    if methods is None:
        every_level = [BASELINE, *(f"level:{level}" for level in range(1, levels))]
        methods = list(dict.fromkeys([*every_level, *folder.manifest.methods]))
    points = []
    for n in certifiable_draws(folder, tau):
        setting = Setting(sigma, n, tau)
        known = {m: pools.pool(m, setting).scores() for m in methods if pools.has(m, setting)}
        missing = [m for m in methods if m not in known]
        scores = known | scores_from_votes(folder, setting, missing)
        points += [Point(m, n, scores[m].cig, 1 - scores[m].abstain) for m in methods]
        progress(n)
    return Tradeoff(sigma, tau, tuple(points), describe(pools))


def certifiable_draws(folder: RunFolder, tau: float) -> list[int]:
    """The kept n at which something can be certified at tau, judged by the first image's size."""
    manifest, names = folder.manifest, folder.finished()
    make = binomial_test if manifest.test == "fixed" else anytime_test
    least = manifest.alpha_per_image / folder.label(names[0]).size
    return [n for n in manifest.draws if make(n, tau).critical(least) is not None]


def scores_from_votes(folder: RunFolder, setting: Setting, methods: Sequence[str]) -> dict[str, Scores]:
    """Scores of methods or settings that a run did not compute, from its stored votes."""
    sums: dict[str, PixelSums] = {}
    for name in folder.finished() if methods else ():
        votes, label = folder.votes(name, setting), folder.label(name)
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NothingCertifiable)
                of_image = sum_pixels(folder.certify(votes, setting, method), label)
            sums[method] = sums[method] + of_image if method in sums else of_image
    return {method: scores_of(of_method) for method, of_method in sums.items()}


def to_table(found: Tradeoff) -> Table:
    rows = tuple(
        {"name": method_name(p.method), "n": p.n, "cig": p.cig, "certified": p.certified} for p in found.points
    )
    scores = (Column("cig", "CIG", "score"), Column("certified", "certified", "percent"))
    columns = (Column("name", "method"), Column("n", "n", "count"), *scores)
    return Table(
        f"CIG and certified rate over n, sigma = {found.sigma:g}, tau = {found.tau:g}", found.note, columns, rows
    )


def draw(found: Tradeoff) -> Any:
    """CIG over n, certified rate over n, and one against the other."""
    figure, ((gain, rate, both),) = new_figure(13, 4.2, columns=3)
    for number, method in enumerate(found.methods):
        points = found.of(method)
        style = {"color": method_colour(method), "marker": MARKERS[number % len(MARKERS)], "markersize": 6}
        n, cig = [p.n for p in points], [p.cig for p in points]
        certified = [100 * p.certified for p in points]
        gain.plot(n, cig, **style, label=method_name(method))
        rate.plot(n, certified, **style)
        both.plot(certified, cig, **style)
    for axes in (gain, rate):
        axes.set_xlabel("number of samples n")
        axes.set_xticks(sorted({p.n for p in found.points}))
    gain.set_ylabel("certified information gain (CIG)")
    rate.set_ylabel("certified pixels (%)")
    both.set(xlabel="certified pixels (%)", ylabel="certified information gain (CIG)")
    for axes in (gain, rate, both):
        axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=min(len(found.methods), 5), frameon=False)
    figure.suptitle(f"sigma = {found.sigma:g}, tau = {found.tau:g}", fontsize=12)
    return figure


def write(folder: RunFolder, out: str | Path, *, sigma: float, tau: float) -> list[Path]:
    """tradeoff-SIGMA-TAU.* in the folder `out`."""
    found = tradeoff(folder, sigma=sigma, tau=tau)
    stem = f"{out}/tradeoff-sigma{sigma:g}-tau{tau:g}"
    return to_table(found).write(stem) + save_figure(draw(found), stem)
