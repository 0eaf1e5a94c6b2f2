"""Chains of growing label sets: the one procedure behind every method, `nested` and `sets` above all.

A pixel has a chain of label sets S_0 within S_1 within ..., fixed by the selection draws (n0), and hits[l] counts
its estimation draws (n) that fall into S_l. The null hypotheses "share of S_l <= tau" are nested: if one is true, all
finer ones are. So every link of every pixel may be tested at the same critical count and the finest rejected link
kept, and the number of links costs no alpha.

Why: let T be the pixels with a true null and k_i the coarsest true link of pixel i in T. A false rejection at a finer
link implies one at k_i, because hits only grow along the chain. With bonferroni the union bound over T does the rest.
With holm, before the first false rejection no pixel of T is rejected at link 0, so the m pixels rejected there number
at most N - |T|, the level is a = alpha / (N - m) <= alpha / |T|, and the union bound gives alpha again. The other
corrections have no such argument for more than one link and are refused.

A chain with one link is an ordinary single test per pixel, and takes every correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.kernels.counts import histogram
from certiseg.stats.correction import CHAIN_CORRECTIONS, Correction, cutoff

if TYPE_CHECKING:
    from certiseg.stats.binomial import CountTest


@dataclass(frozen=True)
class FinestLinks:
    """What a chain test decided."""

    link: NDArray[np.uint8]
    """(N,): the finest certified link of each pixel, the number of links where none is."""
    critical: int | None
    """Hits that were needed, at every link."""


def finest_links(
    hits: NDArray[np.uint16], test: CountTest, *, alpha: float, correction: Correction, k: int = 1
) -> FinestLinks:
    """The finest link of each pixel whose share exceeds tau.

    hits: (links, N), non-decreasing along the first axis, from draws independent of the choice of the chains.
    With probability >= 1 - alpha no pixel is given a link whose share is <= tau (see `correction.cutoff` for what
    kfwer and by promise instead).
    """
    if len(hits) > 1 and correction not in CHAIN_CORRECTIONS:
        raise InputError(f"correction must be bonferroni or holm for a chain of label sets, got {correction!r}")
    if hits[-1].max() > test.n:
        raise InputError(f"hits must be at most n = {test.n}, got {int(hits[-1].max())}")
    of_hits = histogram(hits[0], test.n)
    critical = cutoff(of_hits, test, alpha=alpha, correction=correction, k=k)
    link = np.full(hits.shape[1], len(hits), np.uint8)
    if critical is not None:
        for of_link in hits:
            link -= of_link >= critical
    return FinestLinks(link, critical)
