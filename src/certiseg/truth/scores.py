"""How well every class of a pixel fits the noisy image, as whole numbers: a set is all classes that fit well enough.

    posterior   the posterior of the class
    adaptive    1 - the posteriors of all classes that rank before it
    vertex      1 - the posterior of the largest vertex on the path of the best class that leaves it out

So the sets of `adaptive` are the best classes until their sum exceeds 1 - q, and those of `vertex` the classes under
the finest vertex on the path of the best class whose posterior exceeds 1 - q (all classes where none does). Sets of a
smaller q hold those of a larger one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.kernels.threads import over_pixels
from certiseg.kernels.truth import sum_before, vertex_before
from certiseg.stats.conformal import share_score

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy
    from certiseg.truth.settings import Score

UNIT = 2**31
"""Stands for a posterior of one: sums over the classes of a pixel fit 32 bits in spite of rounding."""
Fit = NDArray[np.uint32]


def fits_of(posterior: NDArray[np.uint32], score: Score, hierarchy: Hierarchy | None = None) -> Fit:
    """(H, W, C): how well every class fits, 0..UNIT, from the posteriors (H, W, C) of one noisy pass."""
    if score == "posterior":
        return posterior
    flat = posterior.reshape(-1, posterior.shape[2])
    before = np.empty_like(flat)
    if score == "adaptive":
        over_pixels(sum_before, len(flat), flat, before)
    else:
        assert hierarchy is not None, "checked when the calibration was made"
        masks = hierarchy.members[hierarchy.ancestors]
        over_pixels(vertex_before, len(flat), flat, masks, hierarchy.agreement, before)
    fits: Fit = np.uint32(UNIT) - np.minimum(before, np.uint32(UNIT))
    return fits.reshape(posterior.shape)


def labelled(label: NDArray[np.integer], size: tuple[int, int], num_classes: int, what: str) -> NDArray[np.bool_]:
    """(H, W): the pixels with a true class; a label map of another size or of other classes is refused."""
    if label.shape != size or label.dtype.kind not in "iu":
        raise InputError(f"{what} must be whole numbers of shape {size}, got {label.dtype} {label.shape}")
    known: NDArray[np.bool_] = label != VOID
    if known.any() and not 0 <= (low := int(label[known].min())) <= (high := int(label[known].max())) < num_classes:
        odd = low if low < 0 else high
        raise InputError(f"{what} must hold classes 0..{num_classes - 1} or {VOID} for void, got {odd}")
    return known


def fits_of_truth(fits: Fit, label: NDArray[np.integer], known: NDArray[np.bool_]) -> Fit:
    """(labelled pixels,): how well the true class fits."""
    truth: Fit = fits[known, label[known]]
    return truth


def image_scores(truth: Fit, shares: tuple[float, ...]) -> list[int]:
    """For each share: the largest q at which so many of the pixels have their true class in the set."""
    return [share_score(truth, share) for share in shares]
