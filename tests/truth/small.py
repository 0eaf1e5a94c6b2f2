"""A small network, labelled pictures that are drawn alike, and brute-force statements of the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import certiseg as cs

CLASSES = ("sky", "tree", "road", "car")
TREE = cs.flat_hierarchy(CLASSES)
SIZE = (12, 16)


def network(*, seed: int = 0, sharp: float = 6.0) -> cs.Segmenter:
    """Class scores from the colour around a pixel."""
    torch.manual_seed(seed)
    layer = torch.nn.Conv2d(3, len(CLASSES), 3, padding=1)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[:, :, :, :] = sharp / 9 * torch.tensor(COLOURS - 0.5)[:, :, None, None]
        layer.weight += 0.01 * torch.randn_like(layer.weight)
        layer.bias.zero_()
    return cs.Segmenter(layer, class_names=CLASSES, name="small")


COLOURS = np.array([[0.2, 0.4, 0.9], [0.1, 0.8, 0.2], [0.5, 0.5, 0.5], [0.9, 0.1, 0.1]], np.float32)


def scene(seed: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """A picture of four classes in bands of random width, some void, and its labels."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, SIZE[1] + 6, 3))
    label = np.searchsorted(edges, np.arange(SIZE[1]), side="right")[None].repeat(SIZE[0], 0).astype(np.uint8)
    image = COLOURS[label] + rng.normal(0, 0.15, (*SIZE, 3))
    label[rng.random(SIZE) < 0.1] = 255
    return image.clip(0, 1).astype(np.float32), label


def scenes(count: int, first: int = 0) -> tuple[list[NDArray[np.float32]], list[NDArray[np.uint8]]]:
    pairs = [scene(seed) for seed in range(first, first + count)]
    return [image for image, _ in pairs], [label for _, label in pairs]


def write_pictures(root: Path, images: list[np.ndarray], labels: list[np.ndarray]) -> Path:
    """A data set of the kind `folder`."""
    root.mkdir(exist_ok=True)
    (root / "classes.txt").write_text("\n".join(CLASSES))
    for kind, arrays in (("images", images), ("labels", labels)):
        (root / kind).mkdir()
        for number, array in enumerate(arrays):
            levels = (array * 255).round().astype(np.uint8) if kind == "images" else array
            Image.fromarray(levels).save(root / kind / f"{number:02}.png")
    return root
