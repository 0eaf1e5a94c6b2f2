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
from certiseg.kernels import jit

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
    hierarchy, method = certificate.hierarchy, certificate.settings.method
    truth, scored = _scored(label, hierarchy.num_classes, certificate.vertex.shape, where)
    if certificate.region is not None:
        scored &= certificate.region
    classes, levels = hierarchy.num_classes, hierarchy.num_levels
    claimed = np.zeros(classes, np.int64)
    if method == "sets":
        ranking = certificate.votes.ranking
        size = np.arange(ranking.shape[2] + 1).repeat(2)
        cells = np.zeros((classes, len(size), levels), np.int64)
        ranked, sizes = ranking.reshape(-1, ranking.shape[2]), certificate.set_size.reshape(-1)
        _count_sets(truth.reshape(-1), scored.reshape(-1), ranked, sizes, cells, claimed)
        certified, generality = size > 0, np.maximum(size, 1)
        right = np.broadcast_to(np.arange(len(size)) % 2 == 1, cells.shape[:2])
    else:
        cells = np.zeros((classes, len(hierarchy.members) + 1, levels), np.int64)
        vertex, level = certificate.vertex.reshape(-1), certificate.level.reshape(-1)
        _count_vertices(truth.reshape(-1), scored.reshape(-1), vertex, level, cells)
        certified, generality = np.arange(cells.shape[1]) > 0, np.append(1, hierarchy.members.sum(axis=1))
        right = np.vstack([np.zeros((1, classes), bool), hierarchy.members]).T
        claimed = cells[:, 1 : classes + 1].sum(axis=(0, 2))
    return _sums(
        cells,
        certified=certified,
        right=right,
        gain=1 - np.log(generality) / np.log(classes),
        claimed=claimed,
        flat=method == "segcertify" or (method != "sets" and (certificate.settings.level == 0 or levels == 1)),
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
    cells = pairs.reshape(num_classes, num_classes, 1)
    return _sums(
        cells,
        certified=np.ones(num_classes, bool),
        right=np.eye(num_classes, dtype=bool),
        gain=np.ones(num_classes),
        claimed=cells.sum(axis=(0, 2)),
        flat=True,
    )


@jit
def _count_vertices(truth: Any, scored: Any, vertex: Any, level: Any, cells: Any) -> None:
    """Add 1 to cells[true class, vertex + 1, level] for every scored pixel, an abstention being 0."""
    for i in range(truth.size):
        if scored[i]:
            cells[truth[i], max(vertex[i] + 1, 0), level[i]] += 1


@jit
def _count_sets(truth: Any, scored: Any, ranking: Any, set_size: Any, cells: Any, claimed: Any) -> None:
    """Add 1 to cells[true class, 2 * size + right, 0] for every scored pixel, and to `claimed` for sets of one class.

    ranking (N, max_set): a set is its first set_size classes.
    """
    for i in range(truth.size):
        if scored[i]:
            size, right = np.intp(set_size[i]), np.intp(0)
            for m in range(size):
                right |= np.intp(ranking[i, m] == truth[i])
            cells[truth[i], 2 * size + right, 0] += 1
            if size == 1:
                claimed[ranking[i, 0]] += 1


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
    cells: NDArray[np.int64],
    *,
    certified: NDArray[np.bool_],
    right: NDArray[np.bool_],
    gain: NDArray[np.float64],
    claimed: NDArray[np.int64],
    flat: bool,
) -> PixelSums:
    """From the pixels of each true class, label and level (C, K, L), and what is known of each label.

    certified (K,); right (C, K): whether a class is under the label; gain (K,): its information; claimed (C,).
    """
    by_label = cells.sum(axis=2)

    def by_level(which: NDArray[np.bool_]) -> NDArray[np.int64]:
        return (cells * np.broadcast_to(which, by_label.shape)[:, :, None]).sum(axis=1)

    return PixelSums(
        pixels=by_label.sum(axis=1),
        gain=(by_label * right * gain).sum(axis=1),
        abstained=by_label[:, ~certified].sum(axis=1),
        right=(by_label * right).sum(axis=1),
        claimed=claimed,
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
    known = (label >= 0) & (label < num_classes)
    if not (known | (label == VOID)).all():
        odd = int(label[~known & (label != VOID)].flat[0])
        raise InputError(f"label must hold classes 0..{num_classes - 1} or {VOID} for void, got {odd}")
    truth, scored = label.astype(np.uint16), known & (label != VOID)
    if where is None:
        return truth, scored
    if where.shape != size or where.dtype != bool:
        raise InputError(f"where must be a boolean mask of shape {size}, got {where.dtype} {where.shape}")
    return truth, scored & where


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
