"""Promises about the truth, by simulation: exchangeable images with known truth and the worst attack in closed form.

The score of an image is a number along which the worst attack pushes: theta + u . eps for l2, where delta = -r u
attains Psi, and theta - beta along a threat, where a shift of t attains 1 - e^(delta/lam) (1 - p). Images differ by
their theta; where they hardly do, Jensen's inequality is almost an equality and the shift bites. Thresholds are the
package's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certiseg import threats
from certiseg.stats.conformal import least_units, threshold, threshold_rank
from certiseg.truth.scores import UNIT
from certiseg.truth.settings import CalibrationSettings

Scores = NDArray[np.float64]
Rule = Literal[
    "ours",
    "rank one further",
    "b = 1 - a",
    "calibrated without noise",
    "noise known to the attacker",
    "one noise for all",
]
BROKEN: tuple[Rule, ...] = (
    "rank one further",
    "b = 1 - a",
    "calibrated without noise",
    "noise known to the attacker",
    "one noise for all",
)
SURE = 5.0
"""Standard errors by which a mean may lie on the wrong side: a promise that holds is reported as broken with 3e-7."""
SIDES = 100
"""Directions in which an image can be lost, in the world where knowing the noise helps an attacker."""


@dataclass(frozen=True)
class World:
    """Images with scores, calibrated and attacked as the settings say."""

    settings: CalibrationSettings
    images: int
    spread: float = 0.0
    """Of theta between images, in sigma or in lam."""
    sides: int = 1
    """The image is covered if it is along each of so many directions: an attack without the noise can push one."""

    @property
    def name(self) -> str:
        s = self.settings
        sides = f", {self.sides} directions" if self.sides > 1 else ""
        return f"risk {s.risk[0]:g}, {s.covered}, {self.images} images, spread {self.spread:g}{sides}"

    @property
    def unit(self) -> float:
        return self.settings.sigma or self.settings.threat.scale

    def draw(
        self,
        rng: np.random.Generator,
        shape: tuple[int, ...],
        *,
        attacked: bool = False,
        known: bool = False,
        **how: bool,
    ) -> Scores:
        """Scores of images with noise of their own; attacked: by the worst attack; known: that sees the noise."""
        s, theta = self.settings, self.spread * self.unit * rng.standard_normal(shape)
        if how.get("clean"):
            return theta
        if how.get("shared"):
            return theta + s.sigma * rng.standard_normal((*shape[:-1], 1))
        if s.threat.law != "none":
            law = rng.standard_exponential if s.threat.law == "exponential" else rng.standard_normal
            beta = s.threat.scale * law(shape)
            theta = theta - beta - (s.up_to if attacked else 0.0)
            return theta + (s.sigma * rng.standard_normal(shape) - s.radius * attacked if s.sigma else 0.0)
        if self.sides == 1:
            return theta + s.sigma * rng.standard_normal(shape) - s.radius * attacked
        noise = s.sigma * rng.standard_normal((*shape, self.sides), np.float32)
        if attacked:
            pushed = noise.argmin(-1) if known else np.zeros(shape, np.intp)
            np.put_along_axis(noise, pushed[..., None], np.take_along_axis(noise, pushed[..., None], -1) - s.radius, -1)
        return theta + noise.min(-1)


@dataclass(frozen=True)
class Measured:
    """The coverage under attack, over many calibrations."""

    name: str
    rule: Rule
    promised: float
    coverage: float
    error: float
    clean: float
    """Coverage without attack."""

    @property
    def holds(self) -> bool:
        return self.coverage >= self.promised - SURE * self.error


def measure(world: World, *, rule: Rule = "ours", trials: int, tests: int = 50, seed: int = 0) -> Measured:
    """Calibrate `trials` times, each time with fresh images, and attack `tests` new images."""
    rng, s = np.random.default_rng(seed), world.settings
    how = {"clean": rule == "calibrated without noise", "shared": rule == "one noise for all"}
    scores = _whole(world.draw(rng, (trials, world.images), **how), world)
    plain = _whole(world.draw(rng, (trials, tests)), world)
    attacked = world.draw(rng, (trials, tests), attacked=True, known=rule == "noise known to the attacker")
    find = _finder(rule, s.miss(s.risk[0]), Fraction(repr(s.risk[0])))
    limits = np.array([find(each) for each in scores])[:, None]
    covered = (_whole(attacked, world) >= limits).mean(1)
    return Measured(
        world.name,
        rule,
        1 - s.risk[0],
        float(covered.mean()),
        float(covered.std(ddof=1) / np.sqrt(trials)),
        float((plain >= limits).mean()),
    )


def _finder(rule: Rule, miss: Fraction, risk: Fraction) -> Callable[[NDArray[np.uint32]], int]:
    if rule == "rank one further":
        return lambda scores: int(np.sort(scores)[threshold_rank(len(scores), miss)])
    return lambda scores: threshold(scores, risk if rule == "b = 1 - a" else miss)


def _whole(scores: Scores, world: World) -> NDArray[np.uint32]:
    """Whole numbers in the same order, as fine as 32 bits allow."""
    placed = (scores / world.unit + 60) / 80
    return (np.clip(placed, 0, 1) * UNIT).astype(np.uint32)


def worlds() -> list[World]:
    """Several m, a and r, each with as few images as the promise allows and with many more, and along threats."""
    found = []
    for risk in (0.05, 0.1, 0.3):
        for radius in (0.0, 0.085, 0.169, 0.3):
            settings = CalibrationSettings(risk=(risk,), radius=radius)
            least = least_units(settings.miss(risk)) or 0
            sizes = [count for count in (least, 3 * least + 2) if count <= 1500]
            found += [World(settings, count, spread) for count in sizes for spread in (0.0, 0.3, 2.0)]
    fog, gamma = threats.fog(0.5), threats.gamma(0.5)
    for asked in (
        CalibrationSettings(threat=fog, sigma=0.0, up_to=0.3),
        CalibrationSettings(threat=fog, sigma=0.0, up_to=0.6, risk=(0.2,)),
        CalibrationSettings(threat=fog, sigma=0.25, up_to=0.3, radius=0.1),
        CalibrationSettings(threat=gamma, sigma=0.0, up_to=0.3),
    ):
        least = least_units(asked.miss(asked.risk[0])) or 0
        found += [World(asked, count, spread) for count in (least, 4 * least) for spread in (0.0, 1.0)]
    return [*found, many_sided()]


def tight() -> World:
    """Images that are all alike, and many of them: what a wrong rule gives away is not hidden by chance."""
    settings = CalibrationSettings(risk=(0.1,), radius=0.169)
    return World(settings, next(j for j in range(150, 400) if _just_enough(j, settings.miss(0.1))))


def many_sided() -> World:
    """Where an attacker who knows the noise sees along which direction an image is about to be lost."""
    return World(tight().settings, tight().images, sides=SIDES)


def _just_enough(units: int, miss: Fraction) -> bool:
    """The rank has just risen: nothing is lost to rounding."""
    return threshold_rank(units, miss) > threshold_rank(units - 1, miss)


def broken(rule: Rule) -> World:
    """The world in which a broken rule must be seen to fail."""
    if rule == "noise known to the attacker":
        return many_sided()
    fewest = World(tight().settings, least_units(tight().settings.miss(0.1)) or 0)
    return fewest if rule == "rank one further" else tight()
