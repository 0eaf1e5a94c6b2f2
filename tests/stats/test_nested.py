"""The chain procedure against the words of the design, link by link and pixel by pixel."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test
from certiseg.stats.nested import finest_links


@st.composite
def chains(draw: st.DrawFn) -> tuple[int, np.ndarray]:
    """n and hits (links, N) that grow along the links."""
    n, links = draw(st.integers(1, 30)), draw(st.integers(1, 5))
    pixels = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    hits = np.sort(rng.choice([*range(n + 1), n, n, n], (links, pixels)), axis=0)
    return n, hits.astype(np.uint16)


def least_count(n: int, tau: float, level: float) -> int:
    """crit in exact arithmetic; n + 1 where nothing is enough."""
    t = Fraction(tau)
    for k in range(n + 1):
        if sum(comb(n, j) * t**j * (1 - t) ** (n - j) for j in range(k, n + 1)) <= Fraction(level):
            return k
    return n + 1


def by_the_words(n: int, hits: np.ndarray, tau: float, alpha: float, *, holm: bool) -> list[int]:
    """Test every level of every pixel at a = alpha/N, keep the finest; with holm a = alpha/(N-m), until m rests."""
    links, total = hits.shape
    rejected_at_0 = 0
    while True:
        needed = least_count(n, tau, alpha / (total - rejected_at_0))
        again = sum(int(h) >= needed for h in hits[0])
        if not holm or again <= rejected_at_0 or again == total:
            break
        rejected_at_0 = again
    return [next((link for link in range(links) if hits[link, i] >= needed), links) for i in range(total)]


@given(chains(), st.sampled_from([0.5, 0.75, 0.9]), st.sampled_from([0.5, 0.25, 0.05, 0.3]), st.booleans())
def test_finest_links_follow_the_design(case: tuple[int, np.ndarray], tau: float, alpha: float, holm: bool) -> None:
    n, hits = case
    found = finest_links(hits, binomial_test(n, tau), alpha=alpha, correction="holm" if holm else "bonferroni")
    assert found.link.tolist() == by_the_words(n, hits, tau, alpha, holm=holm)


@given(chains(), st.sampled_from([0.5, 0.75]), st.sampled_from([0.5, 0.05]), st.sampled_from(["bonferroni", "holm"]))
def test_coarser_links_cost_nothing(case: tuple[int, np.ndarray], tau: float, alpha: float, correction: str) -> None:
    n, hits = case
    for make in (binomial_test, anytime_test):
        whole = finest_links(hits, make(n, tau), alpha=alpha, correction=correction)
        for links in range(1, len(hits)):
            part = finest_links(hits[:links], make(n, tau), alpha=alpha, correction=correction)
            assert part.critical == whole.critical
            np.testing.assert_array_equal(np.minimum(whole.link, links), part.link)


@given(chains(), st.sampled_from([0.5, 0.75]), st.sampled_from([0.5, 0.05]))
def test_holm_certifies_at_least_as_fine_a_link_as_bonferroni(
    case: tuple[int, np.ndarray], tau: float, alpha: float
) -> None:
    n, hits = case
    for make in (binomial_test, anytime_test):
        bonferroni = finest_links(hits, make(n, tau), alpha=alpha, correction="bonferroni")
        holm = finest_links(hits, make(n, tau), alpha=alpha, correction="holm")
        assert (holm.link <= bonferroni.link).all()


def test_holm_gains_only_by_pixels_rejected_at_the_finest_link() -> None:
    # alpha / 2 = 1/8 needs 3 of 3; once the first pixel is rejected at link 0, alpha / 1 = 1/4 still needs 3, but
    # at alpha = 1/2 it becomes 1/2 and 2 of 3 are enough.
    fine = np.array([[3, 0], [3, 2]], np.uint16)
    coarse = np.array([[2, 0], [3, 2]], np.uint16)
    test = binomial_test(3, 0.5)
    assert finest_links(fine, test, alpha=0.5, correction="holm").link.tolist() == [0, 1]
    assert finest_links(fine, test, alpha=0.5, correction="bonferroni").link.tolist() == [0, 2]
    assert finest_links(coarse, test, alpha=0.5, correction="holm").link.tolist() == [1, 2]


@pytest.mark.parametrize("correction", ["kfwer", "by"])
def test_corrections_without_a_proof_for_chains_are_refused(correction: str) -> None:
    hits = np.array([[3], [4]], np.uint16)
    with pytest.raises(cs.InputError, match="correction must be bonferroni or holm"):
        finest_links(hits, binomial_test(5, 0.75), alpha=0.1, correction=correction)
    assert finest_links(hits[:1], binomial_test(5, 0.75), alpha=0.1, correction=correction).link.shape == (1,)


def test_hits_above_n_are_refused() -> None:
    with pytest.raises(cs.InputError, match="hits must be at most n = 5"):
        finest_links(np.array([[6]], np.uint16), binomial_test(5, 0.75), alpha=0.1, correction="holm")
    with pytest.raises(cs.InputError, match="hits must be at most n = 5"):
        finest_links(np.array([[2], [6]], np.uint16), binomial_test(5, 0.75), alpha=0.1, correction="holm")


def test_nothing_certifiable_leaves_every_pixel_without_a_link() -> None:
    found = finest_links(np.full((3, 50), 4, np.uint16), binomial_test(4, 0.75), alpha=0.01, correction="holm")
    assert found.critical is None
    assert (found.link == 3).all()
