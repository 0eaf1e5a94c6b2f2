"""Refuting a certificate: fresh draws at x + delta that leave no room for "more than half are inside the label".

A certificate is refuted where the Clopper-Pearson upper bound, at alpha / N, of the share of predictions inside its
label is below 1/2: with probability >= 1 - alpha no true certificate among the N that are tested is refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.models.segmenter import as_batch
from certiseg.noise import image_key, noise_stream, perturbation
from certiseg.stats.binomial import critical_count

if TYPE_CHECKING:
    from certiseg.attack.targets import Target
    from certiseg.models.segmenter import Segmenter
    from certiseg.settings import Noise


@dataclass(frozen=True, eq=False)
class Verdict:
    """What fresh draws at x + delta say about the certificates of a target."""

    hits: NDArray[np.int64]
    """(N,): draws inside the certified label, pixel by pixel."""
    draws: int
    refuted: NDArray[np.bool_]
    """(N,)"""

    @property
    def lowest_share(self) -> float:
        return float(self.hits.min() / self.draws)

    @property
    def lost(self) -> float:
        """Share of the pixels with fewer than half of the draws inside: an estimate, refuted or not."""
        return float((2 * self.hits < self.draws).mean())


def refutable_misses(draws: int, *, alpha: float, tested: int) -> int:
    """Least number of misses that refutes: P(Bin(draws, 1/2) >= misses) <= alpha / N."""
    misses = critical_count(draws, 0.5, alpha / tested)
    if misses is None:
        raise InputError(f"draws must be enough to refute any of {tested:,} certificates, got {draws}; take more")
    return misses


def judge(
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    target: Target,
    *,
    sigma: float,
    noise: Noise,
    draws: int,
    alpha: float,
    seed: int,
) -> Verdict:
    """Fresh draws at the perturbed image `pixels`, by a seed that the certificate did not use."""
    least = refutable_misses(draws, alpha=alpha, tested=target.tested)
    stream = noise_stream(seed=seed, image_key=image_key(pixels), stage="estimation")
    perturb = perturbation(pixels, sigma=sigma, noise=noise)
    hits = np.zeros(target.tested, np.int64)
    noisy = np.empty((1, *pixels.shape), np.float32)
    for draw in range(draws):
        perturb(stream, draw, noisy[0])
        hits += target.held(segmenter(as_batch(noisy)).labels()[0])
    return Verdict(hits, draws, draws - hits >= least)
