"""Scores of certificates against the ground truth, pooled over the pixels of all images, as in the paper.

Void pixels (255) and pixels outside a certificate's region are left out. Everything is first summed in `PixelSums`,
which add up over images; `Scores` divides once at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

VOID = 255


@dataclass(frozen=True, eq=False)
class PixelSums:
    """What is summed over pixels: by true class (C,), and by true class and assigned level (C, L)."""

    pixels: NDArray[np.int64]
    gain: NDArray[np.float64]
    """Sum of the information gain 1 - log G / log |Y| over pixels that are certified and right."""
    abstained: NDArray[np.int64]
    right: NDArray[np.int64]
    """Certified, and the true class is under the vertex or in the set."""
    claimed: NDArray[np.int64]
    """Pixels certified as just this class, whatever the truth (flat methods)."""
    level_certified: NDArray[np.int64]
    """Certified at this level, right or wrong."""
    level_abstained: NDArray[np.int64]
    level_wrong: NDArray[np.int64]
    flat: bool
    """Whether every label was a single class, so that an IoU has a meaning."""

    def __add__(self, other: PixelSums) -> PixelSums:
        if self.level_wrong.shape != other.level_wrong.shape:
            raise InputError("certificates must be over the same classes and levels to be scored together")
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "flat"}
        return PixelSums(**sums, flat=self.flat and other.flat)


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
    """Certified accuracy: share of pixels that are certified and right."""
    miou: float | None
    """Mean IoU of flat methods, an abstention being a miss and never a false positive; None for the others."""
    per_level: tuple[tuple[float, float, float], ...]
    """For each level the share of all pixels that is (certified, abstained, certified but wrong) there."""
    pixels: int
    class_cig: NDArray[np.float64]
    """(C,): CIG by true class, NaN for classes that do not occur."""
    class_abstained: NDArray[np.float64]
    """(C,): abstain rate by true class, NaN for classes that do not occur."""


def evaluate(
    certificate: Certificate | Sequence[Certificate],
    label: NDArray[np.integer] | Sequence[NDArray[np.integer]],
    *,
    where: NDArray[np.bool_] | Sequence[NDArray[np.bool_]] | None = None,
) -> Scores:
    """Scores of one certificate against its label map (H, W), 255 = void, or of lists of both, pooled.

    where: masks of the pixels to score, for example `boundary(label)`.
    """
    certificates = list(certificate) if isinstance(certificate, Iterable) else [certificate]
    labels: list[Any] = list(label) if isinstance(certificate, Iterable) else [label]
    masks: list[Any] = (
        [None] * len(labels) if where is None else list(where) if isinstance(certificate, Iterable) else [where]
    )
    if not len(certificates) == len(labels) == len(masks) or not certificates:
        raise InputError(f"certificates and labels must be as many, got {len(certificates)} and {len(labels)}")
    sums = [sum_pixels(c, np.asarray(y), where=m) for c, y, m in zip(certificates, labels, masks, strict=True)]
    return scores_of(sum(sums[1:], start=sums[0]))


def evaluate_prediction(
    prediction: NDArray[np.integer] | Sequence[NDArray[np.integer]],
    label: NDArray[np.integer] | Sequence[NDArray[np.integer]],
    *,
    num_classes: int,
) -> Scores:
    """Scores of the uncertified model: accuracy and mIoU of plain label maps, nothing abstained."""
    several = not isinstance(prediction, np.ndarray)
    pairs = zip(prediction, label, strict=True) if several else [(prediction, label)]
    sums = [sum_prediction(np.asarray(p), np.asarray(y), num_classes) for p, y in pairs]
    return scores_of(sum(sums[1:], start=sums[0]))


def sum_pixels(
    certificate: Certificate, label: NDArray[np.integer], *, where: NDArray[np.bool_] | None = None
) -> PixelSums:
    """The sums of one image."""
    hierarchy = certificate.hierarchy
    scored = _scored(label, hierarchy.num_classes, certificate.vertex.shape, where)
    if certificate.region is not None:
        scored &= certificate.region
    truth = label[scored].astype(np.intp)
    vertex, level = certificate.vertex[scored], certificate.level[scored]
    if certificate.settings.method == "sets":
        size = certificate.set_size[scored].astype(np.intp)
        ranked = certificate.votes.ranking[scored] == truth[:, None]
        right = (ranked & (np.arange(ranked.shape[1]) < size[:, None])).any(axis=1)
        certified, single, claimed_class = size > 0, size == 1, certificate.votes.candidate[scored]
        generality, label_of = np.maximum(np.arange(ranked.shape[1] + 1), 1), size
    else:
        certified = vertex >= 0
        inside = np.maximum(vertex, 0)
        right = certified & hierarchy.members[inside, truth]
        single, claimed_class = certified & (vertex < hierarchy.num_classes), inside
        generality, label_of = hierarchy.members.sum(axis=1), inside
    gain_of = 1 - np.log(generality) / np.log(hierarchy.num_classes)
    gain = np.where(right, gain_of[label_of], 0.0)
    flat = certificate.settings.method == "segcertify" or certificate.settings.level == 0 or hierarchy.num_levels == 1
    return _sums(
        truth,
        num_classes=hierarchy.num_classes,
        num_levels=hierarchy.num_levels,
        level=level.astype(np.intp),
        certified=certified,
        right=right,
        gain=gain,
        claimed=claimed_class[single].astype(np.intp),
        flat=flat and certificate.settings.method != "sets",
    )


def sum_prediction(
    prediction: NDArray[np.integer],
    label: NDArray[np.integer],
    num_classes: int,
    *,
    where: NDArray[np.bool_] | None = None,
) -> PixelSums:
    """The sums of the uncertified model on one image."""
    scored = _scored(label, num_classes, prediction.shape, where)
    truth, predicted = label[scored].astype(np.intp), prediction[scored].astype(np.intp)
    if ((predicted < 0) | (predicted >= num_classes)).any():
        raise InputError(f"prediction must hold classes 0..{num_classes - 1}, got {predicted.min()}..{predicted.max()}")
    right = predicted == truth
    return _sums(
        truth,
        num_classes=num_classes,
        num_levels=1,
        level=np.zeros_like(truth),
        certified=np.ones_like(right),
        right=right,
        gain=right.astype(np.float64),
        claimed=predicted,
        flat=True,
    )


def scores_of(sums: PixelSums) -> Scores:
    """Divide the sums; classes and levels without pixels do not enter any mean."""
    total = int(sums.pixels.sum())
    occurs = sums.pixels > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        class_cig = sums.gain / sums.pixels
        class_abstained = sums.abstained / sums.pixels
        union = sums.pixels + sums.claimed - sums.right
        iou = sums.right / union
    share = (lambda count: float(count / total)) if total else (lambda count: float("nan"))
    by_level = (sums.level_certified, sums.level_abstained, sums.level_wrong)
    levels = zip(*(counts.sum(axis=0) for counts in by_level), strict=True)
    return Scores(
        cig=share(sums.gain.sum()),
        ccig=_mean(class_cig[occurs]),
        abstain=share(sums.abstained.sum()),
        class_abstain=_mean(class_abstained[occurs]),
        accuracy=share(sums.right.sum()),
        miou=_mean(iou[union > 0]) if sums.flat else None,
        per_level=tuple((share(c), share(a), share(w)) for c, a, w in levels),
        pixels=total,
        class_cig=class_cig,
        class_abstained=class_abstained,
    )


def boundary(label: NDArray[np.integer], *, margin: int = 10, paper_compatible: bool = False) -> NDArray[np.bool_]:
    """(H, W): pixels with another label in the (2 * margin + 1)^2 window around them.

    paper_compatible: the paper's one-sided test, which only sees neighbours with a larger label id.
    """
    from scipy.ndimage import maximum_filter, minimum_filter

    if margin < 1:
        raise InputError(f"margin must be at least 1, got {margin}")
    size = 2 * margin + 1
    differs = maximum_filter(label, size, mode="nearest") != label
    return differs if paper_compatible else differs | (minimum_filter(label, size, mode="nearest") != label)


def _sums(
    truth: NDArray[np.intp],
    *,
    num_classes: int,
    num_levels: int,
    level: NDArray[np.intp],
    certified: NDArray[np.bool_],
    right: NDArray[np.bool_],
    gain: NDArray[np.float64],
    claimed: NDArray[np.intp],
    flat: bool,
) -> PixelSums:
    def by_class(which: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(truth[which], minlength=num_classes)

    def by_level(which: NDArray[Any]) -> NDArray[np.int64]:
        cell = truth[which] * num_levels + level[which]
        return np.bincount(cell, minlength=num_classes * num_levels).reshape(num_classes, num_levels)

    return PixelSums(
        pixels=np.bincount(truth, minlength=num_classes),
        gain=np.bincount(truth, weights=gain, minlength=num_classes).astype(np.float64),
        abstained=by_class(~certified),
        right=by_class(right),
        claimed=np.bincount(claimed, minlength=num_classes),
        level_certified=by_level(certified),
        level_abstained=by_level(~certified),
        level_wrong=by_level(certified & ~right),
        flat=flat,
    )


def _scored(
    label: NDArray[np.integer], num_classes: int, size: tuple[int, ...], where: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """The pixels to score: not void, and inside `where`."""
    if label.shape != size or label.dtype.kind not in "iu":
        raise InputError(f"label must be whole numbers of shape {size}, got {label.dtype} {label.shape}")
    known = (label >= 0) & (label < num_classes)
    if not (known | (label == VOID)).all():
        odd = int(label[~known & (label != VOID)].flat[0])
        raise InputError(f"label must hold classes 0..{num_classes - 1} or {VOID} for void, got {odd}")
    scored = known & (label != VOID)
    if where is None:
        return scored
    if where.shape != size or where.dtype != bool:
        raise InputError(f"where must be a boolean mask of shape {size}, got {where.dtype} {where.shape}")
    return scored & where


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
