"""Splits of frames: sizes from bins, coverage by counting, and drives that are too few."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.stats import norm

from certiseg.truth.scores import UNIT
from experiments import truth
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


def test_attacked_frames_are_judged_by_thresholds_of_others_as_they_are() -> None:
    frames = [frame(f"a_{k}", 1000 + k, k)[0] for k in range(40)]
    lost = [replace(each, score=0) for each in frames[::4]]
    assert {split.coverage for split in random_splits(frames, 0.0, 0.1, splits=20, attacked=lost)} == {0.0}
    same = random_splits(frames, 0.0, 0.1, splits=20, attacked=frames)
    assert same == random_splits(frames, 0.0, 0.1, splits=20)


def test_few_frames_leave_much_open() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for hits, frames in ((2, 2), (35, 39), (0, 5), (110, 117)):
        known = proportion_confint(hits, frames, alpha=2 * norm.sf(2.0), method="wilson")
        assert truth.sampling_error(hits / frames, frames) == pytest.approx(known, abs=1e-12)


def test_the_page_is_written_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for split, folder, shape, high in (
        (split, *kind) for split in ("test", "val") for kind in (("images", (16, 24, 3), 256), ("labels", (16, 24), 31))
    ):
        (tmp_path / split / folder).mkdir(parents=True)
        for index in range(12):
            values = rng.integers(0, high, shape, dtype=np.uint8)
            Image.fromarray(values).save(tmp_path / split / folder / f"{'ab'[index % 2]}_{split}{index}.png")
    out = tmp_path / "truth.md"
    asked = ["--root", str(tmp_path), "--model", "torch:tests.viewer.tiny:model", "--runs", str(tmp_path / "runs")]
    asked += ["--out", str(out), "--splits", "5", "--every", "6", "--risk", "0.4", "--scores", "posterior", "vertex"]
    assert truth.main(asked) == 0
    first = out.read_text()
    assert "| posterior | 0.085 | 2 | 0.6 |" in first
    assert "| vertex | 0.169 | 2 | 0.6 |" in first
    assert "| test (12) | 0.5 | 0.169 | 1 | 0.6 |" in first
    assert "| test and val (24) | 0.5 | 0.169 | 3 | 0.6 |" in first
    monkeypatch.setattr(truth, "posterior_of", None)  # all is there: nothing is asked again
    assert truth.main(asked) == 0
    assert out.read_text() == first
