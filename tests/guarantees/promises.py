"""What each certificate promises, and how often simulated images break it."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import certiseg as cs
from certiseg import certificate

from .simulate import Scene, count_false, count_false_radii, draw_votes

Certify = Callable[..., cs.Certificate]
CERTIFY = importlib.import_module("certiseg.certify")
"""The module, whose name the function hides."""


@dataclass(frozen=True)
class Cell:
    """One way of certifying: a line of the table."""

    method: str
    correction: str = "bonferroni"
    test: str = "fixed"
    k: int = 1
    options: tuple[tuple[str, Any], ...] = ()
    """What else the method wants: level, thresholds, max_set."""
    radii: bool = False
    """Judge the radius map instead of the certified labels."""

    def settings(self, alpha: float, tau: float) -> dict[str, Any]:
        """The arguments of `cs.certify`."""
        named = {"method": self.method, "correction": self.correction, "test": self.test, "k": self.k}
        return {**named, "alpha": alpha, "tau": tau, **dict(self.options)}

    def loss(self, scene: Scene, certificate: cs.Certificate) -> float:
        """What must be at most alpha in the mean over images."""
        if self.radii:
            return float(count_false_radii(scene, certificate) > 0)
        false, certified = count_false(scene, certificate)
        if self.correction == "by":
            return false / max(certified, 1)
        return float(false >= self.k)

    @property
    def promise(self) -> str:
        """The event or mean whose size is promised, in a few words."""
        if self.radii:
            return "a radius of the map is too large"
        if self.correction == "by":
            return "share of false among certified"
        return "a false certification" if self.k == 1 else f"{self.k} or more false certifications"

    @property
    def label(self) -> str:
        """Method and options, as they are printed."""
        options = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.method} ({options})" if options else self.method


class Image(Protocol):
    """A simulated image."""

    def looks(self, cell: Cell) -> Sequence[cs.Votes]:
        """The votes that may be certified; the worst of them counts."""
        ...


@dataclass(frozen=True)
class Sampled:
    """An image with one set of votes, n having been fixed."""

    votes: cs.Votes

    def looks(self, cell: Cell) -> Sequence[cs.Votes]:
        return (self.votes,)


@dataclass(frozen=True)
class Scenario:
    """Images to be simulated, and the cells to be judged on them."""

    name: str
    scene: Scene
    alpha: float
    cells: tuple[Cell, ...]
    draw: Callable[[Scene, np.random.Generator], Image] = field(
        default=lambda scene, rng: Sampled(draw_votes(scene, rng))
    )
    region: Callable[[cs.Votes], NDArray[np.bool_]] | None = None
    weight: float = 1.0
    """Share of the wanted images that is enough here (large images are slow)."""
    spends: tuple[str, ...] = ()
    """Corrections whose alpha this scene is made to spend, at least with its first method."""

    def images(self, wanted: int) -> int:
        return max(1, round(wanted * self.weight))

    def essential(self) -> Scenario:
        """The same with only the cells that the scene is made for, for a quick run."""
        kept = tuple(cell for cell in self.cells if cell.correction in (self.spends or (cell.correction,)))
        return replace(self, cells=kept)


@dataclass(frozen=True)
class Outcome:
    """How often one cell broke its promise."""

    scenario: Scenario
    cell: Cell
    images: int
    error: float

    @property
    def bound(self) -> float:
        """alpha + 3 standard errors: what a mean of so many losses in [0, 1] with expectation alpha may reach."""
        alpha = self.scenario.alpha
        return alpha + 3 * float(np.sqrt(alpha * (1 - alpha) / self.images))

    @property
    def holds(self) -> bool:
        return self.error <= self.bound

    @property
    def bites(self) -> bool:
        """Whether a scene that is made to spend this alpha does so: the check would be worth little otherwise."""
        meant = self.cell.correction in self.scenario.spends and not self.cell.radii
        if not meant or self.cell.method != self.scenario.cells[0].method or self.images < 200:
            return True
        return self.error >= self.scenario.alpha / 3


def measure(
    scenario: Scenario,
    *,
    images: int,
    seed: int = 0,
    certify: Certify = cs.certify,
    tick: Callable[[], Any] = lambda: None,
) -> list[Outcome]:
    """The measured error of every cell of a scenario over so many simulated images."""
    totals = np.zeros(len(scenario.cells))
    # The table of radii depends on n, tau and the error alone: made once, not for every image.
    with patch.object(certificate, "reach_table", lru_cache(maxsize=None)(certificate.reach_table)):
        for index in range(images):
            rng = np.random.default_rng((seed, zlib.crc32(scenario.name.encode()), index))
            image = scenario.draw(scenario.scene, rng)
            for position, cell in enumerate(scenario.cells):
                totals[position] += max(_losses(scenario, cell, image, certify))
            tick()
    return [
        Outcome(scenario, cell, images, float(total / images))
        for cell, total in zip(scenario.cells, totals, strict=True)
    ]


def _losses(scenario: Scenario, cell: Cell, image: Image, certify: Certify) -> Iterable[float]:
    scene = scenario.scene
    settings = cell.settings(scenario.alpha, scene.tau)
    for votes in image.looks(cell):
        region = None if scenario.region is None else scenario.region(votes)
        yield cell.loss(scene, certify(votes, scene.hierarchy, region=region, **settings))


def failures(outcomes: Iterable[Outcome]) -> list[str]:
    """One sentence for every promise that did not hold, and for every scene that does not bite."""
    sentences = []
    for o in outcomes:
        what = f"{o.scenario.name}: {o.cell.label}, {o.cell.correction}, {o.cell.test}: {o.cell.promise}: {o.error:.4f}"
        if not o.holds:
            sentences.append(f"{what} exceeds {o.bound:.4f} (alpha = {o.scenario.alpha:g}, {o.images} images)")
        if not o.bites:
            sentences.append(f"{what} is so far below alpha = {o.scenario.alpha:g} that the scene tests nothing")
    return sentences
