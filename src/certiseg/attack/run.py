"""An attack on one certificate: every target at every multiple of its radius."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.attack.refute import judge, refutable_misses
from certiseg.attack.search import Search, distance, find_perturbation, perturbed_image
from certiseg.attack.targets import Target, TargetName, target_of
from certiseg.certificate import Certificate
from certiseg.errors import InputError

VOID = 255


@dataclass(frozen=True)
class Attack:
    """What is tried on each certificate."""

    multiples: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Sizes of the ball, in radii R; rising, so that each search starts from the one before."""
    targets: tuple[TargetName, ...] = ("all", "pixel", "patch")
    search: Search = field(default_factory=Search)
    draws: int = 100
    """Fresh draws at x + delta, for all certified pixels at once."""
    few_draws: int = 40
    """The same for a pixel or a patch: a test of few certificates needs fewer."""
    alpha: float = 0.001
    """Chance that an attack refutes a certificate that holds."""
    seed: int = 1
    """Added to the seed of the votes: none of their noise is used again."""

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip((0, *self.multiples), self.multiples, strict=False))
        if not self.multiples or not rising:
            raise InputError(f"multiples must be positive and rise, got {list(self.multiples)}")
        if not 0 < self.alpha < 1 or self.seed < 1:
            raise InputError(f"alpha must lie in (0, 1) and seed be at least 1, got {self.alpha} and {self.seed}")

    def draws_for(self, target: TargetName) -> int:
        return self.draws if target == "all" else min(self.draws, self.few_draws)


@dataclass(frozen=True)
class Outcome:
    """One attack: a target of a certificate, in a ball of so many radii."""

    image: str
    target: TargetName
    multiple: float
    size: float
    """l2 size of the perturbation that was found."""
    tested: int
    """N, certificates under attack."""
    refuted: int
    lost: float
    """Share of them with fewer than half of the fresh draws inside their label; an estimate."""
    lowest_share: float
    base_lost: float
    """Share of them at which the model without noise leaves the label at x + delta."""
    accuracy: float | None
    """Of the model without noise on the perturbed image, where the ground truth is known."""


def attack_certificate(
    segmenter: Any,
    pixels: NDArray[np.float32],
    certificate: Certificate,
    attack: Attack,
    *,
    through: Any = None,
    image: str = "image",
    label: NDArray[np.integer] | None = None,
    each: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """The outcomes of all attacks on one certificate; each is told as soon as it is known.

    through: the torch model that gradients pass through, where the certified one is an export of it.
    """
    if certificate.radius <= 0:
        raise InputError("tau must be above 0.5 to be attacked: R is 0")
    outcomes: list[Outcome] = []
    for name in attack.targets:
        target = target_of(certificate, name)
        refutable_misses(attack.draws_for(name), alpha=attack.alpha, tested=target.tested)
        delta, last = None, None
        for multiple in attack.multiples:
            if last is not None and last.refuted == last.tested:
                # What refutes everything in a ball lies in every larger one, too.
                last = replace(last, multiple=multiple)
            else:
                delta, last = _attack_ball(
                    segmenter, pixels, certificate, target, attack, multiple, delta, through, image, label
                )
            outcomes.append(last)
            if each is not None:
                each(last)
    return outcomes


def _attack_ball(
    segmenter: Any,
    pixels: NDArray[np.float32],
    certificate: Certificate,
    target: Target,
    attack: Attack,
    multiple: float,
    start: NDArray[np.float32] | None,
    through: Any,
    image: str,
    label: NDArray[np.integer] | None,
) -> tuple[NDArray[np.float32], Outcome]:
    """The perturbation found in one ball, and what fresh draws say there."""
    votes, size = certificate.votes, multiple * certificate.radius
    noise: dict[str, Any] = {"sigma": votes.sigma, "seed": (votes.seed or 0) + attack.seed}
    differentiable = segmenter if through is None else through
    delta = find_perturbation(differentiable, pixels, target, size=size, search=attack.search, start=start, **noise)
    moved = perturbed_image(pixels, delta, size=size, noise=votes.noise)
    draws = attack.draws_for(target.name)
    verdict = judge(segmenter, moved, target, noise=votes.noise, draws=draws, alpha=attack.alpha, **noise)
    prediction = segmenter.predict(moved)
    inside = target.allowed[target.pixels][np.arange(target.tested), prediction[target.pixels]]
    return delta, Outcome(
        image=image,
        target=target.name,
        multiple=multiple,
        size=distance(moved, pixels),
        tested=target.tested,
        refuted=int(verdict.refuted.sum()),
        lost=verdict.lost,
        lowest_share=verdict.lowest_share,
        base_lost=float(1 - inside.mean()),
        accuracy=None if label is None else accuracy(prediction, label),
    )


def accuracy(prediction: NDArray[np.integer], label: NDArray[np.integer]) -> float:
    """Share of right pixels, void ones left out."""
    known = label != VOID
    return float((prediction[known] == label[known]).mean())


def within_radius(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Attacks inside R that refuted something: there must be none."""
    return [outcome for outcome in outcomes if outcome.multiple <= 1 and outcome.refuted]
