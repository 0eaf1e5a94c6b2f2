"""Ranks and shares of conformal calibration against exact fractions, quadrature and brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from certiseg.stats.conformal import allowed_miss, least_units, share_score, threshold, threshold_rank


def test_the_design_s_numbers_of_images() -> None:
    assert least_units(allowed_miss(0.1, shift=0.169 / 0.25)) == 39
    assert least_units(allowed_miss(0.05, shift=0.169 / 0.25)) == 98
    assert least_units(allowed_miss(0.1)) == 9


@given(st.floats(0.001, 0.6), st.floats(0, 3), st.floats(0, 3))
def test_what_is_allowed_becomes_the_risk_under_the_worst_attack(risk: float, shift: float, growth: float) -> None:
    covered = 1 - float(allowed_miss(risk, shift=shift, growth=growth))
    left = norm.cdf(norm.ppf(1 - math.exp(growth) * (1 - covered)) - shift)
    assert left == pytest.approx(1 - risk, abs=1e-7)


def test_without_attack_nothing_is_rounded() -> None:
    assert allowed_miss(0.1) == Fraction(1, 10)
    assert threshold_rank(9, allowed_miss(0.1)) == 1  # 10 * 0.1 is not quite 1 in floating point times three
    assert [threshold_rank(29, allowed_miss(risk)) for risk in (0.1, 0.3, 0.7)] == [3, 9, 21]


@given(st.integers(1, 400), st.fractions(Fraction(1, 500), Fraction(9, 10)))
def test_the_rank_is_that_of_the_design_from_the_other_end(units: int, miss: Fraction) -> None:
    """The ceil((J + 1) b)-th largest is the m-th smallest."""
    from_the_top = math.ceil((units + 1) * (1 - miss))
    rank = threshold_rank(units, miss)
    assert (rank >= 1) == (from_the_top <= units) == (units >= (least_units(miss) or 0))
    if rank >= 1:
        scores = np.random.default_rng(units).permutation(units).astype(np.uint32)
        assert threshold(scores, miss) == sorted(scores, reverse=True)[from_the_top - 1]


def test_a_new_unit_is_missed_as_often_as_promised_and_hardly_less() -> None:
    """Every order of J + 1 different scores is equally likely: count those in which the last lies below q."""
    for units in (9, 10, 19, 57):
        miss = Fraction(1, 10)
        scores = np.arange(units + 1, dtype=np.uint32)
        missed = sum(int(new) < threshold(np.delete(scores, new), miss) for new in range(units + 1))
        assert Fraction(missed, units + 1) <= miss < Fraction(missed + 1, units + 1)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.sampled_from([0.05, 0.3, 0.5, 0.9, 0.95, 1.0]))
def test_the_score_is_the_largest_q_that_the_share_reaches(values: list[int], share: float) -> None:
    enough = Fraction(repr(share)) * len(values)
    brute = max(q for q in range(22) if sum(value >= q for value in values) >= enough)
    assert share_score(np.array(values, np.uint32), share) == brute


def test_no_attack_is_covered_by_no_miss() -> None:
    assert least_units(Fraction(0)) is None
