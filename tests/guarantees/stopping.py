"""The worst rule of stopping: it knows the truth, sees every draw, and keeps the look that is best for a false label.

It even chooses after the last draw, which no real rule can. The anytime test promises its error against it all the
same, because P(ever E >= 1/a) <= a speaks of all looks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import certiseg as cs
from certiseg.stats.anytime import AnytimeTest

from .promises import Cell
from .simulate import EXACTLY, Scene, draw_labels, draw_selection, make_votes

FEW = 4
"""For by, whose loss is a share: a look at which so many null pixels are strong may be worse than one."""


class Stopped:
    """An image whose draws are stopped by the adversary; scene.n is the longest it can wait."""

    def __init__(self, scene: Scene, rng: np.random.Generator, *, alpha: float) -> None:
        self.scene, self.first_look = scene, first_look(scene.n, scene.tau, alpha, scene.tested)
        self.selection = draw_selection(scene, rng)
        self.labels = draw_labels(scene, rng, scene.n)
        self.known_votes: dict[int, cs.Votes] = {}
        self.known_evidence: dict[object, NDArray[np.float32]] = {}

    def looks(self, cell: Cell) -> Sequence[cs.Votes]:
        """The votes when some null pixel's evidence was largest, and when the k-th largest was."""
        looks = {self.worst_look(cell, rank) for rank in {1, cell.k, FEW if cell.correction == "by" else 1}}
        return [self.votes_at(look) for look in sorted(looks)]

    def votes_at(self, look: int) -> cs.Votes:
        """The votes after so many draws."""
        if look not in self.known_votes:
            scene, active = self.scene, len(self.scene.active)
            places = self.labels[:look] + active * np.arange(scene.tested)
            counted = np.bincount(places.reshape(-1), minlength=active * scene.tested)
            counts = np.zeros((scene.tested, scene.hierarchy.num_classes), np.int64)
            counts[:, scene.active] = counted.reshape(scene.tested, active)
            self.known_votes[look] = make_votes(scene, self.selection, counts, n=look, stopped=True)
        return self.known_votes[look]

    def worst_look(self, cell: Cell, rank: int) -> int:
        """The number of draws at which the evidence of the `rank` strongest null pixels was largest."""
        key = (cell.method, cell.options)
        if key not in self.known_evidence:
            self.known_evidence[key] = self._evidence(cell)
        evidence = self.known_evidence[key]
        if evidence.shape[1] < rank:
            return self.scene.n
        strongest = evidence.max(axis=1) if rank == 1 else np.partition(evidence, -rank, axis=1)[:, -rank]
        return self.first_look + int(strongest.argmax())

    def _evidence(self, cell: Cell) -> NDArray[np.float32]:
        """(looks, null pixels): log E of the largest label set that would be a false certification."""
        inside = coarsest_null(self.scene, self.selection, cell)
        null = np.flatnonzero(inside.any(axis=1))
        hits = np.cumsum(np.take_along_axis(inside[null].T, self.labels[:, null], axis=0), axis=0, dtype=np.int32)
        return np.take_along_axis(evidence_table(self.scene.n, self.scene.tau), hits, axis=1)[self.first_look - 1 :]


def coarsest_null(scene: Scene, selection: NDArray[np.int64], cell: Cell) -> NDArray[np.bool_]:
    """(N, active classes): the largest label set with share <= tau that a method tests at each pixel; or nothing."""
    chain = _chain(scene, selection, cell)
    shares = (chain * scene.shares[scene.kind]).sum(axis=-1)
    largest = (shares <= scene.tau + EXACTLY).sum(axis=0) - 1
    chosen = chain[np.maximum(largest, 0), np.arange(scene.tested)] & (largest >= 0)[:, None]
    return chosen[:, scene.active]


def _chain(scene: Scene, selection: NDArray[np.int64], cell: Cell) -> NDArray[np.bool_]:
    """(links, N, C): the growing label sets that a method tests, as section 4 of docs/design.md says."""
    options = dict(cell.options)
    order = np.argsort(-selection, axis=1, kind="stable")
    paths = scene.hierarchy.members[scene.hierarchy.ancestors[order[:, 0]]].transpose(1, 0, 2)
    if cell.method == "sets":
        one_hot = np.eye(scene.hierarchy.num_classes, dtype=bool)[order[:, : options.get("max_set", scene.max_set)]]
        return np.logical_or.accumulate(one_hot.transpose(1, 0, 2), axis=0)
    if cell.method == "nested":
        return paths
    level = np.full(scene.tested, options.get("level", 0))
    if cell.method == "adaptive":
        best = np.take_along_axis(selection, order[:, :2], axis=1)
        gap = (best[:, 0] - best[:, 1]) / scene.n0
        level = sum((gap <= threshold).astype(int) for threshold in options["thresholds"])
    return paths[level, np.arange(scene.tested)][None]


@lru_cache(maxsize=8)
def evidence_table(horizon: int, tau: float) -> NDArray[np.float32]:
    """[n - 1, k] = log E_n(k), for n = 1 .. horizon."""
    table = np.full((horizon, horizon + 1), -np.inf, np.float32)
    for n in range(1, horizon + 1):
        table[n - 1, : n + 1] = AnytimeTest(n, tau).log_evidence
    return table


@lru_cache(maxsize=64)
def first_look(horizon: int, tau: float, alpha: float, tested: int) -> int:
    """The first number of draws at which any correction can certify anything (by is the last to)."""
    level = alpha / (tested * float(np.sum(1 / np.arange(1, tested + 1))))
    return next(n for n in range(1, horizon + 1) if AnytimeTest(n, tau).critical(level) is not None)
