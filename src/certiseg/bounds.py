"""Votes with measures -> certified bounds of the measures.

With probability >= 1 - alpha over the noise, for each of the M measures: whatever happens to the image within R, or
within the range of the threat, more than half of the noisy predictions have a value of at least its bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import Archive, read_archive, write_archive
from certiseg.certify import NothingCertifiable
from certiseg.claims import draws_of, event_of, terms_of
from certiseg.errors import InputError
from certiseg.images.values import Values
from certiseg.measures.measure import Measure
from certiseg.measures.record import Record, unpack_record
from certiseg.settings import Noise, from_stored, make_plain, require, require_one_of, stored
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import CountTest, Test, binomial_test
from certiseg.stats.order import hits_above, order_bounds
from certiseg.stats.radius import radius as l2_radius
from certiseg.threats import Threat
from certiseg.threats import unpack as unpack_threat
from certiseg.threats.anchors import Covered, covered, reach_table
from certiseg.votes import Votes, recorded_image
from certiseg.words import confidence, no_more

FORMAT_VERSION = 2
LEVELS = (0.5, 0.8, 0.95)
"""Values of a measure for which a radius is told."""
OF_BOUNDS = ("tau", "alpha", "test", "radius")
"""Settings that certificates of pixels have as well."""


@dataclass(frozen=True, kw_only=True)
class BoundSettings:
    """How bounds are computed from the values of measures."""

    tau: float = 0.75
    alpha: float = 0.001
    """Allowed error, for all measures together."""
    test: Test = "fixed"
    radius: float | None = None
    """With a threat: the l2 size of perturbation that is covered beside it."""

    def __post_init__(self) -> None:
        make_plain(self)
        require(0.5 <= self.tau < 1, "tau", "lie in [0.5, 1)", self.tau)
        require(0 < self.alpha < 1, "alpha", "lie in (0, 1)", self.alpha)
        require_one_of("test", self.test, ("fixed", "anytime"))

    def count_test(self, n: int) -> CountTest:
        """The test of "P(m >= t) <= tau" by n draws."""
        return (binomial_test if self.test == "fixed" else anytime_test)(n, self.tau)


@dataclass(frozen=True)
class Draws:
    """What is to be known about the draws, without their counts."""

    n0: int
    n: int
    sigma: float
    noise: Noise
    stopped: bool
    seed: int | None
    image_key: str | None
    classes: tuple[str, ...] | None
    size: tuple[int, int]
    threat: Threat
    anchors: tuple[float, ...]
    deviation: float
    """Sigma as the noise has it."""
    provenance: Mapping[str, Any]

    @property
    def channels(self) -> int:
        """Of the image."""
        return recorded_image(self.provenance)[0]

    @property
    def image_values(self) -> Values:
        """The numbers that 0 and 1 stood for in the image's file."""
        return recorded_image(self.provenance)[1]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Certified bounds of M measures; see `claim()` for what is promised about them."""

    lower: NDArray[np.float64]
    """(M,): theta, the bound of each measure; along a threat the least of the bounds at its anchors."""
    critical: int | None
    """c: theta is the c-th largest of the n values; None where no count is enough, and every bound is 0."""
    radius: float
    """R, the l2 size of perturbation that is covered, in [0, 1] pixel units; with a threat, beside it."""
    settings: BoundSettings
    draws: Draws
    record: Record

    def __repr__(self) -> str:
        return f"Bounds({len(self.lower)} measures, {self.extent}, n = {self.draws.n})"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures, in the order of the bounds."""
        return self.record.measures

    @property
    def covered(self) -> Covered:
        """The parameters of the threat that are covered, and the anchors that cover them; for l2, (0, R)."""
        return covered_by(self.draws, self.settings)

    @property
    def extent(self) -> str:
        """What is covered, in a few words."""
        return self.draws.threat.extent(self.covered.high, self.radius)

    @cached_property
    def radii(self) -> NDArray[np.float64]:
        """(M, 3): how far more than half of the predictions have m >= 0.5, 0.8, 0.95; 0 where nothing is proven.

        A radius, or with a threat the end of a range. A statement of its own: with probability >= 1 - alpha all of
        these hold, each at error alpha / (3 M). Together with the bounds they promise 1 - 2 alpha.
        """
        draws, settings, used = self.draws, self.settings, self.covered.used
        table = reach_table(
            settings.count_test(draws.n),
            draws.threat,
            anchors=tuple(draws.anchors[k] for k in used),
            radius=settings.radius or 0.0,
            sigma=draws.deviation,
            error=settings.alpha / (len(self.lower) * len(LEVELS)),
        )
        apart = [hits_above(values, LEVELS) for values in by_anchor(self.record, draws.anchors, used)]
        return np.asarray(table[np.minimum.reduce(apart)])

    def table(self) -> list[dict[str, Any]]:
        """A row for each measure, for tables and JSON; numbers are rounded down."""
        rows = []
        for measure, bound, radii in zip(self.measures, self.lower.tolist(), self.radii.tolist(), strict=True):
            within = {f"radius_{level:g}": down(value) for level, value in zip(LEVELS, radii, strict=True)}
            row = {"name": measure.name, "kind": measure.kind, "label": measure.label, "pixels": measure.inside.area}
            rows.append({**row, "bound": down(bound), **within, "says": measure.sentence(bound)})
        return rows

    def claim(self) -> str:
        """The guarantee in plain words."""
        return claim_of(self)

    def save(self, path: str | Path) -> None:
        """Write one file, which `certiseg verify` checks."""
        record_meta, arrays = self.record.pack()
        draws = {each.name: getattr(self.draws, each.name) for each in fields(Draws)}
        draws["threat"], of_threat = self.draws.threat.pack()
        meta = {
            "settings": stored(self.settings),
            "draws": draws | {"provenance": dict(self.draws.provenance)},
            "radius": self.radius,
            "critical": self.critical,
            "record": record_meta,
        }
        if self.draws.threat.law != "none":
            meta["range"] = [self.covered.low, self.covered.high]
        arrays |= {"lower": self.lower, "radii": self.radii, **of_threat}
        write_archive(path, kind="bounds", version=FORMAT_VERSION, meta=meta, arrays=arrays)


def bound(
    votes: Votes, *, tau: float = 0.75, alpha: float = 0.001, test: Test = "fixed", radius: float | None = None
) -> Bounds:
    """Certified bounds of the measures that were read while the votes were drawn.

    With probability >= 1 - alpha over the noise, for each of the M measures: for every |delta|_2 <= R = sigma *
    Phi^-1(tau) more than half of the noisy predictions f(x + delta + eps) have m >= its bound. Condition: measures and
    settings were chosen without looking at the estimation draws; the n0 selection draws may be used.
    With a threat the same for every t of its range, and |delta|_2 <= radius beside it; every anchor must reach the
    bound, so it is the least of their bounds, and alpha is not divided.
    """
    found = make_bounds(votes, BoundSettings(tau=tau, alpha=alpha, test=test, radius=radius))
    if found.critical is None:
        warnings.warn(
            f"no bound can be proven: n = {votes.n} draws cannot reject at tau = {tau} and alpha = {alpha} for "
            f"{len(found.measures)} measures; see `certiseg plan --measures`",
            NothingCertifiable,
            stacklevel=2,
        )
    return found


def make_bounds(votes: Votes, settings: BoundSettings) -> Bounds:
    """The bounds of `bound`, without a warning where nothing can be proven."""
    record, moved, radius = votes.record, votes.threat.law != "none", settings.radius
    if record is None or not record.measures:
        raise InputError("votes must hold measures to be bounded, got none; sample with measures=[...]")
    if votes.stopped and settings.test == "fixed":
        raise InputError("test must be 'anytime' for votes that were stopped by looking at them, got 'fixed'")
    if radius is not None and not moved:
        raise InputError(f"radius must come with a threat, got {radius}; for l2 it follows from sigma and tau")
    settings = replace(settings, radius=float(radius or 0.0) if moved else None)
    critical = settings.count_test(votes.n).critical(settings.alpha / len(record.measures))
    draws = Draws(**{each.name: getattr(votes, each.name) for each in fields(Draws)})
    values = by_anchor(record, draws.anchors, covered_by(draws, settings).used)
    return Bounds(
        lower=np.minimum.reduce([order_bounds(of_anchor, critical) for of_anchor in values]),
        critical=critical,
        radius=l2_radius(votes.deviation, settings.tau) if settings.radius is None else settings.radius,
        settings=settings,
        draws=draws,
        record=record,
    )


def covered_by(draws: Draws, settings: BoundSettings) -> Covered:
    """What the draws cover at the tau and radius of the settings."""
    return covered(draws.anchors, *draws.threat.range(settings.tau, settings.radius or 0.0, draws.deviation))


def by_anchor(record: Record, anchors: tuple[float, ...], used: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """The values (n, M) at each used anchor: draw d is draw d // K at the anchor d % K."""
    return [record.values[anchor :: len(anchors)] for anchor in used]


def load_bounds(path: str | Path) -> Bounds:
    """Read bounds. Reading is not checking: `certiseg verify` recomputes them."""
    archive = read_archive(path, kind="bounds", version=FORMAT_VERSION)
    try:
        return _unpack(archive)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: must hold bounds, but cannot be read: {error}") from None


def _unpack(archive: Archive) -> Bounds:
    meta, arrays = archive.meta, archive.arrays
    record = unpack_record(meta["record"], arrays)
    stored_draws = dict(meta["draws"])
    for name in ("classes", "size", "anchors"):
        stored_draws[name] = None if stored_draws[name] is None else tuple(stored_draws[name])
    stored_draws["threat"] = unpack_threat(stored_draws["threat"], arrays)
    draws = Draws(**stored_draws)
    record.require_draws(np.ones(draws.n * len(draws.anchors), bool))
    if draws.size != record.shape[:2]:
        raise InputError(f"draws must be of the size of the measures, {record.shape[:2]}, got {draws.size}")
    if arrays["lower"].shape != (len(record.measures),):
        raise InputError(f"lower must hold a bound for each of the {len(record.measures)} measures")
    settings = from_stored(BoundSettings, meta["settings"])
    return Bounds(arrays["lower"], meta["critical"], float(meta["radius"]), settings, draws, record)


def down(value: float) -> float:
    """Rounded down to four digits; what is exact stays."""
    return float(no_more(value, 4))


def claim_of(bounds: Bounds, *, most: int = 20) -> str:
    """What bounds promise, in plain words."""
    draws, settings, count = bounds.draws, bounds.settings, len(bounds.lower)
    holds = "this statement holds" if count == 1 else f"each of these {count} statements holds"
    event = event_of(draws, bounds.radius, bounds.covered)
    lines = [f"With probability at least {confidence(settings.alpha)}, {holds}: {event} are such that"]
    shown = list(zip(bounds.measures, bounds.lower.tolist(), strict=True))
    lines += [f"- {measure.sentence(value)}" for measure, value in shown[:most]]
    if len(shown) > most:
        lines.append(f"- and {len(shown) - most} more: see `table()`")
    lines += [
        *terms_of(settings.tau, draws, bounds.radius, bounds.covered),
        "The halves of two statements may differ. Each speaks of most predictions under noise, not of the map of "
        "pixel-wise majorities, and not of the truth: what is labelled steadily can be wrong.",
        f"Condition: measures and settings were chosen before the estimation draws were seen ({draws_of(draws)}). "
        "A certificate of the pixels from the same draws spends an alpha of its own: at alpha each, both together "
        f"hold with probability at least {confidence(min(2 * settings.alpha, 1))}.",
    ]
    if bounds.critical is None:
        lines.insert(0, f"Nothing is proven: {draws.n} draws are too few, and every bound is 0.")
    if bounds.record.explored:
        lines.insert(0, "Exploration, not a promise: these measures were asked after the label maps were drawn.")
    return "\n".join(lines)
