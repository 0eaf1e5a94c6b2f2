"""Every deliberately broken variant exceeds its promise: the checks of this folder have teeth."""

from __future__ import annotations

import pytest

import certiseg as cs

from .broken import STOPPED_BUT_FIXED, Broken, broken_variants
from .promises import failures, measure

VARIANTS = broken_variants()
WRONG_RULES = [b for b in VARIANTS if b.certify is not cs.certify and b.name != STOPPED_BUT_FIXED]
"""The votes are right, and only what is made of them is wrong."""


@pytest.mark.parametrize("broken", VARIANTS, ids=lambda broken: broken.name)
def test_broken_variant_is_caught(broken: Broken) -> None:
    outcome = broken.measure()
    assert not outcome.holds, f"{broken.name}: {outcome.error:.4f} stays below {outcome.bound:.4f}"
    assert failures([outcome])


@pytest.mark.parametrize("broken", WRONG_RULES, ids=lambda broken: broken.name)
def test_the_right_rule_holds_on_the_same_images(broken: Broken) -> None:
    (outcome,) = measure(broken.scenario, images=200)
    assert outcome.holds
