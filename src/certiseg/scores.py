"""Scores of certificates against the ground truth, pooled over the pixels of all images, as in the paper.

Void pixels (255) and pixels outside a certificate's region are left out. Pixels are first counted in `PixelSums`,
which add up over images; `Scores` divides once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.kernels.histograms import count_sets, count_vertices

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

BY_CLASS = ("pixels", "gain", "abstained", "right", "claimed", "members", "compared", "agreed")
"""The fields of `PixelSums` with a number per class."""
BY_LEVEL = ("level_certified", "level_abstained", "level_wrong")
"""The fields of `PixelSums` with a number per class and level."""


@dataclass(frozen=True, eq=False)
class PixelSums:
    """Sums over pixels by true class (C,), and by true class and assigned level (C, L).

    A leading axis is allowed: the sums of several samples of images at once.
    """

    pixels: NDArray[np.int64]
    gain: NDArray[np.float64]
    """Sum of the information gain 1 - log G / log |Y| over pixels that are certified and right."""
    abstained: NDArray[np.int64]
    right: NDArray[np.int64]
    """Certified, and the true class is under the vertex or in the set."""
    claimed: NDArray[np.int64]
    """Pixels certified as just this class, whatever the truth (flat methods)."""
    members: NDArray[np.int64]
    """Sum of the number of classes under the certified vertex or in the set; 0 where nobody counted them."""
    compared: NDArray[np.int64]
    """Certified pixels whose prediction without noise is known."""
    agreed: NDArray[np.int64]
    """Those of them where it lies under the certified label."""
    level_certified: NDArray[np.int64]
    """Certified at this level, right or wrong."""
    level_abstained: NDArray[np.int64]
    level_wrong: NDArray[np.int64]
    flat: bool
    """Whether every label was a single class, so that an IoU has a meaning."""

    def __add__(self, other: PixelSums) -> PixelSums:
        if self.level_wrong.shape != other.level_wrong.shape:
            raise InputError("certificates must be over the same classes and levels to be scored together")
        return _each_array(add, self, other)

    @classmethod
    def stack(cls, sums: Sequence[PixelSums]) -> PixelSums:
        """Several sums side by side, on a leading axis."""
        return _each_array(lambda *arrays: np.stack(arrays), *sums)

    def weighted(self, weights: NDArray[Any]) -> PixelSums:
        """The stacked sums added up, each counted so often: weights (sums,), or (samples, sums) for several samples."""
        return _each_array(lambda array: np.tensordot(weights, array, axes=1), self)


@dataclass(frozen=True)
class Scores:
    """Fractions in [0, 1]; NaN only where there was no pixel to score."""

    cig: float
    """Certified information gain."""
    ccig: float
    """CIG averaged over the classes that occur in the ground truth."""
    abstain: float
    class_abstain: float
    """Abstain rate averaged over the classes that occur."""
    accuracy: float
    """Certified and right: share of pixels whose true class is under the certified vertex or in the certified set."""
    wrong: float
    """Certified and wrong."""
    set_size: float
    """Mean number of classes under a certified label: a large set holds the truth easily."""
    agreement: float
    """Share of the certified pixels whose prediction without noise lies under the certified label."""
    miou: float | None
    """Mean IoU of flat methods, an abstention being a miss and never a false positive; None for the others."""
    per_level: tuple[tuple[float, float, float], ...]
    """For each level the share of all pixels that is (certified, abstained, certified but wrong) there."""
    pixels: int
    class_cig: NDArray[np.float64]
    """(C,): CIG by true class, NaN for classes that do not occur."""
    class_abstained: NDArray[np.float64]
    """(C,): abstain rate by true class, NaN for classes that do not occur."""


def score(
    certificate: Certificate | Sequence[Certificate],
    label: NDArray[np.integer] | Sequence[NDArray[np.integer]],
    *,
    where: NDArray[np.bool_] | Sequence[NDArray[np.bool_]] | None = None,
) -> Scores:
    """Scores of one certificate against its label map (H, W), 255 = void, or of lists of both, pooled.

    where: masks of the pixels to score, for example `boundary(label)`.
    """
    several = isinstance(certificate, Iterable)
    certificates: list[Certificate] = list(certificate) if isinstance(certificate, Iterable) else [certificate]
    labels = list(label) if several else [label]
    masks: list[Any] = [None] * len(labels) if where is None else list(where) if several else [where]
    if not len(certificates) == len(labels) == len(masks) or not certificates:
        raise InputError(
            f"certificates and labels must be equally many, got {len(certificates)} and {len(labels)}; give one label "
            "map, and one mask if any, per certificate"
        )
    found = zip(certificates, labels, masks, strict=True)
    return scores_of(reduce(add, (sum_pixels(c, np.asarray(y), where=m) for c, y, m in found)))


def score_prediction(prediction: NDArray[np.integer], label: NDArray[np.integer], *, num_classes: int) -> Scores:
    """Scores of the uncertified model: accuracy and mIoU of a plain label map, nothing abstained."""
    return scores_of(sum_prediction(prediction, label, num_classes))


def sum_pixels(
    certificate: Certificate, label: NDArray[np.integer], *, where: NDArray[np.bool_] | None = None
) -> PixelSums:
    """The sums of one image."""
    hierarchy, method = certificate.hierarchy, certificate.settings.method
    truth, scored = _scored(label, hierarchy.num_classes, certificate.vertex.shape, where)
    if certificate.region is not None:
        scored &= certificate.region
    classes, levels, agrees = hierarchy.num_classes, hierarchy.num_levels, certificate.agrees
    claimed = np.zeros(classes, np.int64)
    if method == "sets":
        ranking = certificate.votes.ranking
        size = np.arange(ranking.shape[2] + 1).repeat(2)
        counts = np.zeros((classes, len(size), levels), np.int64)
        ranked, sizes = ranking.reshape(-1, ranking.shape[2]), certificate.set_size.reshape(-1)
        count_sets(truth.reshape(-1), scored.reshape(-1), ranked, sizes, counts, claimed)
        certified, generality = size > 0, np.maximum(size, 1)
        right = np.broadcast_to(np.arange(len(size)) % 2 == 1, counts.shape[:2])
    else:
        counts = np.zeros((classes, len(hierarchy.members) + 1, levels), np.int64)
        vertex, level = certificate.vertex.reshape(-1), certificate.level.reshape(-1)
        count_vertices(truth.reshape(-1), scored.reshape(-1), vertex, level, counts)
        certified, generality = np.arange(counts.shape[1]) > 0, np.append(1, hierarchy.members.sum(axis=1))
        right = np.vstack([np.zeros((1, classes), bool), hierarchy.members]).T
        claimed = counts[:, 1 : classes + 1].sum(axis=(0, 2))
    return _sums(
        counts,
        certified=certified,
        right=right,
        claimed=claimed,
        generality=generality,
        flat=method == "segcertify" or (method != "sets" and (certificate.settings.level == 0 or levels == 1)),
        agreed=None if agrees is None else np.bincount(truth[scored & agrees], minlength=classes),
    )


def sum_prediction(
    prediction: NDArray[np.integer],
    label: NDArray[np.integer],
    num_classes: int,
    *,
    where: NDArray[np.bool_] | None = None,
) -> PixelSums:
    """The sums of the uncertified model on one image."""
    truth, scored = _scored(label, num_classes, prediction.shape, where)
    predicted = prediction[scored].astype(np.intp)
    if ((predicted < 0) | (predicted >= num_classes)).any():
        raise InputError(f"prediction must hold classes 0..{num_classes - 1}, got {predicted.min()}..{predicted.max()}")
    pairs = np.bincount(truth[scored] * np.intp(num_classes) + predicted, minlength=num_classes * num_classes)
    return sums_of_confusion(pairs.reshape(num_classes, num_classes))


def sums_of_confusion(confusion: NDArray[np.int64]) -> PixelSums:
    """The sums of label maps without abstentions, from their confusion matrix (true class, predicted class)."""
    all_of_them, claimed = np.ones(len(confusion)), confusion.sum(axis=0)
    certified, right = all_of_them > 0, np.diag(all_of_them) > 0
    return _sums(
        confusion[..., None], certified=certified, right=right, generality=all_of_them, claimed=claimed, flat=True
    )


def scores_of(sums: PixelSums) -> Scores:
    """Divide the sums; classes without pixels are left out of every mean."""
    total, found = sums.pixels.sum(), pooled_scores(sums)
    by_level = [divided(getattr(sums, name).sum(axis=0), total).tolist() for name in BY_LEVEL]
    return Scores(
        **{name: float(value) for name, value in found.items() if name != "miou"},
        miou=float(found["miou"]) if sums.flat else None,
        per_level=tuple(zip(*by_level, strict=True)),
        pixels=int(total),
        class_cig=divided(sums.gain, sums.pixels),
        class_abstained=divided(sums.abstained, sums.pixels),
    )


def pooled_scores(sums: PixelSums) -> dict[str, NDArray[np.float64]]:
    """Every score by name, from sums (..., C); NaN without a pixel to score, and for the mIoU of methods not flat."""
    total, members = sums.pixels.sum(axis=-1), sums.members.sum(axis=-1)
    iou = mean_iou(sums.pixels, sums.claimed, sums.right)
    return {
        "cig": divided(sums.gain.sum(axis=-1), total),
        "ccig": mean_share(sums.gain, sums.pixels),
        "abstain": divided(sums.abstained.sum(axis=-1), total),
        "class_abstain": mean_share(sums.abstained, sums.pixels),
        "accuracy": divided(sums.right.sum(axis=-1), total),
        "wrong": divided((sums.pixels - sums.abstained - sums.right).sum(axis=-1), total),
        "set_size": divided(members, (sums.pixels - sums.abstained).sum(axis=-1) * (members > 0)),
        "agreement": divided(sums.agreed.sum(axis=-1), sums.compared.sum(axis=-1)),
        "miou": iou if sums.flat else np.full_like(iou, np.nan),
    }


def mean_iou(truth: NDArray[Any], claimed: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """Mean intersection over union, over the classes whose union is not empty: one definition for all of certiseg.

    truth, claimed, right: pixels (..., C) of a class, labelled as it, and both. A class that is predicted but never
    occurs has an IoU of 0.
    """
    return mean_share(right, truth + claimed - right)


def mean_share(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Mean of part / whole over the classes (last axis) where whole > 0; NaN if there is none."""
    occurs = whole > 0
    shares = np.divide(part, whole, out=np.zeros(whole.shape), where=occurs)
    return divided(shares.sum(axis=-1), occurs.sum(axis=-1))


def divided(part: Any, whole: Any) -> NDArray[np.float64]:
    """part / whole, NaN where the whole is not positive."""
    part, whole = np.broadcast_arrays(part, whole)
    found: NDArray[np.float64] = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return found


def verdict_map(certificate: Certificate, truth: NDArray[np.integer]) -> NDArray[np.uint8]:
    """(H, W): 1 certified and right, 2 certified and wrong, 3 abstained; 0 where the truth is void or not tested."""
    known = truth != VOID if certificate.region is None else (truth != VOID) & certificate.region
    right = certificate.holds(np.where(known, truth, 0))
    codes = np.where(certificate.abstained, 3, np.where(right, 1, 2))
    return np.where(known, codes, 0).astype(np.uint8)


def boundary(label: NDArray[np.integer], *, margin: int = 10, paper_compatible: bool = False) -> NDArray[np.bool_]:
    """(H, W): pixels with another label in the (2 * margin + 1)^2 window around them.

    paper_compatible: the paper's one-sided test, which only sees neighbours with a larger label id.
    """
    from scipy.ndimage import maximum_filter, minimum_filter

    if margin < 1:
        raise InputError(f"margin must be at least 1, got {margin}")
    size = 2 * margin + 1
    differs: NDArray[np.bool_] = maximum_filter(label, size, mode="nearest") != label
    return differs if paper_compatible else differs | (minimum_filter(label, size, mode="nearest") != label)


def _each_array(function: Callable[..., NDArray[Any]], *sums: PixelSums) -> PixelSums:
    """The function applied to each array of the sums."""
    arrays = {name: function(*(getattr(s, name) for s in sums)) for name in BY_CLASS + BY_LEVEL}
    return PixelSums(**arrays, flat=all(s.flat for s in sums))


def _sums(
    counts: NDArray[np.int64],
    *,
    certified: NDArray[np.bool_],
    right: NDArray[np.bool_],
    generality: NDArray[Any],
    claimed: NDArray[np.int64],
    flat: bool,
    agreed: NDArray[np.int64] | None = None,
) -> PixelSums:
    """From the pixels of each true class, label and level (C, K, L), and what is known of each label.

    certified (K,); right (C, K): whether a class is under the label; generality (K,): how many are; claimed (C,);
    agreed (C,): None where the prediction without noise is not known.
    """
    by_label = counts.sum(axis=2)
    held = by_label * certified
    gain = 1 - np.log(generality) / np.log(max(len(counts), 2))

    def by_level(which: NDArray[np.bool_]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = (counts * np.broadcast_to(which, by_label.shape)[:, :, None]).sum(axis=1)
        return found

    return PixelSums(
        pixels=by_label.sum(axis=1),
        gain=(by_label * right * gain).sum(axis=1),
        abstained=by_label[:, ~certified].sum(axis=1),
        right=(by_label * right).sum(axis=1),
        claimed=claimed,
        members=(held * generality.astype(np.int64)).sum(axis=1),
        compared=np.zeros(len(counts), np.int64) if agreed is None else held.sum(axis=1),
        agreed=np.zeros(len(counts), np.int64) if agreed is None else agreed,
        level_certified=by_level(certified),
        level_abstained=by_level(~certified),
        level_wrong=by_level(certified & ~right),
        flat=flat,
    )


def _scored(
    label: NDArray[np.integer], num_classes: int, size: tuple[int, ...], where: NDArray[np.bool_] | None
) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """The true classes, and the pixels to score: not void, and inside `where`."""
    if label.shape != size or label.dtype.kind not in "iu":
        raise InputError(f"label must be whole numbers of shape {size}, got {label.dtype} {label.shape}")
    known = (label >= 0) & (label < num_classes) & (label != VOID)
    if not (known | (label == VOID)).all():
        odd = int(label[~known & (label != VOID)].flat[0])
        raise InputError(f"label must hold classes 0..{num_classes - 1} or {VOID} for void, got {odd}")
    truth = label.astype(np.uint16)
    if where is None:
        return truth, known
    if where.shape != size or where.dtype != bool:
        raise InputError(f"where must be a boolean mask of shape {size}, got {where.dtype} {where.shape}")
    return truth, known & where
