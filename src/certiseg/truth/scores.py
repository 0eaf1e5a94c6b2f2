"""How well every class of a pixel fits the noisy image, as whole numbers: a set is all classes that fit well enough.

    posterior   the posterior of the class
    adaptive    1 - the posteriors of all classes that rank before it
    vertex      1 - the posterior of the largest vertex on the path of the best class that leaves it out

So the sets of `adaptive` are the best classes until their sum exceeds 1 - q, and those of `vertex` the classes under
the finest vertex on the path of the best class whose posterior exceeds 1 - q (all classes where none does). Sets of a
smaller q hold those of a larger one. Posteriors are taken at the model's own resolution and enlarged bilinearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.kernels.scores import Interpolation
from certiseg.kernels.threads import in_parts, over_pixels
from certiseg.kernels.truth import enlarge, enlarge_one, reaching, sum_before, vertex_before
from certiseg.stats.conformal import share_score

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy
    from certiseg.truth.settings import Score

UNIT = 2**31
"""Stands for a posterior of one: sums over the classes of a pixel fit 32 bits in spite of rounding."""
Fit = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Fits:
    """How well every class fits at every pixel of an image, kept as coarse as the model speaks."""

    size: tuple[int, int]
    parts: tuple[tuple[tuple[slice, slice], Fit, Interpolation | None], ...]
    """Where a part lies in the image, its fits (h, w, C), and how they extend to its pixels; None: one for each."""

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.parts[0][1].shape[2])

    def everywhere(self) -> Fit:
        """(H, W, C): the fits of all pixels, 0..UNIT."""
        fine = np.empty((*self.size, self.num_classes), np.uint32)
        for box, coarse, places in self.parts:
            if places is None:
                fine[box] = coarse
            else:
                in_parts(enlarge, *fine[box].shape[:2], coarse, places, fine[box])
        return fine

    def scored(self, score: Score, hierarchy: Hierarchy | None = None) -> Fits:
        """The fits by another score, from those that are posteriors."""
        if score == "posterior":
            return self
        whole = (slice(0, self.size[0]), slice(0, self.size[1]))
        return Fits(self.size, ((whole, fits_of(self.everywhere(), score, hierarchy), None),))

    def sets(self, least: Fit) -> NDArray[np.uint8]:
        """(H, W, bytes): the classes that fit at least so well (C,), a bit for each, as np.packbits has them."""
        found = np.empty((*self.size, -(-self.num_classes // 8)), np.uint8)
        for box, coarse, places in self.parts:
            reached = np.packbits(coarse >= least, axis=2)
            if places is None:
                found[box] = reached
            else:
                in_parts(reaching, *found[box].shape[:2], coarse, reached, places, least, found[box])
        return found

    def of_truth(self, label: NDArray[np.integer], known: NDArray[np.bool_]) -> Fit:
        """(labelled pixels,): how well the true class fits."""
        fine = np.empty(self.size, np.uint32)
        classes = np.where(known, label.astype(np.int64), -1)
        for box, coarse, places in self.parts:
            if places is None:
                fine[box] = np.take_along_axis(coarse, np.maximum(classes[box], 0)[..., None], 2)[..., 0]
            else:
                in_parts(enlarge_one, *fine[box].shape, coarse, places, classes[box], fine[box])
        truth: Fit = fine[known]
        return truth


def fits_of(posterior: NDArray[np.uint32], score: Score, hierarchy: Hierarchy | None = None) -> Fit:
    """(H, W, C): how well every class fits, 0..UNIT, from the posteriors (H, W, C) of all pixels."""
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


def image_scores(truth: Fit, shares: tuple[float, ...]) -> list[int]:
    """For each share: the largest q at which so many of the pixels have their true class in the set."""
    return [share_score(truth, share) for share in shares]
