"""How well classes fit, against statements in words, pixel by pixel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import certiseg as cs
from certiseg.errors import InputError
from certiseg.truth.scores import UNIT, fits_of, image_scores, labelled

CAMVID = cs.load_hierarchy("camvid")


def posteriors(seed: int, classes: int, size: tuple[int, int] = (7, 9)) -> NDArray[np.uint32]:
    """Posteriors with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    drawn = np.round(rng.dirichlet(np.full(classes, 0.3), size) * 16) / 16
    drawn[..., 0] += 1 - drawn.sum(-1)
    return (np.clip(drawn, 0, 1) * (UNIT // 2)).astype(np.uint32)


@pytest.mark.parametrize("q", [1, UNIT // 64, UNIT // 3, UNIT - UNIT // 20, UNIT])
def test_adaptive_sets_are_the_best_classes_until_their_sum_is_reached(q: int) -> None:
    posterior = posteriors(1, 6)
    found = fits_of(posterior, "adaptive") >= q
    for row, members in zip(posterior.reshape(-1, 6).tolist(), found.reshape(-1, 6), strict=True):
        wanted, total = set(), 0
        for c in sorted(range(6), key=lambda c: (-row[c], c)):
            if total > UNIT - q:
                break
            wanted.add(c)
            total += row[c]
        assert set(np.flatnonzero(members)) == wanted


@pytest.mark.parametrize("q", [1, UNIT // 64, UNIT // 3, UNIT - UNIT // 20, UNIT])
def test_vertex_answers_are_the_finest_vertex_on_the_path_of_the_best_class(q: int) -> None:
    classes = CAMVID.num_classes
    posterior = posteriors(2, classes)
    found = fits_of(posterior, "vertex", CAMVID) >= q
    for row, members in zip(posterior.reshape(-1, classes), found.reshape(-1, classes), strict=True):
        best = int(row.argmax())
        path = [CAMVID.leaves(CAMVID.ancestor(best, level)) for level in range(CAMVID.num_levels)]
        wanted = next((leaves for leaves in path if int(row[list(leaves)].sum()) > UNIT - q), tuple(range(classes)))
        assert tuple(np.flatnonzero(members)) == wanted


@pytest.mark.parametrize("score", ["posterior", "adaptive", "vertex"])
def test_sets_grow_as_q_falls_and_an_image_s_score_is_the_last_q_that_covers(score: str) -> None:
    posterior = posteriors(3, CAMVID.num_classes)
    label = np.random.default_rng(3).integers(0, CAMVID.num_classes, posterior.shape[:2])
    fits = fits_of(posterior, score, CAMVID)  # type: ignore[arg-type]
    truth = np.take_along_axis(fits, label[..., None], 2).ravel()
    for share, found in zip((0.3, 0.9), image_scores(truth, (0.3, 0.9)), strict=True):
        covered = [Fraction(int((truth >= q).sum()), truth.size) >= Fraction(repr(share)) for q in (found, found + 1)]
        assert covered == [True, False]


def test_labels_of_another_size_or_of_unknown_classes_are_refused() -> None:
    label = np.zeros((3, 4), np.uint8)
    label[0, 0] = 255
    assert labelled(label, (3, 4), 2, "label").sum() == 11
    with pytest.raises(InputError, match=r"label must be whole numbers of shape \(4, 3\)"):
        labelled(label, (4, 3), 2, "label")
    with pytest.raises(InputError, match=r"classes 0\.\.1 or 255 for void, got 2"):
        labelled(label + np.uint8(2) * (label == 0), (3, 4), 2, "label")
