"""What a calibration promises, and how pixels are scored: settled before the first image is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from certiseg.errors import InputError
from certiseg.settings import is_whole, make_plain, require, require_noise, require_one_of, setting
from certiseg.stats.conformal import allowed_miss, least_units
from certiseg.threats import Threat, l2
from certiseg.threats.anchors import MOST_ANCHORS

Score = Literal["posterior", "adaptive", "vertex"]
SCORES: tuple[Score, ...] = get_args(Score)
LARGEST = 1e6
"""Of sigma, radius and parameters: far beyond any image."""


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings:
    """All that fixes a calibration, except the images, their noise and the model."""

    sigma: float = setting(0.25, help="pixel noise of the one pass, in [0, 1] pixel units")
    radius: float = setting(0.0, help="l2 size of perturbation that is covered; 0: none")
    risk: tuple[float, ...] = setting(
        (0.1,), help="chance that an image has more misses than promised; the first is the promise", words=True
    )
    pixels: tuple[float, ...] = setting(
        (0.95,), help="share of an image's labelled pixels whose set holds the true class", words=True
    )
    score: Score = setting(
        "posterior",
        help="posterior: classes of at least so much posterior; adaptive: classes by falling posterior until their sum "
        "is reached; vertex: the finest vertex above the best class of so much posterior",
    )
    classes: tuple[str, ...] = setting(
        (), help="one or two classes with a promise of their own, about their own pixels", words=True
    )
    temperature: float = setting(1.0, help="divides the logits")
    threat: Threat = setting(l2(), help="what happens to the image: l2, or a threat of light and weather")
    up_to: float = setting(0.0, help="parameter of the threat up to which it is covered")
    anchors: int = setting(1, help="passes per calibration image along the threat: more need fewer images")

    def __post_init__(self) -> None:
        make_plain(self)
        for name in ("sigma", "radius", "temperature", "up_to"):
            value = getattr(self, name)
            good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
            require(good, name, f"be a number of at most {LARGEST:g}", value)
        require(isinstance(self.threat, Threat), "threat", "be one of certiseg.threats", self.threat)
        named = isinstance(self.classes, tuple) and all(isinstance(name, str) for name in self.classes)
        require(named, "classes", "be names of classes", self.classes)
        for name in ("risk", "pixels"):
            values = getattr(self, name)
            values = values if isinstance(values, tuple) else (values,)
            object.__setattr__(self, name, values)
            good = bool(values) and all(isinstance(v, int | float) for v in values) and len(set(values)) == len(values)
            require(good, name, "be one or several different numbers", values)
        require(all(0 < risk < 1 for risk in self.risk), "risk", "lie in (0, 1)", self.risk)
        require(all(0 < share <= 1 for share in self.pixels), "pixels", "lie in (0, 1]", self.pixels)
        require_one_of("score", self.score, SCORES)
        require(np.isfinite(self.temperature) and self.temperature > 0, "temperature", "be > 0", self.temperature)
        self._require_covered()
        if len(set(self.classes)) < len(self.classes):
            raise InputError(f"classes must be named once each, got {', '.join(self.classes)}")
        if self.classes and self.score == "vertex":
            raise InputError("classes must be left out for the score vertex: one threshold keeps its answers vertices")

    def _require_covered(self) -> None:
        radius, moved = self.radius, self.threat.law != "none"
        require(np.isfinite(radius) and radius >= 0, "radius", "be a number >= 0", radius)
        if radius > 0 and not self.deviation > 0:
            raise InputError(f"radius must be 0 without pixel noise, got {radius:g}; set sigma above 0")
        if self.sigma or moved:  # ordinary conformal sets need no noise at all
            require_noise(self.sigma, "gaussian", self.threat)
        if self.threat.law == "normal" and radius > 0:
            raise InputError(f"radius must be 0 for {self.threat.name}, got {radius:g}: it stretches changes of pixels")
        if moved and self.up_to == 0:
            raise InputError(f"up_to must say up to which parameter {self.threat.name} is covered, got none; give it")
        good = np.isfinite(self.up_to) and (self.up_to > 0) == moved
        rule = "be a positive parameter of the threat" if moved else "come with a threat of light and weather"
        require(good, "up_to", rule, self.up_to)
        require(is_whole(self.anchors) and 1 <= self.anchors <= MOST_ANCHORS, "anchors", "be in 1..64", self.anchors)
        require(moved or self.anchors == 1, "anchors", "be 1 without a threat of light and weather", self.anchors)
        if self.threat.pack()[0].get("depth") is not None:
            raise InputError("threat must not carry a depth map, got one: it belongs to one image, not to all of them")

    @property
    def deviation(self) -> float:
        """Sigma as the noise has it: Gaussian noise is scaled in 32 bits."""
        return min(self.sigma, float(np.float32(self.sigma)))

    def miss(self, risk: float) -> Fraction:
        """The chance of a miss without attack that no covered attack raises above the risk."""
        shift = self.radius / self.deviation if self.radius else 0.0
        along = self.up_to / (self.anchors * self.threat.scale)
        if self.threat.law == "normal":
            return allowed_miss(risk, shift=along)
        return allowed_miss(risk, shift=shift, growth=along)

    def class_risk(self, risk: float) -> float:
        """The chosen classes share the risk."""
        return risk / max(len(self.classes), 1)

    @property
    def places(self) -> tuple[float, ...]:
        """Parameters of the threat at which a calibration image is scored; each covers its part of the range."""
        step = self.up_to / self.anchors
        if self.threat.law == "normal":
            return tuple((2 * k + 1 - self.anchors) * step for k in range(self.anchors))
        return tuple(k * step for k in range(self.anchors))

    @property
    def covered(self) -> str:
        """What is covered, in words."""
        radius = f"radius {self.radius:g} at sigma {self.sigma:g}"
        if self.threat.law == "none":
            return radius if self.radius else "no perturbation"
        return self.threat.words(self.up_to) + (f" beside {radius}" if self.radius else "")

    def level(self, risk: float | None, pixels: float | None) -> tuple[float, float]:
        """The level that is asked for, the promised one by default."""
        chosen = self.risk[0] if risk is None else risk, self.pixels[0] if pixels is None else pixels
        for name, value, known in (("risk", chosen[0], self.risk), ("pixels", chosen[1], self.pixels)):
            require(value in known, name, f"be one of those calibrated, {', '.join(map(str, known))}", value)
        return chosen


@dataclass(frozen=True)
class CalibrationPlan:
    """What a promise about the truth needs."""

    risk: float
    covered: str
    anchors: int
    images: int | None
    """Fewest labelled images."""


def calibration_plan(*, risk: float, **settings: Any) -> CalibrationPlan:
    """How many labelled images a calibration with these settings needs; see `CalibrationSettings`."""
    asked = CalibrationSettings(risk=(risk,), **settings)
    return CalibrationPlan(risk, asked.covered, asked.anchors, least_units(asked.miss(risk)))
