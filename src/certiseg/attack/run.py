"""An attack on one certificate: every target at every multiple of its radius."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.attack.refute import judge, refutable_misses
from certiseg.attack.search import distance, find_perturbation, perturbed_image
from certiseg.attack.targets import Target, object_targets, target_of
from certiseg.bounds import Bounds
from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.scores import score_prediction

if TYPE_CHECKING:
    from certiseg.attack.settings import AttackSettings, TargetName
    from certiseg.models.segmenter import Segmenter


@dataclass(frozen=True, eq=False)
class Victim:
    """A certificate under attack, with its image in [0, 1] and, where it is known, the ground truth."""

    name: str
    pixels: NDArray[np.float32]
    certificate: Certificate
    label: NDArray[np.integer] | None = None
    bounds: Bounds | None = None
    """Of measures of the same votes; shares of objects among them are attacked, too."""

    def accuracy(self, prediction: NDArray[np.integer]) -> float | None:
        """Of a label map, where the ground truth is known."""
        if self.label is None:
            return None
        return score_prediction(prediction, self.label, num_classes=self.certificate.hierarchy.num_classes).accuracy


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
    segmenter: Segmenter,
    victim: Victim,
    attack: AttackSettings,
    *,
    through: Segmenter | None = None,
    each: Callable[[Outcome], object] = lambda _: None,
) -> list[Outcome]:
    """The outcomes of all attacks on one certificate; `each` gets every one as soon as it is known.

    through: the torch model that gradients pass through, where the certified one is an export of it.
    """
    if victim.certificate.radius <= 0:
        raise InputError("tau must be above 0.5 to be attacked: R is 0")
    outcomes: list[Outcome] = []
    for target in _targets(victim, attack):
        refutable_misses(attack.draws_for(target.name), alpha=attack.attack_alpha, tested=target.tested)
        delta, last = None, None
        for multiple in attack.multiples:
            if last is not None and last.refuted == last.tested:
                # What refutes everything in a ball lies in every larger one, too.
                last = replace(last, multiple=multiple)
            else:
                delta, last = _attack_ball(segmenter, through or segmenter, victim, target, attack, multiple, delta)
            outcomes.append(last)
            each(last)
    return outcomes


def _targets(victim: Victim, attack: AttackSettings) -> Iterator[Target]:
    """What the settings name; objects wherever some have a bound."""
    found = object_targets(victim.bounds, attack.most_objects) if "object" in attack.targets else []
    if not found and attack.targets == ("object",):
        raise InputError(f"targets must be there to be attacked, got no object with a bound above 0 in {victim.name}")
    for name in attack.targets:
        if name == "object":
            yield from found
        else:
            yield target_of(victim.certificate, name)


def _attack_ball(
    segmenter: Segmenter,
    through: Segmenter,
    victim: Victim,
    target: Target,
    attack: AttackSettings,
    multiple: float,
    start: NDArray[np.float32] | None,
) -> tuple[NDArray[np.float32], Outcome]:
    """The perturbation found in one ball, and what fresh draws say there."""
    pixels, votes, size = victim.pixels, victim.certificate.votes, multiple * victim.certificate.radius
    sigma, seed = votes.sigma, (votes.seed or 0) + attack.attack_seed
    delta = find_perturbation(through, pixels, target, size=size, attack=attack, start=start, sigma=sigma, seed=seed)
    moved = perturbed_image(pixels, delta, size=size, noise=votes.noise)
    draws = attack.draws_for(target.name)
    verdict = judge(
        segmenter, moved, target, noise=votes.noise, draws=draws, alpha=attack.attack_alpha, sigma=sigma, seed=seed
    )
    prediction = segmenter.predict(moved)
    return delta, Outcome(
        image=victim.name,
        target=target.name,
        multiple=multiple,
        size=distance(moved, pixels),
        tested=target.tested,
        refuted=int(verdict.refuted.sum()),
        lost=verdict.lost,
        lowest_share=verdict.lowest_share,
        base_lost=float(1 - target.held(prediction).mean()),
        accuracy=victim.accuracy(prediction),
    )


def within_radius(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Attacks inside R that refuted something: there must be none."""
    return [outcome for outcome in outcomes if outcome.multiple <= 1 and outcome.refuted]
