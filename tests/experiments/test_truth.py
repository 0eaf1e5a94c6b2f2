"""Splits of frames: sizes from bins, coverage by counting, and drives that are too few."""

from __future__ import annotations

import numpy as np

from certiseg.truth.scores import UNIT
from experiments.truth import BINS, Frame, bins_of, random_splits, reached


def frame(name: str, score: int, seed: int) -> tuple[Frame, np.ndarray]:
    fits = np.random.default_rng(seed).integers(0, UNIT, 500 * 4)
    return Frame(name, score, np.bincount(bins_of(fits), minlength=BINS), 500), fits


def test_sizes_are_told_from_above_and_nearly_right() -> None:
    made, fits = frame("a_1", 5, 0)
    for q in (1, 1000, UNIT // 7, UNIT // 2):
        exact = (fits >= q).sum() / 500
        assert exact <= made.mean_size(q) <= exact + 0.02


def test_a_split_covers_the_frames_that_score_enough() -> None:
    frames = [frame(f"{'ab'[k % 2]}_{k}", k, k)[0] for k in range(20)]
    found = reached(frames[:10], frames[10:], 0.0, 0.1)
    assert found is not None
    assert found.coverage == 1
    assert reached(frames[10:], frames[:10], 0.0, 0.1).coverage == 0  # type: ignore[union-attr]
    assert reached(frames, frames, 0.169, 0.1) is None
    assert {frame.drive for frame in frames} == {"a", "b"}
    covered = [split.coverage for split in random_splits(frames, 0.0, 0.1, splits=400)]
    assert 0.87 < np.mean(covered) < 0.97
