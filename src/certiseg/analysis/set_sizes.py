"""Share of pixels by the size of the certified label set: right, wrong, abstained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import BLUE, FAINT, RED, method_name, new_figure
from certiseg.analysis.exports import Column, Table
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import MethodChoice, Setting
from certiseg.scores import VOID


@dataclass(frozen=True, eq=False)
class SetSizes:
    """Pixels by set size, pooled over images, void ones left out."""

    method: str
    setting: Setting
    images: int
    certified: NDArray[np.int64]
    """(largest + 1,): by size; place 0 holds the abstained."""
    wrong: NDArray[np.int64]
    """Certified, but the true class is not in the set."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """(largest + 1, 2): share of all pixels with this size, and that is wrong there."""
        return np.stack([self.certified, self.wrong], axis=1) / max(int(self.certified.sum()), 1)


def set_methods(methods: tuple[str, ...]) -> list[str]:
    """Those of a run's methods that give label sets."""
    return [method for method in methods if MethodChoice(method).options["method"] == "sets"]


def set_sizes(folder: RunFolder, method: str, setting: Setting) -> SetSizes:
    """From the stored certificates of every finished image."""
    names, largest = folder.finished(), folder.manifest.tree.num_classes
    certified, wrong = np.zeros(largest + 1, np.int64), np.zeros(largest + 1, np.int64)
    for name in names:
        certificate, label = folder.certificate(name, setting, method), folder.label(name)
        known = label != VOID
        size, ranking = certificate.set_size[known].astype(np.intp), certificate.votes.ranking[known]
        inside = (ranking == label[known][:, None]) & (np.arange(ranking.shape[1]) < size[:, None])
        certified += np.bincount(size, minlength=largest + 1)
        wrong += np.bincount(size[(size > 0) & ~inside.any(axis=1)], minlength=largest + 1)
    used = max(int(np.flatnonzero(certified).max(initial=0)), 1) + 1
    return SetSizes(method, setting, len(names), certified[:used], wrong[:used])


def to_table(found: SetSizes, *, note: str) -> Table:
    rows = [
        {"size": _size_name(size), "share": float(share), "wrong": float(wrong) if size else None}
        for size, (share, wrong) in enumerate(found.shares)
    ]
    columns = (
        Column("size", "classes in the set"),
        Column("share", "share of all pixels", "percent"),
        Column("wrong", "wrong (of all pixels)", "percent"),
    )
    ordered = (*rows[1:], rows[0])
    return Table(f"{method_name(found.method)} by size of the certified set, {found.setting}", note, columns, ordered)


def draw(found: SetSizes) -> Any:
    """A bar per size, abstentions last."""
    figure, ((axes,),) = new_figure(9, 1.9 + 0.42 * len(found.certified))
    order = [*range(1, len(found.certified)), 0]
    share, wrong = 100 * found.shares[order].T
    place = np.arange(len(order))
    right, missing = share - wrong, np.where(place == len(order) - 1, share, 0)
    right[-1] = 0
    axes.barh(place, right, color=BLUE, label="certified, right")
    axes.barh(place, wrong, left=right, color=RED, hatch="///", edgecolor="white", label="certified, wrong")
    axes.barh(place, missing, color="#d9d9de", edgecolor=FAINT, label="abstained")
    for row in place:
        text = f"{share[row]:.1f}" if row == place[-1] else f"{right[row]:.1f} / {wrong[row]:.1f}"
        axes.annotate(text, (share[row], row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(place, [_size_name(size) for size in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(0, 115)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("share of all pixels (%): right / wrong")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    s = found.setting
    title = f"{method_name(found.method)} by set size, sigma = {s.sigma:g}, n = {s.n}, tau = {s.tau:g}"
    figure.suptitle(title, fontsize=12)
    return figure


def _size_name(size: int) -> str:
    return "abstained" if size == 0 else f"{size} class{'es' if size > 1 else ''}"
