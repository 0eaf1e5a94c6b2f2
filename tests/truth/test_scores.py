"""How well classes fit, against statements in words, pixel by pixel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import certiseg as cs
from certiseg.errors import InputError
from certiseg.kernels.scores import interpolation
from certiseg.truth.draw import posterior_of
from certiseg.truth.scores import UNIT, Fits, fits_of, image_scores, labelled

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


def bilinear(coarse: NDArray[np.uint32], size: tuple[int, int]) -> NDArray[np.uint32]:
    """Enlarged as torch does it with align_corners=False, in 64 bits, and rounded."""
    tensor = torch.from_numpy(coarse.astype(np.float64)).permute(2, 0, 1)[None]
    found = torch.nn.functional.interpolate(tensor, size=size, mode="bilinear", align_corners=False)
    return np.floor(found[0].permute(1, 2, 0).numpy() + 0.5).astype(np.uint32)


@given(
    own=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    size=st.tuples(st.integers(1, 23), st.integers(1, 23)),
    classes=st.integers(2, 20),
    seed=st.integers(0, 1000),
)
def test_sets_and_scores_of_coarse_posteriors_are_those_of_the_enlarged_ones(
    own: tuple[int, int], size: tuple[int, int], classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    coarse = posteriors(seed, classes, own)
    fits = Fits(size, ((np.s_[0 : size[0], 0 : size[1]], coarse, interpolation(own, size, size, align_corners=False)),))
    fine = fits.everywhere()
    # The weights of the two differ by 32-bit rounding.
    assert np.abs(fine.astype(np.int64) - bilinear(coarse, size)).max() <= UNIT // 2**21
    least = rng.choice(np.concatenate([coarse.ravel(), fine.ravel()]), classes)
    assert np.array_equal(fits.sets(least), np.packbits(fine >= least, axis=2))
    label = rng.integers(0, classes, size)
    known = rng.random(size) < 0.7
    assert np.array_equal(fits.of_truth(label, known), np.take_along_axis(fine, label[..., None], 2)[..., 0][known])


@pytest.mark.parametrize("scores", ["logits", "probabilities", "labels"])
def test_posteriors_of_a_pass_are_those_of_its_tiles_enlarged(scores: str) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)

    def model(images: torch.Tensor) -> torch.Tensor:
        pooled = torch.nn.functional.avg_pool2d(images, 4, ceil_mode=True)
        return {"labels": pooled.argmax(1), "probabilities": (9 * pooled).softmax(1), "logits": 9 * pooled}[scores]

    image = rng.random((22, 31, 3), np.float32)
    for window in (None, (16, 16)):
        segmenter = cs.Segmenter(model, scores=scores, num_classes=3, window=window)
        found = posterior_of(segmenter, image, temperature=1.0)
        assert len(found.parts) == (1 if window is None else 6)
        fine = found.everywhere().astype(np.int64)
        assert fine.shape == (22, 31, 3)
        assert np.abs(fine.sum(2) - UNIT).max() <= UNIT // 2**20, "posteriors add up to one, in 32 bits"
        direct = segmenter(torch.from_numpy(image).permute(2, 0, 1)[None])
        top, second = np.sort(fine, 2)[..., ::-1][..., :2].transpose(2, 0, 1)
        sure = top - second > UNIT // 5
        assert sure.mean() > 0.1
        assert np.array_equal(fine.argmax(2)[sure], direct.labels()[0][sure])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
@pytest.mark.parametrize("score", ["posterior", "adaptive", "vertex"])
def test_void_pixels_of_any_type_are_left_alone(score: str, dtype: type[np.generic]) -> None:
    size, own = (13, 17), (4, 5)
    places = interpolation(own, size, size, align_corners=False)
    posterior = Fits(size, ((np.s_[0:13, 0:17], posteriors(5, CAMVID.num_classes, own), places),))
    label = np.random.default_rng(5).integers(0, CAMVID.num_classes, size).astype(dtype)
    label[::3] = 255
    fits = posterior.scored(score, CAMVID)  # type: ignore[arg-type]
    fine = fits.everywhere()
    wanted = [int(fine[i, j, label[i, j]]) for i, j in np.argwhere(label != 255)]
    assert fits.of_truth(label, label != 255).tolist() == wanted
