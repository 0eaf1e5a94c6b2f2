"""Independent Gaussian noise by counter: every draw is a function of (seed, image key, stage, draw index) alone.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) maps a 64-bit key and a 128-bit counter to four random words. Key and
upper half of the counter are 128 bits of a hash of (seed, image key, stage); the lower half holds draw index and
position. So no two draws share noise, and order, batch size, workers and restarts cannot change any of them. Noise is
made on the CPU in 32-bit IEEE arithmetic without contraction, hence equal on every device it is then moved to.

Box-Muller turns two words into two standard normal values. Logarithm, sine and cosine are short series (relative
error below 1e-6) because the compiler can run those on whole vectors.

Grid noise is a Gaussian rounded to whole grey levels (1/255), looked up in an exact table with 128 random bits per
value: 32 of them decide nearly always, the other 96 are made where they are needed. Added to an 8-bit image it gives
whole grey levels again, so no rounding of floating point comes between image, noise and model; see docs/guarantee.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.stats.rounded import BITS, RoundedNormal, rounded_normal

Stage = Literal["selection", "estimation"]
Noise = Literal["gaussian", "grid"]
NOISES: tuple[Noise, ...] = get_args(Noise)

CHUNK = 1024
"""Counters handled together; value w * CHUNK + i of a chunk comes from word w of counter i."""
TAIL_COUNTER = 1 << 31
"""Added to the position of a counter for the extra bits of a tail value; no image has that many positions."""
TAIL_WORD = np.uint32(1 << 10)
"""Radius words below this are refined by more bits."""
REST_COUNTER = 1 << 30
"""Added once, twice and three times to the position of a counter for the other 96 bits of a grid value."""
MOST_GRID_SIGMA = 4.0
"""Beyond it the table of grid noise grows long and images drown."""
_GUIDE_BITS = 12

_LN2 = np.float32(np.log(2.0))
_HALF_PI = np.float32(np.pi / 2)


@dataclass(frozen=True)
class NoiseStream:
    """The draws of one stage for one image and seed: 128 bits that no other stream has."""

    key: int
    nonce: int

    def standard_normal(self, draw: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The noise of one draw, standard normal in float32."""
        size = int(np.prod(shape))
        if not 0 <= draw < 2**32 or size > 4 * TAIL_COUNTER:
            raise InputError(f"draw and shape must fit the 64-bit counter, got {draw} and {shape}")
        values = np.empty((-(-size // (4 * CHUNK)), 4, CHUNK), np.float32)
        _fill_standard_normal(values, np.uint64(self.key), np.uint64(self.nonce), np.uint64(draw))
        return values.reshape(-1)[:size].reshape(shape)

    def grid(self, draw: int, shape: tuple[int, ...], table: GridTable) -> NDArray[np.int32]:
        """The noise of one draw in whole grey levels, by the law of the table."""
        size = int(np.prod(shape))
        if not 0 <= draw < 2**32 or size > 4 * REST_COUNTER:
            raise InputError(f"draw and shape must fit the 64-bit counter, got {draw} and {shape}")
        values = np.empty((-(-size // (4 * CHUNK)), 4, CHUNK), np.int32)
        name = np.uint64(self.key), np.uint64(self.nonce), np.uint64(draw)
        _fill_grid(values, *name, table.high, table.rest, table.guide, np.int32(table.law.least))
        return values.reshape(-1)[:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class GridTable:
    """The law of rounded noise as the look-up wants it: thresholds parted into their first 32 and other 96 bits."""

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
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(32 - _GUIDE_BITS)
    guide = np.searchsorted(high, starts, side="left").astype(np.int32)
    return GridTable(law, high, np.array([*words, [0, 0, 0]], np.uint32), guide)


@lru_cache(maxsize=4)
def grid_table(sigma: float) -> GridTable:
    """The table of round(255 * sigma * z) for a standard normal z."""
    if not 0 < sigma <= MOST_GRID_SIGMA:
        raise InputError(f"sigma must be at most {MOST_GRID_SIGMA:g} with grid noise, got {sigma}")
    return grid_table_of(rounded_normal(255 * Fraction(sigma)))


def grid_distance(*, sigma: float, draws: int, values: int) -> float:
    """What the finite table can add to alpha: total variation of all values of all draws from the exact law."""
    return draws * values * grid_table(sigma).law.distance


def whole_grey_levels(pixels: NDArray[np.float32]) -> NDArray[np.int32]:
    """The 8-bit values of an image in [0, 1]; an image that is not 8-bit is refused."""
    levels = np.rint(pixels * np.float32(255)).astype(np.int32)
    if not np.array_equal(levels.astype(np.float32) / np.float32(255), pixels):
        raise InputError(
            "image must be 8-bit (whole multiples of 1/255) for grid noise, got values between; use noise='gaussian'"
        )
    return levels


def perturbation(
    pixels: NDArray[np.float32], *, sigma: float, noise: Noise
) -> Callable[[NoiseStream, int, NDArray[np.float32]], None]:
    """A function that writes x + eps, for a draw of a stream, into an array of the image's shape."""

    def add_gaussian(stream: NoiseStream, draw: int, out: NDArray[np.float32]) -> None:
        np.multiply(stream.standard_normal(draw, pixels.shape), np.float32(sigma), out=out)
        out += pixels

    if noise == "gaussian":
        return add_gaussian
    levels, table = whole_grey_levels(pixels), grid_table(sigma)

    def add_grid(stream: NoiseStream, draw: int, out: NDArray[np.float32]) -> None:
        out[...] = levels + stream.grid(draw, pixels.shape, table)
        out /= np.float32(255)  # one correctly rounded division: a function of the whole number alone

    return add_grid


def noise_stream(*, seed: int, image_key: str, stage: Stage) -> NoiseStream:
    """The stream of (seed, image key, stage): 128 bits of their SHA-256."""
    identity = f"certiseg noise 1\0{seed}\0{image_key}\0{stage}".encode()
    digest = hashlib.sha256(identity).digest()
    return NoiseStream(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))


def image_key(pixels: NDArray[np.float32]) -> str:
    """The hash of the decoded pixels (H, W, 3) in [0, 1], which stands for the image."""
    pixels = np.ascontiguousarray(pixels, dtype="<f4")
    return hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).hexdigest()


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Philox4x32-10: four words of counter and two of key to four random words, each 32 bits held in a uint64."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a = np.uint64(0xD2511F53) * c0
        b = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> shift) ^ c1 ^ k0, b & low, (a >> shift) ^ c3 ^ k1, a & low
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _log(u: Any) -> Any:
    """Natural logarithm of a positive float32, by ln m = 2 artanh((m-1)/(m+1)) for m in [1/sqrt(2), sqrt(2))."""
    bits = np.float32(u).view(np.int32)
    exponent = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    m = np.int32(bits - (exponent << np.int32(23))).view(np.float32)
    s = (m - np.float32(1)) / (m + np.float32(1))
    q = s * s
    series = np.float32(1 / 7) + q * np.float32(1 / 9)
    series = np.float32(1 / 3) + q * (np.float32(1 / 5) + q * series)
    return np.float32(exponent) * _LN2 + np.float32(2) * s * (np.float32(1) + q * series)


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _pair(u: Any, angle_bits: Any) -> Any:
    """Two standard normal values from a uniform u and 32 bits of angle.

    30 bits give an angle t in (-pi/4, pi/4); one bit turns it by half a turn, one swaps the axes.
    """
    r = np.sqrt(np.float32(-2) * _log(u))
    t = np.float32(np.int32(angle_bits >> np.uint32(2)) - np.int32(1 << 29)) * (np.float32(2.0**-30) * _HALF_PI)
    q = t * t
    sine = np.float32(-1 / 5040) + q * np.float32(1 / 362880)
    sine = t * (np.float32(1) + q * (np.float32(-1 / 6) + q * (np.float32(1 / 120) + q * sine)))
    cosine = np.float32(-1 / 720) + q * np.float32(1 / 40320)
    cosine = np.float32(1) + q * (np.float32(-1 / 2) + q * (np.float32(1 / 24) + q * cosine))
    signed = r * np.float32(np.int32(1) - np.int32(angle_bits & np.uint32(2)))
    swap = (angle_bits & np.uint32(1)) != np.uint32(0)
    return signed * (sine if swap else cosine), signed * (cosine if swap else sine)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_words(words: Any, key: Any, nonce: Any, draw: Any, first: Any) -> None:
    """words[w, i]: word w of the counter (nonce, draw, first + i)."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i in range(words.shape[1]):
        w0, w1, w2, w3 = philox(
            (first + np.uint64(i)) & low, draw, nonce & low, nonce >> shift, key & low, key >> shift
        )
        words[0, i], words[1, i] = np.uint32(w0), np.uint32(w1)
        words[2, i], words[3, i] = np.uint32(w2), np.uint32(w3)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _box_muller(radius_words: Any, angle_words: Any, first: Any, second: Any) -> None:
    for i in range(CHUNK):
        # Halving before the conversion keeps the word inside int32, which processors convert in vectors.
        u = (np.float32(np.int32(radius_words[i] >> np.uint32(1))) + np.float32(0.5)) * np.float32(2.0**-31)
        first[i], second[i] = _pair(u, angle_words[i])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _widen_tail(radius_words: Any, angle_words: Any, extra: Any, first: Any, second: Any) -> None:
    """Values whose radius word is tiny again, from 32 more bits, so that tails end beyond nine deviations."""
    for i in range(CHUNK):
        if radius_words[i] < TAIL_WORD:
            u = (np.float64(radius_words[i]) + (np.float64(extra[i]) + 0.5) * 2.0**-32) * 2.0**-32
            first[i], second[i] = _pair(np.float32(u), angle_words[i])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_standard_normal(values: Any, key: Any, nonce: Any, draw: Any) -> None:
    words, extra = np.empty((4, CHUNK), np.uint32), np.empty((4, CHUNK), np.uint32)
    for chunk in range(values.shape[0]):
        out, position = values[chunk], np.uint64(chunk * CHUNK)
        _fill_words(words, key, nonce, draw, position)
        for w in range(0, 4, 2):
            _box_muller(words[w], words[w + 1], out[w], out[w + 1])
            if words[w].min() < TAIL_WORD:
                _fill_words(extra, key, nonce, draw, position + np.uint64(TAIL_COUNTER))
                _widen_tail(words[w], words[w + 1], extra[w], out[w], out[w + 1])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_grid(values: Any, key: Any, nonce: Any, draw: Any, high: Any, rest: Any, guide: Any, least: Any) -> None:
    """values: the least value plus the number of thresholds that the 128 bits of each position reach."""
    words, more = np.empty((4, CHUNK), np.uint32), np.empty((3, 4, CHUNK), np.uint32)
    for chunk in range(values.shape[0]):
        position = np.uint64(chunk * CHUNK)
        _fill_words(words, key, nonce, draw, position)
        undecided = False
        for w in range(4):
            for i in range(CHUNK):
                word = np.uint64(words[w, i])
                place = guide[word >> np.uint64(32 - _GUIDE_BITS)]
                while high[place] < word:
                    place += 1
                undecided |= high[place] == word
                values[chunk, w, i] = least + place
        if undecided:
            for k in range(3):
                _fill_words(more[k], key, nonce, draw, position + np.uint64((k + 1) * REST_COUNTER))
            _decide(values[chunk], words, more, high, rest, least)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _decide(values: Any, words: Any, more: Any, high: Any, rest: Any, least: Any) -> None:
    """Pass the thresholds that begin like the word and are not above its other bits."""
    for w in range(4):
        for i in range(CHUNK):
            place = values[w, i] - least
            while high[place] == np.uint64(words[w, i]) and _reaches(more[:, w, i], rest[place]):
                place += 1
            values[w, i] = least + place


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _reaches(bits: Any, threshold: Any) -> Any:
    """bits >= threshold, for three words each, the first the highest."""
    for k in range(3):
        if bits[k] != threshold[k]:
            return bits[k] > threshold[k]
    return True
