"""Certificates of images above 4,096 and above 100,000 pixels against NumPy: blocks and threads lose no pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg.kernels import threads
from certiseg.stats.binomial import critical_count
from tests.mutation.reference import planted, tree

SIZES = [(65, 67), (260, 400), (259, 401)]
TREE = tree()
THRESHOLDS = (0.0, 0.1, 0.25)
TAU, ALPHA = 0.75, 0.05


@pytest.fixture(scope="module", params=SIZES, ids=str)
def votes(request: pytest.FixtureRequest) -> cs.Votes:
    found: cs.Votes = planted(size=request.param)
    return found


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has, large images are done in two parts."""
    monkeypatch.setattr(threads, "_cores", lambda: 2)


def hits_of(votes: cs.Votes, level: Any) -> Any:
    """Votes under K(candidate, level) at every pixel."""
    members = TREE.members[TREE.ancestors[votes.candidate, level]]
    return (votes.counts * members).sum(axis=-1, dtype=np.int64)


def critical(votes: cs.Votes) -> int:
    found = critical_count(votes.n, TAU, ALPHA / votes.candidate.size)
    assert found is not None
    return found


@pytest.mark.parametrize("method", ["segcertify", "level", "adaptive"])
def test_one_level_at_every_pixel(method: str, votes: cs.Votes) -> None:
    options = {"level": {"level": 2}, "adaptive": {"thresholds": THRESHOLDS}}.get(method, {})
    found = cs.certify(votes, TREE, method=method, tau=TAU, alpha=ALPHA, **options)
    level = np.full(votes.size, {"segcertify": 0, "level": 2}.get(method, 0))
    if method == "adaptive":
        level = sum(votes.gap <= threshold for threshold in THRESHOLDS)
    passed = hits_of(votes, level) >= critical(votes)
    assert 0.01 < passed.mean() < 0.99
    np.testing.assert_array_equal(found.level, level)
    np.testing.assert_array_equal(found.vertex, np.where(passed, TREE.ancestors[votes.candidate, level], -1))


def test_the_finest_level_that_passes(votes: cs.Votes) -> None:
    found = cs.certify(votes, TREE, method="nested", tau=TAU, alpha=ALPHA)
    expected, needed = np.full(votes.size, -1), critical(votes)
    for level in reversed(range(TREE.num_levels)):
        level_map = np.full(votes.size, level)
        expected = np.where(hits_of(votes, level_map) >= needed, TREE.ancestors[votes.candidate, level_map], expected)
    np.testing.assert_array_equal(found.vertex, expected)


def test_the_smallest_set_that_passes(votes: cs.Votes) -> None:
    found = cs.certify(votes, TREE, method="sets", tau=TAU, alpha=ALPHA)
    hits = np.take_along_axis(votes.counts, votes.ranking.astype(np.intp), axis=2).cumsum(axis=2, dtype=np.int64)
    passed = hits >= critical(votes)
    np.testing.assert_array_equal(found.set_size, np.where(passed.any(axis=2), passed.argmax(axis=2) + 1, 0))


def test_the_number_of_pixels_is_that_of_the_whole_image(votes: cs.Votes) -> None:
    found = cs.certify(votes, TREE, method="segcertify", tau=TAU, alpha=ALPHA, correction="holm")
    needed, rejected = critical(votes), 0
    hits = hits_of(votes, np.zeros(votes.size, int))
    while (now := int((hits >= needed).sum())) > rejected:
        rejected = now
        again = critical_count(votes.n, TAU, ALPHA / max(votes.candidate.size - rejected, 1))
        assert again is not None
        needed = again
    assert found.critical == needed
    np.testing.assert_array_equal(found.vertex >= 0, hits >= needed)


def test_forged_counts_at_the_last_pixel_are_noticed(votes: cs.Votes) -> None:
    counts = votes.counts.copy()
    counts[-1, -1, 0] += 1
    with pytest.raises(cs.InputError, match="counts of every pixel must add up"):
        cs.certify(cs.Votes(**{**vars(votes), "counts": counts}), TREE)
