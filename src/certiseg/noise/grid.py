"""Gaussian noise rounded to whole grey levels (1/255), looked up in an exact table with 128 random bits per value.

32 of the bits decide nearly always; the other 96 are made where they are needed. Added to an 8-bit image, the noise
gives whole grey levels again, so no rounding of floating point comes between image, noise and model: see
docs/guarantee.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.kernels.noise import GUIDE_BITS, REST_COUNTER, fill_grid
from certiseg.stats.rounded import BITS, RoundedNormal, rounded_normal

if TYPE_CHECKING:
    from certiseg.noise.stream import NoiseStream

MOST_SIGMA = 4.0
"""Beyond it the table grows long and images drown."""


@dataclass(frozen=True, eq=False)
class GridTable:
    """The law of rounded noise as the look-up wants it: thresholds split into their first 32 and other 96 bits."""

    law: RoundedNormal
    high: NDArray[np.uint64]
    """First 32 bits of each threshold, and 2^32 at the end, which no word reaches."""
    rest: NDArray[np.uint32]
    """(thresholds + 1, 3): the other 96 bits."""
    guide: NDArray[np.int32]
    """Number of thresholds below each value of a word's first 12 bits, where the search begins."""


def grid_table_of(law: RoundedNormal) -> GridTable:
    """The look-up table of a law."""
    high = np.array([*(t >> (BITS - 32) for t in law.thresholds), 1 << 32], np.uint64)
    words = [[(t >> shift) & 0xFFFFFFFF for shift in (64, 32, 0)] for t in law.thresholds]
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(32 - GUIDE_BITS)
    guide = np.searchsorted(high, starts, side="left").astype(np.int32)
    return GridTable(law, high, np.array([*words, [0, 0, 0]], np.uint32), guide)


@lru_cache(maxsize=4)
def grid_table(sigma: float) -> GridTable:
    """The table of round(255 * sigma * z) for a standard normal z."""
    if not 0 < sigma <= MOST_SIGMA:
        raise InputError(f"sigma must be at most {MOST_SIGMA:g} with grid noise, got {sigma}")
    return grid_table_of(rounded_normal(255 * Fraction(sigma)))


def grid_noise(stream: NoiseStream, draw: int, shape: tuple[int, ...], table: GridTable) -> NDArray[np.int32]:
    """The noise of one draw of a stream in whole grey levels, by the law of the table."""
    values = np.empty(stream.chunks(draw, shape, most=4 * REST_COUNTER), np.int32)
    name = np.uint64(stream.key), np.uint64(stream.nonce), np.uint64(draw)
    fill_grid(values, *name, table.high, table.rest, table.guide, np.int32(table.law.least))
    size = int(np.prod(shape))
    return values.reshape(-1)[:size].reshape(shape)


def grid_distance(*, sigma: float, draws: int, values: int) -> float:
    """What the finite table can add to alpha: total variation of all values of all draws from the exact law."""
    return draws * values * grid_table(sigma).law.distance


def whole_grey_levels(pixels: NDArray[np.float32]) -> NDArray[np.int32]:
    """The 8-bit values of an image in [0, 1]; an image that is not 8-bit is refused."""
    levels: NDArray[np.int32] = np.rint(pixels * np.float32(255)).astype(np.int32)
    if not np.array_equal(levels.astype(np.float32) / np.float32(255), pixels):
        raise InputError(
            "image must be 8-bit (whole multiples of 1/255) for grid noise, got values between; use noise='gaussian'"
        )
    return levels
