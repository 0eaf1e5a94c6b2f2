"""Many tests at once: which number of hits certifies a pixel when N pixels are tested together.

Every pixel is tested with the same n and tau, so p-values are ordered by hits and each procedure is a walk over a
histogram of n+1 counts: O(n) after the O(N) histogram, no p-value per pixel, no sort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg.stats.binomial import CountTest

Correction = Literal["bonferroni", "holm", "kfwer", "by"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)


def cutoff(
    histogram: NDArray[np.int64], test: CountTest, *, alpha: float, correction: Correction, k: int = 1
) -> int | None:
    """Least number of hits that is certified, None where no number is.

    histogram: (n+1,), how many of the N tested pixels have each number of hits.
    Promise, for any dependence between pixels: bonferroni and holm: P(any false certification) <= alpha;
    kfwer: P(k or more false) <= alpha; by: expected share of false ones among the certified <= alpha.
    """
    tested = int(histogram.sum())
    if correction == "bonferroni":
        return test.critical(alpha / tested)
    if correction == "holm":
        return _step_down(histogram, test, lambda rank: alpha / (tested - rank + 1))
    if correction == "kfwer":
        return _step_down(histogram, test, lambda rank: k * alpha / (tested + k - max(rank, k)))
    return _benjamini_yekutieli(histogram, test, alpha)


def _step_down(histogram: NDArray[np.int64], test: CountTest, level: Callable[[int], float]) -> int | None:
    """Reject in order of hits while p <= level(rank); level never decreases, so tied pixels stand or fall together."""
    tested, rejected = int(histogram.sum()), 0
    for hits in np.flatnonzero(histogram)[::-1]:
        critical = test.critical(level(rejected + 1))
        if critical is None or hits < critical:
            break
        rejected += int(histogram[hits])
    return test.critical(level(min(rejected + 1, tested)))


def _benjamini_yekutieli(histogram: NDArray[np.int64], test: CountTest, alpha: float) -> int | None:
    """Step-up: the largest r such that the r-th smallest p-value is <= r alpha / (N (1 + 1/2 + ... + 1/N))."""
    from scipy.special import digamma

    tested = int(histogram.sum())
    harmonic = float(digamma(tested + 1)) + np.euler_gamma
    per_rank = alpha / (tested * harmonic)
    reached = np.cumsum(histogram[::-1])[::-1]
    for hits in np.flatnonzero(histogram):
        critical = test.critical(int(reached[hits]) * per_rank)
        if critical is not None and hits >= critical:
            return critical
    return test.critical(per_rank)
