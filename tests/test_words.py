"""Numbers of a promise are never rounded up, and each correction is worded as what it is."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certiseg.words import agreement_words, confidence, promise_for, rounded_down


@given(st.floats(0, 1e3), st.integers(0, 6))
def test_rounded_numbers_are_never_above(value: float, digits: int) -> None:
    shown = Fraction(rounded_down(value, digits))
    assert shown <= Fraction(value)
    assert Fraction(value) - shown < Fraction(1, 10**digits)


def test_a_radius_is_rounded_down() -> None:
    assert rounded_down(0.222582, 4) == "0.2225"
    assert rounded_down(0.16862243754902, 4) == "0.1686"


@pytest.mark.parametrize(
    ("alpha", "shown"), [(0.001, "0.999"), (1e-7, "0.9999999"), (0.05, "0.95"), (1e-12, "0.999999999999"), (0.5, "0.5")]
)
def test_a_probability_below_one_is_never_one(alpha: float, shown: str) -> None:
    assert confidence(alpha) == shown


def test_what_each_correction_promises() -> None:
    same = {"alpha": 0.2, "k": 5}
    assert promise_for("bonferroni", **same) == "guaranteed per image with probability 0.8"
    assert promise_for("holm", **same) == promise_for("bonferroni", **same)
    assert promise_for("kfwer", **same) == "fewer than 5 false ones per image with probability 0.8"
    assert promise_for("by", **same) == "expected share of false ones among the certified at most 0.2 per image"
    assert promise_for("kfwer", **same, images=7) == (
        "fewer than 5 false ones per image, for all 7 images at once, with probability 0.8"
    )
    assert promise_for("holm", **same, images=7) == "guaranteed for all 7 images at once with probability 0.8"
    assert "probability" not in promise_for("by", **same)


def test_low_agreement_is_a_warning() -> None:
    assert "WARNING" not in agreement_words(0.97)
    assert "97.0 %" in agreement_words(0.97)
    assert "WARNING" in agreement_words(0.41)
    assert "not known" in agreement_words(None)
