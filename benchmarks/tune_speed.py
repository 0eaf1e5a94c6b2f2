"""A grid of 120 threshold functions, scores included, against one certification from the same votes."""

from __future__ import annotations

import numpy as np

import certiseg as cs
from benchmarks.certify_speed import random_votes
from benchmarks.measure import Figure, interleaved_ratio
from certiseg.analysis.grid import PAPER_VALUES, make_grid, non_decreasing, sum_grid
from certiseg.stats.binomial import binomial_test

SIZES = {"cityscapes": (1024, 2048), "camvid": (360, 480)}


def measure(repeats: int = 7) -> list[Figure]:
    """Time of the whole grid over the time of one `certify`, adaptive, with each correction."""
    figures = []
    for name, (height, width) in SIZES.items():
        hierarchy = cs.load_hierarchy(name)
        votes = random_votes(height, width, hierarchy.num_classes)
        label = np.where(votes.gap > 0.05, votes.candidate, 255)
        grid = make_grid(non_decreasing(PAPER_VALUES, 3), hierarchy.num_levels)
        for correction in ("bonferroni", "holm", "kfwer", "by"):
            ratio = interleaved_ratio(
                lambda c=correction: sum_grid(
                    votes, hierarchy, label, grid, binomial_test(votes.n, 0.75), alpha=0.001, correction=c, k=5
                ),
                lambda c=correction: cs.certify(
                    votes, hierarchy, method="adaptive", thresholds=(0, 0, 0.25), correction=c, k=5
                ),
                repeats=repeats,
            )
            what = f"tune: {len(grid.functions)} threshold functions, {height}x{width}, {correction}"
            figures.append(Figure(f"{what}, over one certification", ratio, 2.0, "<="))
    return figures


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.value:7.3f} {figure.direction} {figure.aim:g}  {figure.name}")
