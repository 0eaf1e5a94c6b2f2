"""Measures whose words say more than they read: drawing again must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import measures
from certiseg.archive import read_archive, write_archive
from certiseg.measures.measure import Measure
from certiseg.verify import BOUNDS_VERSION

PICTURE = np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8)
ASKED = [
    measures.kept(),
    measures.kept(level=1),
    measures.accuracy(np.zeros((64, 64), np.int64)),
    measures.area("Tree"),
]
DRAWN: dict[str, Any] = {"sigma": 0.25, "n0": 5, "n": 30, "seed": 0, "hierarchy": cs.load_hierarchy("camvid")}

FORGED: dict[str, Callable[[Measure], Measure]] = {
    "right whatever is said": lambda kept: replace(kept, table=np.ones_like(kept.table)),
    "given, not selected": lambda kept: replace(kept, table=np.ones_like(kept.table), source="given"),
    "a coarser level under finer words": lambda kept: replace(kept, level=1, table=np.ones_like(kept.table)),
    "accuracy that is always 1": lambda accuracy: replace(accuracy, table=np.ones_like(accuracy.table)),
    "a label that is none": lambda area: replace(area, label="Tree ", members=np.ones_like(area.members)),
}
OF = dict(zip(FORGED, (0, 0, 0, 2, 3), strict=True))


@pytest.fixture(scope="module")
def model() -> cs.Segmenter:
    return cs.load_model("compact")


@pytest.fixture(scope="module")
def honest(model: cs.Segmenter) -> cs.Votes:
    return cs.sample(model, PICTURE, measures=ASKED, **DRAWN)


def failed(path: Path, model: cs.Segmenter) -> list[str]:
    return [check.name for check in cs.verify(path, model=model, image=PICTURE).checks if not check.passed]


def test_honest_measures_pass(honest: cs.Votes, model: cs.Segmenter, tmp_path: Path) -> None:
    cs.bound(honest, tau=0.6, alpha=0.1).save(tmp_path / "bounds.npz")
    assert failed(tmp_path / "bounds.npz", model) == []


@pytest.mark.parametrize("name", FORGED)
def test_a_measure_that_says_more_than_it_reads_is_found(
    name: str, honest: cs.Votes, model: cs.Segmenter, tmp_path: Path
) -> None:
    forged = FORGED[name](honest.measures[OF[name]])
    votes = cs.sample(model, PICTURE, measures=[forged], **DRAWN)
    cs.bound(votes, tau=0.6, alpha=0.1).save(tmp_path / "bounds.npz")
    assert failed(tmp_path / "bounds.npz", model) == ["regions"]


def test_the_deviation_of_the_noise_follows_from_sigma(honest: cs.Votes, tmp_path: Path) -> None:
    path = tmp_path / "bounds.npz"
    cs.bound(honest, tau=0.6, alpha=0.1).save(path)
    stored = read_archive(path, kind="bounds", version=BOUNDS_VERSION)
    stored.meta["draws"]["deviation"] = 2.5
    write_archive(path, kind="bounds", version=BOUNDS_VERSION, meta=stored.meta, arrays=stored.arrays)
    outcome = cs.verify(path)
    assert not outcome.passed
    assert "the noise has the deviation 0.25, not 2.5" in outcome.checks[-1].detail
