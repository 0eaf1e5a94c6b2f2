"""A grid of 120 threshold functions, scores included, against one certification from the same votes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import certiseg as cs
from benchmarks.certify_speed import random_votes
from benchmarks.measure import Figure, interleaved_ratio
from certiseg.analysis.grid import PAPER_VALUES, make_grid, non_decreasing, sum_grid
from certiseg.stats.binomial import binomial_test

CASES = (
    ("cityscapes", (1024, 2048), "bonferroni"),
    ("cityscapes", (1024, 2048), "holm"),
    ("cityscapes", (1024, 2048), "kfwer"),
    ("cityscapes", (1024, 2048), "by"),
    ("camvid", (720, 960), "bonferroni"),
    ("camvid", (360, 480), "bonferroni"),
    ("camvid", (360, 480), "holm"),
    ("camvid", (360, 480), "kfwer"),
    ("pascal_context", (480, 480), "bonferroni"),
)


def scene_votes(height: int, width: int, num_classes: int) -> cs.Votes:
    """Votes as measured on CamVid at sigma 0.25, n = 100: gaps spread evenly over (0, 1), and where they are smallest
    undecided pixels, of which segcertify abstains from a quarter of the image; 8x8 pixels alike, as objects are.
    """
    coarse = random_votes(height // 8, width // 8, num_classes)
    rank = np.argsort(np.argsort(coarse.gap, axis=None)).reshape(coarse.gap.shape) / coarse.gap.size
    counts = coarse.counts.copy()
    sure = rank > 0.27
    counts[sure] = 0
    counts[(*np.nonzero(sure), coarse.candidate[sure])] = coarse.n

    def enlarged(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.repeat(8, axis=0).repeat(8, axis=1))

    maps = {"candidate": coarse.candidate, "gap": rank.astype(np.float32), "ranking": coarse.ranking, "counts": counts}
    return replace(coarse, **{name: enlarged(array) for name, array in maps.items()})


def measure(repeats: int = 9) -> list[Figure]:
    """Time of the whole grid over the time of one `certify` with adaptive and the same correction."""
    figures = []
    for name, (height, width), correction in CASES:
        hierarchy = cs.load_hierarchy(name)
        votes = scene_votes(height, width, hierarchy.num_classes)
        label = np.where(votes.gap > 0.05, votes.candidate, 255).astype(np.uint8)
        grid = make_grid(non_decreasing(PAPER_VALUES, 3), hierarchy.num_levels)
        options: dict[str, object] = {"alpha": 0.001, "correction": correction, "k": 5}
        ratio = interleaved_ratio(
            lambda v=votes, h=hierarchy, y=label, g=grid, o=options: sum_grid(
                v, h, y, g, binomial_test(v.n, 0.75), **o
            ),
            lambda v=votes, h=hierarchy, o=options: cs.certify(
                v, h, method="adaptive", thresholds=(0, 0, 0.25), tau=0.75, **o
            ),
            repeats=repeats,
        )
        what = f"tune {height}x{width}x{hierarchy.num_classes}, {len(grid.functions)} threshold functions, {correction}"
        figures.append(Figure(f"{what}: time over one certification", ratio, 2.0, "<="))
    return figures


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.value:7.3f} {figure.direction} {figure.aim:g}  {figure.name}")
