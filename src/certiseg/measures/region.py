"""A region of an image as runs of pixels: small to store, quick to sum over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError


@dataclass(frozen=True, eq=False)
class Region:
    """Pixels of an image of a given size."""

    runs: NDArray[np.int32]
    """(R, 2): first and last (not included) flat index of each run, in order, apart from each other."""
    size: tuple[int, int]

    def __post_init__(self) -> None:
        runs, pixels = self.runs, self.size[0] * self.size[1]
        if runs.ndim != 2 or runs.shape[1] != 2 or runs.dtype != np.int32:
            raise InputError(f"runs of a region must be 32-bit pairs (R, 2), got {runs.dtype} {runs.shape}")
        edges = runs.reshape(-1)
        rising = (np.diff(edges) > 0).all() and (edges.size == 0 or (edges[0] >= 0 and edges[-1] <= pixels))
        if not rising:
            raise InputError(f"runs of a region must rise inside the {pixels:,} pixels of the image")

    @cached_property
    def area(self) -> int:
        """Number of pixels."""
        return int((self.runs[:, 1] - self.runs[:, 0]).sum())

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(H, W): the pixels of the region."""
        flat = np.zeros(self.size[0] * self.size[1], bool)
        for first, last in self.runs:
            flat[first:last] = True
        return flat.reshape(self.size)


def region_of(mask: NDArray[np.bool_]) -> Region:
    """The region of a mask (H, W)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask.reshape(-1), [False]]).astype(np.int8)))
    return Region(edges.reshape(-1, 2).astype(np.int32), (mask.shape[0], mask.shape[1]))


def whole_image(size: tuple[int, int]) -> Region:
    """Every pixel."""
    return Region(np.array([[0, size[0] * size[1]]], np.int32), size)


def nothing(size: tuple[int, int]) -> Region:
    """No pixel."""
    return Region(np.empty((0, 2), np.int32), size)


def checked_mask(region: ArrayLike, size: tuple[int, int], name: str = "region") -> NDArray[np.bool_]:
    """A mask of the image with at least one pixel, or one sentence."""
    mask = np.asarray(region)
    if mask.dtype != bool:
        raise InputError(f"{name} must be a mask of True and False, got {mask.dtype}; compare it with a value")
    if mask.shape != size:
        raise InputError(f"{name} must have the size of the image, {size}, got {mask.shape}")
    if not mask.any():
        raise InputError(f"{name} must hold at least one pixel, got none")
    return mask


def widened(mask: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """The mask and all pixels at most `margin` rows and columns away."""
    from scipy.ndimage import maximum_filter

    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    box = (
        slice(max(int(rows[0]) - margin, 0), int(rows[-1]) + margin + 1),
        slice(max(int(columns[0]) - margin, 0), int(columns[-1]) + margin + 1),
    )
    wide = np.zeros_like(mask)
    wide[box] = maximum_filter(mask[box], size=2 * margin + 1, mode="constant", cval=False)
    return wide
