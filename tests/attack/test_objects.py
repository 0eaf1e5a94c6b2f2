"""An attack on an object lowers its share: within R no bound is refuted, far beyond R the attack succeeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import certiseg as cs
from certiseg import measures
from certiseg.attack.refute import refutable_misses
from certiseg.attack.run import Victim, attack_certificate
from certiseg.attack.search import find_perturbation, perturbed_image
from certiseg.attack.settings import AttackSettings
from certiseg.attack.targets import Target, object_targets
from certiseg.images import read_image
from tests.attack.small import SIDE, SIGMA, certificate, picture, red_model

ATTACK = AttackSettings(steps=12, restarts=2)
DRAWS, ALPHA = 60, 0.001


@pytest.fixture(scope="module")
def bounds() -> cs.Bounds:
    """Three objects: a strip at the edge of what is red, one well inside, and all that is red in the candidate map."""
    masks = [np.zeros((SIDE, SIDE), bool) for _ in range(2)]
    masks[0][4:8, 6:8], masks[1][9:12, 1:4] = True, True
    asked = [*(measures.share(mask, 1) for mask in masks), measures.objects(1, least=20)]
    found = cs.bound(cs.sample(red_model(), picture(), sigma=SIGMA, n=120, measures=asked), alpha=0.01)
    assert (found.lower[:3] > 0).all()
    return found


def refuted(bounds: cs.Bounds, index: int, size: float) -> bool:
    """Whether fresh draws at the attacked image leave no room for "more than half reach the bound"."""
    measure, pixels = bounds.measures[index], read_image(picture())
    target = Target("patch", measure.inside.mask, np.broadcast_to(measure.members, (SIDE, SIDE, 3)).copy())
    search = {"size": size, "sigma": SIGMA, "attack": ATTACK, "seed": 7}
    delta = find_perturbation(red_model(), pixels, target, **search)  # type: ignore[arg-type]
    moved = perturbed_image(pixels, delta, size=size, noise="gaussian")
    assert np.linalg.norm((moved - pixels).astype(np.float64)) <= size
    again = cs.sample(red_model(), moved, sigma=SIGMA, n0=1, n=DRAWS, seed=8, measures=[measure])
    misses = int((again.values[:, 0] < bounds.lower[index]).sum())
    return misses >= refutable_misses(DRAWS, alpha=ALPHA, tested=len(bounds.lower))


@pytest.mark.parametrize("index", range(3))
def test_no_object_is_refuted_within_the_radius(bounds: cs.Bounds, index: int) -> None:
    assert bounds.measures[index].kind == "share"
    assert not refuted(bounds, index, bounds.radius)


@pytest.mark.parametrize("index", range(3))
def test_every_object_falls_far_beyond_it(bounds: cs.Bounds, index: int) -> None:
    assert refuted(bounds, index, 64 * bounds.radius)


def test_objects_are_attacked_beside_the_pixels_weakest_first(bounds: cs.Bounds) -> None:
    victim = Victim("red", read_image(picture()), certificate(), bounds=bounds)
    asked = AttackSettings(multiples=(1, 64), targets=("object",), steps=12, restarts=1, most_objects=2, few_draws=60)
    found = attack_certificate(red_model(), victim, asked)
    assert [(o.target, o.multiple, o.tested, o.refuted) for o in found] == [
        ("object", 1, 1, 0),
        ("object", 64, 1, 1),
    ] * 2
    lowest = [target.bound[1] for target in object_targets(bounds, 2) if target.bound is not None]
    shares = [low for low, m in zip(bounds.lower, bounds.measures, strict=True) if m.kind == "share"]
    assert lowest == sorted(shares)[:2]


def test_where_no_object_has_a_bound_none_can_be_attacked() -> None:
    victim = Victim("red", read_image(picture()), certificate())
    with pytest.raises(cs.InputError, match="got no object with a bound above 0 in red"):
        attack_certificate(red_model(), victim, AttackSettings(targets=("object",)))


def test_a_bound_that_does_not_hold_is_refuted(bounds: cs.Bounds) -> None:
    """At a bound of one, which hardly any draw reaches, fresh draws refute inside R."""
    false = replace(bounds, lower=np.where(bounds.lower > 0, 1.0, 0.0))
    victim = Victim("red", read_image(picture()), certificate(), bounds=false)
    asked = AttackSettings(multiples=(1,), targets=("object",), steps=2, restarts=1, most_objects=9)
    assert any(outcome.refuted for outcome in attack_certificate(red_model(), victim, asked))
