"""The page of objects: written from a run over small data, and the same when all was drawn before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from experiments import object_results

MODEL = "torch:tests.viewer.tiny:model"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two test images in the layout of CamVid, each with a car."""
    rng = np.random.default_rng(0)
    for folder in ("images", "labels"):
        (tmp_path / "test" / folder).mkdir(parents=True)
    for index in range(2):
        Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(tmp_path / f"test/images/{index}.png")
        label = np.full((40, 60), 17, np.uint8)
        label[20:34, 10:30] = 20  # Car
        Image.fromarray(label).save(tmp_path / f"test/labels/{index}.png")
    return tmp_path


def test_the_page_has_every_table_and_is_resumed(root: Path) -> None:
    out = root / "docs" / "measures-results.md"
    asked = ["--root", str(root), "--runs", str(root / "runs"), "--out", str(out), "--model", MODEL]
    asked += ["--every", "1", "-n", "60"]
    assert object_results.main(asked) == 0
    first = out.read_text()
    assert "2 test images of CamVid" in first
    assert "Certified recall" in first
    assert "Certified precision" in first
    assert "| pixels that keep their class | 2 |" in first
    assert "| vehicle | below 400 | 2 |" in first
    for name in ("objects-recall", "objects-bounds"):
        assert f"images/{name}.png" in first
        assert (out.parent / "images" / f"{name}.png").is_file()
    assert object_results.main(asked) == 0
    assert out.read_text() == first
