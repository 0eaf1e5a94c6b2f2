"""CIG and certified rate over n for every level: coarse levels certify more but say less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certiseg.analysis.drawing import MARKERS, method_colour, method_name
from certiseg.analysis.exports import Column, Table
from certiseg.render.figures import new_figure
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.scores import PixelSums, Scores, scores_of, sum_pixels
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    Column("name", "method"),
    Column("n", "n", "count"),
    Column("cig", "CIG", "score"),
    Column("certified", "certified", "percent"),
)


def tradeoff_table(folder: RunFolder, *, sigma: float, tau: float) -> Table:
    """Every level and method of the run at each stored n: from the table, or from votes where it has no such row."""
    run, levels = ScoredRun(folder), range(1, folder.manifest.tree.num_levels)
    methods = list(dict.fromkeys([BASELINE, *(f"level:{level}" for level in levels), *folder.manifest.methods]))
    rows = []
    for n in certifiable_draws(folder, tau):
        setting = Setting(sigma, n, tau)
        known = {m: run.sums(m, setting).scores() for m in methods if run.has(m, setting)}
        scores = known | scores_from_votes(folder, setting, [m for m in methods if m not in known])
        for method in methods:
            row = {"method": method, "name": method_name(method), "n": n}
            rows.append(row | {"cig": scores[method].cig, "certified": 1 - scores[method].abstain})
    title = f"CIG and certified rate over n, sigma = {sigma:g}, tau = {tau:g}"
    return Table(title, run.describe(), _COLUMNS, tuple(rows))


def certifiable_draws(folder: RunFolder, tau: float) -> list[int]:
    """The stored n at which something can be certified at tau, for the size of the first image."""
    manifest, names = folder.manifest, folder.finished()
    make = binomial_test if manifest.test == "fixed" else anytime_test
    significance = manifest.alpha_per_image / folder.label(names[0]).size
    return [n for n in manifest.draws if make(n, tau).critical(significance) is not None]


def scores_from_votes(folder: RunFolder, setting: Setting, methods: Sequence[str]) -> dict[str, Scores]:
    """Scores of methods or settings that a run did not compute, from its stored votes."""
    sums: dict[str, PixelSums] = {}
    for name in folder.finished() if methods else ():
        votes, label = folder.votes(name, setting), folder.label(name)
        for method in methods:
            of_image = sum_pixels(folder.certify(votes, setting, method), label)
            sums[method] = sums[method] + of_image if method in sums else of_image
    return {method: scores_of(of_method) for method, of_method in sums.items()}


def draw(table: Table) -> Figure:
    """CIG over n, certified rate over n, and one against the other."""
    figure, ((gain, rate, both),) = new_figure(13, 4.2, columns=3)
    methods = list(dict.fromkeys(row["method"] for row in table.rows))
    for number, method in enumerate(methods):
        rows = [row for row in table.rows if row["method"] == method]
        style = {"color": method_colour(method), "marker": MARKERS[number % len(MARKERS)], "markersize": 6}
        n, cig, certified = (
            [row["n"] for row in rows],
            [row["cig"] for row in rows],
            [100 * r["certified"] for r in rows],
        )
        gain.plot(n, cig, **style, label=method_name(method))
        rate.plot(n, certified, **style)
        both.plot(certified, cig, **style)
    for axes in (gain, rate):
        axes.set_xlabel("number of samples n")
        axes.set_xticks(sorted({row["n"] for row in table.rows}))
    gain.set_ylabel("certified information gain (CIG)")
    rate.set_ylabel("certified pixels (%)")
    both.set(xlabel="certified pixels (%)", ylabel="certified information gain (CIG)")
    for axes in (gain, rate, both):
        axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=min(len(methods), 5), frameon=False)
    figure.suptitle(table.title, fontsize=12)
    return figure
