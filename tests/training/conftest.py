"""A tiny labelled data set on disk: bright discs on a dark ground below a sky."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CLASSES = ("sky", "ground", "disc")


def write_scene(folder: Path, name: str, rng: np.random.Generator, size: tuple[int, int] = (64, 80)) -> None:
    height, width = size
    rows, columns = np.mgrid[:height, :width]
    label = (rows > height * rng.uniform(0.2, 0.4)).astype(np.uint8)
    centre = rng.uniform(0.5, 0.9) * height, rng.uniform(0.2, 0.8) * width
    label[np.hypot(rows - centre[0], columns - centre[1]) < 12] = 2
    colours = np.array([[140, 170, 230], [60, 60, 60], [220, 60, 40]])
    image = np.clip(colours[label] + rng.normal(0, 10, (height, width, 3)), 0, 255).astype(np.uint8)
    label[0, :2] = 255
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(folder / "images" / f"{name}.png")
    Image.fromarray(label).save(folder / "labels" / f"{name}.png")


@pytest.fixture(scope="session")
def discs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set folder with 12 training and 4 validation images."""
    root = tmp_path_factory.mktemp("discs")
    rng = np.random.default_rng(7)
    for split, count in (("train", 12), ("val", 4)):
        for index in range(count):
            write_scene(root / split, f"{split}{index:02d}", rng)
    (root / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    return root
