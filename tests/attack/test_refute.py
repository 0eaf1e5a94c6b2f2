"""Refutation: Clopper and Pearson's bound, fresh noise, none within R, and some where the promise ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

import certiseg as cs
from certiseg.attack.refute import judge, refutable_misses
from certiseg.attack.report import page, rows_of, table_lines, verdict
from certiseg.attack.run import Outcome, Victim, attack_certificate, within_radius
from certiseg.attack.settings import AttackSettings
from certiseg.attack.targets import target_of
from certiseg.images import read_image

from .small import SIDE, SIGMA, certificate, picture, red_model, share

TINY = AttackSettings(multiples=(1, 4, 16), steps=8, restarts=2, samples=1, judges=2, draws=60)


@pytest.mark.parametrize(("draws", "tested"), [(40, 1), (40, 256), (100, 172_800), (64, 172_800)])
def test_misses_that_refute_are_those_whose_upper_bound_is_below_one_half(draws: int, tested: int) -> None:
    misses = refutable_misses(draws, alpha=0.001, tested=tested)
    hits = np.arange(draws)
    upper = beta.ppf(1 - 0.001 / tested, hits + 1, draws - hits)
    assert draws - misses == hits[upper < 0.5].max()


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(cs.InputError, match="draws must be enough to refute"):
        refutable_misses(20, alpha=0.001, tested=172_800)


def test_shares_at_a_perturbed_image_are_the_known_ones() -> None:
    made = certificate()
    pixels = read_image(picture())
    moved = pixels - np.float32(0.2) * np.array([1, 0, 0], np.float32)
    target = target_of(made, "all")
    verdict_ = judge(red_model(), moved, target, sigma=SIGMA, noise="gaussian", draws=400, alpha=0.001, seed=1)
    for hits, red, ones in zip(
        verdict_.hits, moved[..., 0][target.pixels], target.allowed[target.pixels][:, 1], strict=True
    ):
        expected = share(float(red)) if ones else 1 - share(float(red))
        assert abs(hits / 400 - expected) < 5 * np.sqrt(expected * (1 - expected) / 400) + 0.01
    np.testing.assert_array_equal(
        verdict_.refuted, 400 - verdict_.hits >= refutable_misses(400, alpha=0.001, tested=target.tested)
    )


def test_another_seed_gives_other_draws() -> None:
    target, pixels = target_of(certificate(), "all"), read_image(picture())
    options = {"sigma": SIGMA, "noise": "gaussian", "draws": 60, "alpha": 0.5}
    first, again, other = (judge(red_model(), pixels, target, **options, seed=seed) for seed in (1, 1, 2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(first.hits, again.hits)
    assert not np.array_equal(first.hits, other.hits)


@pytest.mark.parametrize(
    ("noise", "method"), [("gaussian", "segcertify"), ("grid", "segcertify"), ("gaussian", "sets")]
)
def test_nothing_is_refuted_within_the_radius_and_much_beyond(noise: str, method: str) -> None:
    label = np.zeros((SIDE, SIDE), np.uint8)
    victim = Victim("red", read_image(picture()), certificate(noise, method), label)
    outcomes = attack_certificate(red_model(), victim, TINY)
    assert not within_radius(outcomes)
    assert {(o.target, o.multiple) for o in outcomes} == {
        (target, multiple) for target in ("all", "pixel", "patch") for multiple in TINY.multiples
    }
    by_name = {(o.target, o.multiple): o for o in outcomes}
    if method == "segcertify":
        assert by_name["pixel", 4].refuted == by_name["pixel", 16].refuted == 1
        assert by_name["all", 16].refuted > 3
        assert by_name["all", 1].lowest_share > 0.5
    assert all(o.size <= o.multiple * certificate(noise, method).radius for o in outcomes)


def test_certificates_that_promise_too_much_are_refuted() -> None:
    """The attack has teeth: the same labels with four times the radius do not hold within it."""
    made = certificate()
    wrong = replace(made, radius=4 * made.radius)
    outcomes = attack_certificate(
        red_model(), Victim("red", read_image(picture()), wrong), replace(TINY, multiples=(1,))
    )
    assert within_radius(outcomes)
    assert "refuted within R**" in verdict(outcomes)


def test_the_page_says_what_was_refuted_and_what_not() -> None:
    common = {"image": "a", "lost": 0.25, "lowest_share": 0.1, "base_lost": 0.5, "accuracy": 0.75}
    outcomes = [
        Outcome(target="all", multiple=1, size=0.1, tested=100, refuted=0, **common),  # type: ignore[arg-type]
        Outcome(target="all", multiple=2, size=0.2, tested=100, refuted=40, **common),  # type: ignore[arg-type]
        Outcome(target="all", multiple=2, size=0.2, tested=300, refuted=0, **{**common, "image": "b"}),  # type: ignore[arg-type]
    ]
    assert rows_of(outcomes)[1] | {"size": 0.2} == {
        "target": "all",
        "multiple": 2,
        "attacks": 2,
        "attacks_that_refuted": 1,
        "size": 0.2,
        "tested": 400,
        "refuted": 40,
        "lost": 0.25,
        "lowest_share": 0.1,
        "base_lost": 0.5,
        "accuracy": 0.75,
    }
    assert "| all | 2 R | 0.200 | 1 of 2 | 40 of 400 (10.00%) |" in "\n".join(table_lines(outcomes))
    text = page(outcomes, TINY, certificate(), clean=[0.875, None], minutes=2)
    assert "2 images, method segcertify, sigma = 0.25" in text
    assert "Without any perturbation the accuracy is 0.875." in text
    assert "None of 100 attacked certificates was refuted within R" in text
    assert "1 of 2 attacks refuted at least one" in text
    assert "{" not in text


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in (
        {"multiples": ()},
        {"multiples": (2, 1)},
        {"attack_alpha": 0.0},
        {"attack_seed": 0},
        {"targets": ("edge",)},
    ):
        with pytest.raises(cs.InputError, match="must"):
            AttackSettings(**wrong)  # type: ignore[arg-type]
    made = certificate()
    flat = cs.certify(made.votes, method="segcertify", tau=0.5, alpha=0.01)
    with pytest.raises(cs.InputError, match=r"tau must be above 0\.5"):
        attack_certificate(red_model(), Victim("red", read_image(picture()), flat), TINY)
