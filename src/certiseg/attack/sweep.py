"""Sweep the parameter of a threat, inside the certified range and far beyond it, with fresh draws at every step.

The parameter is all an attacker has, so a fine sweep is a whole search. A certificate is refuted at T_t x where the
draws leave no room for "more than half lie under the label": the test of refute.py, shared by all steps inside the
range. Images rounded to 8 bits are swept too and told apart, since they are not promised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.attack.refute import refutable_misses
from certiseg.attack.targets import Target, target_of
from certiseg.errors import InputError
from certiseg.models.segmenter import as_batch
from certiseg.noise import image_key
from certiseg.noise.along_threat import moved_images
from certiseg.settings import SamplingSettings

if TYPE_CHECKING:
    from certiseg.attack.run import Victim
    from certiseg.models.segmenter import Segmenter


@dataclass(frozen=True)
class Sweep:
    """How finely, how far and with how many draws."""

    steps: int = 8
    """Parameters inside the range, its end among them (for gamma on each side)."""
    beyond: float = 3.0
    """How far the sweep goes, in ranges."""
    draws: int = 100
    alpha: float = 0.001
    """Chance that the sweep refutes a certificate that holds."""
    seed: int = 1
    """Added to the seed of the votes: none of their noise is used again."""

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.beyond >= 1 or not 0 < self.alpha < 1 or self.seed < 1:
            raise InputError(
                f"steps and seed must be at least 1, beyond at least 1 and alpha in (0, 1), got {self.steps}, "
                f"{self.seed}, {self.beyond} and {self.alpha}"
            )

    def parameters(self, low: float, high: float) -> list[float]:
        """0, the steps inside the range, and as many beyond it for each range; of both signs where the range is."""
        upward = [high * k / self.steps for k in range(int(self.steps * self.beyond) + 1)]
        return upward if low == 0 else [*(-t for t in reversed(upward[1:])), *upward]


@dataclass(frozen=True)
class Step:
    """What fresh draws say at one parameter."""

    image: str
    t: float
    inside: bool
    """Whether the certificate speaks of this parameter."""
    rounded: bool
    """Whether the image was rounded to 8 bits, which is not promised."""
    tested: int
    refuted: int
    lost: float
    """Share of the certified pixels with fewer than half of the draws under their label; an estimate."""
    lowest_share: float
    mean_share: float
    by_class: Mapping[str, float] = field(default_factory=dict)
    """Mean share under the label, over the certified pixels of each candidate class."""


def sweep_certificate(
    segmenter: Segmenter, victim: Victim, sweep: Sweep, *, each: Callable[[Step], None] = lambda _: None
) -> list[Step]:
    """Every step of the sweep over one certificate, real-valued and rounded."""
    certificate, threat = victim.certificate, victim.certificate.votes.threat
    if threat.law == "none":
        raise InputError("certificate must be of a threat with a parameter to be swept, got l2")
    low, high = certificate.range
    if high <= 0:
        raise InputError("tau must be above 0.5 to be swept: the range is empty")
    target, parameters = target_of(certificate, "all"), sweep.parameters(low, high)
    inside = [low - 1e-12 <= t <= high + 1e-12 for t in parameters]
    least = refutable_misses(sweep.draws, alpha=sweep.alpha, tested=target.tested * sum(inside))
    found = []
    for t, promised in zip(parameters, inside, strict=True):
        for rounded in (False, True):
            hits = _hits(segmenter, victim, target, t, rounded=rounded, sweep=sweep)
            found.append(_step(victim, target, hits, t, promised, rounded, sweep.draws, least))
            each(found[-1])
    return found


def _hits(
    segmenter: Segmenter, victim: Victim, target: Target, t: float, *, rounded: bool, sweep: Sweep
) -> NDArray[np.int64]:
    """(N,): fresh draws at T_t x inside each certified label."""
    votes, pixels, start = victim.certificate.votes, victim.pixels, t
    if rounded:
        pixels, start = np.rint(votes.threat.apply(pixels, t) * 255).astype(np.float32) / np.float32(255), 0.0
        votes.threat.require_fits(pixels)
    settings = SamplingSettings(
        sigma=votes.sigma, n=sweep.draws, seed=(votes.seed or 0) + sweep.seed, threat=votes.threat, anchors=(start,)
    )
    write = moved_images(pixels, settings, image_key=image_key(pixels), stage="estimation")
    allowed = target.allowed[target.pixels]
    rows, hits = np.arange(target.tested), np.zeros(target.tested, np.int64)
    moved = np.empty((1, *pixels.shape), np.float32)
    for draw in range(sweep.draws):
        write(draw, moved[0])
        hits += allowed[rows, segmenter(as_batch(moved)).labels()[0][target.pixels]]
    return hits


def _step(
    victim: Victim,
    target: Target,
    hits: NDArray[np.int64],
    t: float,
    inside: bool,
    rounded: bool,
    draws: int,
    least: int,
) -> Step:
    shares, names = hits / draws, victim.certificate.hierarchy.classes
    candidate = victim.certificate.votes.candidate[target.pixels].astype(np.int64)
    sums = np.bincount(candidate, shares, minlength=len(names))
    counts = np.bincount(candidate, minlength=len(names))
    return Step(
        victim.name,
        t,
        inside,
        rounded,
        target.tested,
        int((draws - hits >= least).sum()),
        float((2 * hits < draws).mean()),
        float(shares.min()),
        float(shares.mean()),
        {name: float(s / n) for name, s, n in zip(names, sums, counts, strict=True) if n},
    )


def refuted_inside(steps: Sequence[Step]) -> list[Step]:
    """Steps inside the range, on images that were not rounded, that refuted something: there must be none."""
    return [step for step in steps if step.inside and not step.rounded and step.refuted]
