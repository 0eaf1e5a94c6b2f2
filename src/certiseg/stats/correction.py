"""Many tests at once: which number of hits certifies a pixel when N pixels are tested together.

Every pixel is tested with the same n and tau, so p-values are ordered by hits and each procedure needs only how many
pixels have at least 0, 1, ..., n hits: O(n) after one pass over the pixels, no p-value per pixel, no sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from certiseg.stats.binomial import CountTest

Correction = Literal["bonferroni", "holm", "kfwer", "by"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
CHAIN_CORRECTIONS: tuple[Correction, ...] = ("bonferroni", "holm")
"""Those whose proof covers chains of labels: see stats/nested.py."""


def cutoff(
    histogram: NDArray[np.int64], test: CountTest, *, alpha: float, correction: Correction, k: int = 1
) -> int | None:
    """Least number of hits that is certified, None where no number is.

    histogram: (n+1,), how many of the N tested pixels have each number of hits.
    Promise, for any dependence between pixels: bonferroni and holm: P(any false certification) <= alpha;
    kfwer: P(k or more false) <= alpha; by: expected share of false ones among the certified <= alpha.
    """
    reaching = np.cumsum(histogram[::-1])[::-1].tolist()
    return cutoff_of(reaching, test.critical, alpha=alpha, correction=correction, k=k)


def cutoff_of(
    reaching: Sequence[int],
    critical_count: Callable[[float], int | None],
    *,
    alpha: float,
    correction: Correction,
    k: int,
) -> int | None:
    """`cutoff` from how many pixels have at least 0, 1, ..., n hits, and the critical count of a significance.

    Step-down (holm, kfwer) starts with no pixel rejected, step-up (by) with all. The critical count at the significance
    of that many rejections rejects other pixels, and so on until they stay as many. Significance never falls with the
    rank, so this ends where a walk from pixel to pixel would, and tied pixels stand or fall together.
    """
    tested = reaching[0]
    if correction == "bonferroni":
        return critical_count(alpha / tested)
    significance = _significances(tested, alpha, correction, k)
    rejected = tested if correction == "by" else 0
    while True:
        critical = critical_count(significance(rejected))
        now = 0 if critical is None else reaching[critical]
        if critical is None or now == rejected:
            return critical
        rejected = now


def _significances(tested: int, alpha: float, correction: Correction, k: int) -> Callable[[int], float]:
    """The significance at which the next pixel is tested after so many rejections; for by, the last of so many."""
    if correction == "by":  # r alpha / (N (1 + 1/2 + ... + 1/N)) for the r-th smallest p-value
        from scipy.special import digamma

        harmonic = float(digamma(tested + 1)) + np.euler_gamma
        return lambda rejected: max(rejected, 1) * (alpha / (tested * harmonic))
    if correction == "holm":
        return lambda rejected: alpha / max(tested - rejected, 1)
    return lambda rejected: k * alpha / (tested + k - max(min(rejected + 1, tested), k))
