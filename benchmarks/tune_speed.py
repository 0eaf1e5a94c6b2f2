"""A grid of 120 threshold functions, scores included, against one certification from the same votes.

From 720x960 pixels on: a certification of a smaller image takes half a millisecond, less than finding 120 lists of
critical counts, and the ratio says nothing about the pixels any more.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import certiseg as cs
from benchmarks.certify_speed import random_votes, votes_of
from benchmarks.measure import Figure, interleaved_ratio
from certiseg.analysis.grid import PAPER_VALUES, make_grid, non_decreasing, sum_grid
from certiseg.stats.binomial import binomial_test

CASES = {
    ("cityscapes", (1024, 2048)): ("bonferroni", "holm", "kfwer", "by"),
    ("camvid", (720, 960)): ("bonferroni", "holm"),
}


def scene_votes(height: int, width: int, num_classes: int) -> cs.Votes:
    """Votes as measured on CamVid at sigma 0.25, n = 100, with 8x8 pixels alike.

    Gaps are spread evenly over (0, 1). Where they are smallest pixels are undecided, so that segcertify abstains from a
    quarter of the image.
    """
    coarse = random_votes(height // 8, width // 8, num_classes)
    rank = np.argsort(np.argsort(coarse.gap, axis=None)).reshape(coarse.gap.shape) / coarse.gap.size
    counts = coarse.counts.copy()
    sure = rank > 0.27
    counts[sure] = 0
    counts[(*np.nonzero(sure), coarse.candidate[sure])] = coarse.n
    return votes_of([coarse.candidate, rank.astype(np.float32), coarse.ranking, counts], coarse.n, block=8)


def measure(repeats: int = 15) -> list[Figure]:
    """Time of the whole grid over the time of one `certify` with adaptive and the same correction."""
    figures = []
    for (name, (height, width)), corrections in CASES.items():
        hierarchy = cs.load_hierarchy(name)
        votes = scene_votes(height, width, hierarchy.num_classes)
        label = np.where(votes.gap > 0.05, votes.candidate, 255).astype(np.uint8)
        grid = make_grid(non_decreasing(PAPER_VALUES, 3), hierarchy.num_levels)
        for correction in corrections:
            options: dict[str, Any] = {"alpha": 0.001, "correction": correction, "k": 5}
            whole = partial(sum_grid, votes, hierarchy, label, grid, binomial_test(votes.n, 0.75), **options)
            options |= {"method": "adaptive", "thresholds": (0, 0, 0.25), "tau": 0.75}
            ratio = interleaved_ratio(whole, partial(cs.certify, votes, hierarchy, **options), repeats)
            what = f"tune {height}x{width}x{hierarchy.num_classes}, {len(grid.functions)} threshold functions"
            figures.append(Figure(f"{what}, {correction}: time over one certification", ratio, 2.0, "<="))
    return figures
