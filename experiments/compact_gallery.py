"""What `compact` sees on test images without and under noise, as one picture of label maps (no photograph).

python -m experiments.compact_gallery --root ../shared/data/camvid --out docs/images/compact.png
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from PIL import Image

from certiseg.archive import write_atomically
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, VOID, Hierarchy, load_hierarchy
from certiseg.models.load import load_model
from certiseg.models.segmenter import as_batch
from certiseg.render.colours import colour_vertices, palette
from certiseg.render.pictures import LegendEntry, beside, comparison, legend_panel

SIGMA = 0.25
WIDTH = 320


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m experiments.compact_gallery", description=__doc__)
    parser.add_argument("--root", required=True, help="CamVid")
    parser.add_argument("--images", type=int, nargs="+", default=[3, 18, 40, 70, 100], help="numbers of test images")
    parser.add_argument("--out", required=True, help="PNG file to write")
    args = parser.parse_args(arguments)
    dataset, model, hierarchy = (
        open_dataset("camvid", args.root, split="test"),
        load_model("compact"),
        load_hierarchy("camvid"),
    )
    panels: dict[str, Image.Image] = {}
    seen: list[np.ndarray] = []
    for index in args.images:
        sample = dataset[index]
        pixels = sample.image.astype(np.float32) / np.float32(255)
        noise = np.random.default_rng(index).standard_normal(pixels.shape, np.float32) * np.float32(SIGMA)
        assert sample.label is not None
        maps = {"ground truth": np.where(sample.label == VOID, ABSTAIN, sample.label.astype(np.int64))}
        for sigma, image in ((0, pixels), (SIGMA, pixels + noise)):
            maps[f"compact, sigma = {sigma:g}"] = model(as_batch(image[None])).labels()[0].astype(np.int64)
        for title, labels in maps.items():
            panels[f"{sample.name}: {title}"] = _small(labels, hierarchy)
            seen.append(labels)
    grid = comparison(panels, columns=3)
    key = legend_panel(_legend(seen, hierarchy), height=grid.height, width=200)
    with write_atomically(args.out) as file:
        beside([grid, key], gap=12).save(file, "PNG", optimize=True)
    return 0


def _small(labels: np.ndarray, hierarchy: Hierarchy) -> Image.Image:
    picture = Image.fromarray(colour_vertices(labels, hierarchy))
    return picture.resize((WIDTH, round(WIDTH * picture.height / picture.width)), Image.Resampling.NEAREST)


def _legend(maps: Sequence[np.ndarray], hierarchy: Hierarchy) -> list[LegendEntry]:
    """The classes in the maps, the most frequent first."""
    found = np.concatenate([labels[labels >= 0] for labels in maps])
    counts = np.bincount(found, minlength=hierarchy.num_classes)
    order = [int(index) for index in np.argsort(-counts) if counts[index] > 0]
    colours = palette(hierarchy)
    return [
        LegendEntry(tuple(int(c) for c in colours[index]), hierarchy.vertices[index], counts[index] / counts.sum())
        for index in order
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
