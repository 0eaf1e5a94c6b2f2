"""What is attacked: all certified pixels, the weakest one, the weakest patch of 16x16, or an object with a bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.measures.measure import Measure

if TYPE_CHECKING:
    from certiseg.attack.settings import TargetName
    from certiseg.bounds import Bounds
    from certiseg.certificate import Certificate

PATCH = 16


@dataclass(frozen=True, eq=False)
class Target:
    """Certified pixels that an attack wants to change."""

    name: TargetName
    pixels: NDArray[np.bool_]
    """(H, W): the certified pixels under attack."""
    allowed: NDArray[np.bool_]
    """(H, W, C): the classes inside each pixel's certified vertex or set."""
    bound: tuple[Measure, float] | None = None
    """Of an object: its share under the label, and the bound of it. Then this one statement is tested."""

    @property
    def tested(self) -> int:
        """N, the number of certificates that are tested together."""
        return int(self.pixels.sum()) if self.bound is None else 1

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        """(N, C): the classes inside the certified label of each pixel."""
        return np.asarray(self.allowed[self.pixels])

    def held(self, label_map: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(N,): which of the certificates a label map (H, W) keeps."""
        if self.bound is None:
            return np.asarray(self._allowed[np.arange(self.tested), label_map[self.pixels]])
        measure, bound = self.bound
        numerator, denominator = measure.value(label_map)
        return np.array([numerator / denominator >= bound])


def allowed_classes(certificate: Certificate) -> NDArray[np.bool_]:
    """(H, W, C): the classes inside the certified vertex or set; none where nothing is certified."""
    if certificate.settings.method == "sets":
        allowed = np.zeros(certificate.votes.counts.shape, bool)
        position = np.arange(certificate.votes.max_set)
        inside = position < certificate.set_size[..., None]
        np.put_along_axis(allowed, certificate.votes.ranking.astype(np.int64), inside, axis=-1)
        return allowed
    certified = certificate.vertex >= 0
    members: NDArray[np.bool_] = certificate.hierarchy.members[np.maximum(certificate.vertex, 0)]
    return members & certified[..., None]


def object_targets(bounds: Bounds | None, most: int) -> list[Target]:
    """The objects of the lowest bounds above 0, lowest first."""
    if bounds is None:
        return []
    found = zip(bounds.lower.tolist(), bounds.measures, strict=True)
    shares = sorted(((low, m) for low, m in found if m.kind == "share" and low > 0), key=lambda each: each[0])
    return [
        Target("object", m.inside.mask, np.broadcast_to(m.members, (*m.size, len(m.members))), (m, low))
        for low, m in shares[:most]
    ]


def target_of(certificate: Certificate, name: TargetName) -> Target:
    """The certified pixels of a target. The weakest are those with the fewest votes for their label."""
    allowed = allowed_classes(certificate)
    certified: NDArray[np.bool_] = np.asarray(allowed.any(axis=-1))
    if not certified.any():
        raise InputError("certificate must have a certified pixel to be attacked, got none")
    if name == "all":
        return Target(name, certified, allowed)
    hits = np.where(allowed, certificate.votes.counts, 0).sum(axis=-1, dtype=np.int64)
    if name == "pixel":
        weakest = np.where(certified, hits, certificate.votes.n + 1).argmin()
        return Target(name, _only(certified, *np.unravel_index(weakest, hits.shape), side=1), allowed)
    misses = np.where(certified, 1 + certificate.votes.n - hits, 0)
    return Target(name, _only(certified, *_largest_window(misses), side=PATCH), allowed)


def _largest_window(values: NDArray[np.int64]) -> tuple[int, int]:
    """Top left corner of the patch with the largest sum, the first of several."""
    height, width = (min(PATCH, side) for side in values.shape)
    total = np.pad(values.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    sums = total[height:, width:] - total[:-height, width:] - total[height:, :-width] + total[:-height, :-width]
    row, column = np.unravel_index(sums.argmax(), sums.shape)
    return int(row), int(column)


def _only(certified: NDArray[np.bool_], row: Any, column: Any, *, side: int) -> NDArray[np.bool_]:
    kept = np.zeros_like(certified)
    window = (slice(row, row + side), slice(column, column + side))
    kept[window] = certified[window]
    return kept
