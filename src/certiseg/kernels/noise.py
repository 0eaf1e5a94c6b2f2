"""Loops that make noise: Philox4x32-10, Box-Muller, and the look-up of grid noise.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) maps a 64-bit key and a 128-bit counter to four random words. All
arithmetic is 32-bit IEEE without contraction. Logarithm, sine and cosine are short series (relative error below 1e-6)
because the compiler can run those on whole vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels.threads import inline, jit

CHUNK = 1024
"""Counters handled together; value w * CHUNK + i of a chunk comes from word w of counter i."""
TAIL_COUNTER = 1 << 31
"""Added to the position of a counter for the extra bits of a tail value; no image has that many positions."""
TAIL_WORD = np.uint32(1 << 10)
"""Radius words below this are refined by more bits."""
REST_COUNTER = 1 << 30
"""Added once, twice and three times to the position of a counter for the other 96 bits of a grid value."""
GUIDE_BITS = 12
"""First bits of a word that choose where the search in the table of grid noise begins."""

_LN2 = np.float32(np.log(2.0))
_HALF_PI = np.float32(np.pi / 2)


@inline
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


@inline
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


@inline
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


@jit
def fill_words(words: Any, key: Any, nonce: Any, draw: Any, first: Any) -> None:
    """words[w, i]: word w of the counter (nonce, draw, first + i)."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i in range(words.shape[1]):
        w0, w1, w2, w3 = philox(
            (first + np.uint64(i)) & low, draw, nonce & low, nonce >> shift, key & low, key >> shift
        )
        words[0, i], words[1, i] = np.uint32(w0), np.uint32(w1)
        words[2, i], words[3, i] = np.uint32(w2), np.uint32(w3)


@jit
def _box_muller(radius_words: Any, angle_words: Any, first: Any, second: Any) -> None:
    for i in range(CHUNK):
        # Halving before the conversion keeps the word inside int32, which processors convert in vectors.
        u = (np.float32(np.int32(radius_words[i] >> np.uint32(1))) + np.float32(0.5)) * np.float32(2.0**-31)
        first[i], second[i] = _pair(u, angle_words[i])


@jit
def _widen_tail(radius_words: Any, angle_words: Any, extra: Any, first: Any, second: Any) -> None:
    """Values whose radius word is tiny again, from 32 more bits, so that tails end beyond nine deviations."""
    for i in range(CHUNK):
        if radius_words[i] < TAIL_WORD:
            u = (np.float64(radius_words[i]) + (np.float64(extra[i]) + 0.5) * 2.0**-32) * 2.0**-32
            first[i], second[i] = _pair(np.float32(u), angle_words[i])


@jit
def _fill_chunk(out: Any, words: Any, extra: Any, key: Any, nonce: Any, draw: Any, position: Any) -> None:
    """The values (4, CHUNK) of the counters from a position on; words and extra are room to work in."""
    fill_words(words, key, nonce, draw, position)
    for w in range(0, 4, 2):
        _box_muller(words[w], words[w + 1], out[w], out[w + 1])
        if words[w].min() < TAIL_WORD:
            fill_words(extra, key, nonce, draw, position + np.uint64(TAIL_COUNTER))
            _widen_tail(words[w], words[w + 1], extra[w], out[w], out[w + 1])


@jit
def fill_standard_normal(values: Any, key: Any, nonce: Any, draw: Any) -> None:
    """Standard normal values of one draw, (chunks, 4, CHUNK): pairs by Box and Muller from the words of a counter."""
    words, extra = np.empty((4, CHUNK), np.uint32), np.empty((4, CHUNK), np.uint32)
    for chunk in range(values.shape[0]):
        out, position = values[chunk], np.uint64(chunk * CHUNK)
        _fill_chunk(out, words, extra, key, nonce, draw, position)


@jit
def add_standard_normal(
    first: Any, last: Any, image: Any, sigma: Any, out: Any, key: Any, nonce: Any, draw: Any
) -> None:
    """out = image + sigma * the same values, both flat, for the chunks first .. last-1, in one pass over memory."""
    words, extra = np.empty((4, CHUNK), np.uint32), np.empty((4, CHUNK), np.uint32)
    values = np.empty((4, CHUNK), np.float32)
    flat = values.reshape(-1)
    for chunk in range(first, last):
        _fill_chunk(values, words, extra, key, nonce, draw, np.uint64(chunk * CHUNK))
        start = chunk * flat.size
        here, clean = out[start : start + flat.size], image[start : start + flat.size]
        for i in range(here.size):
            here[i] = flat[i] * sigma + clean[i]


@jit
def fill_grid(values: Any, key: Any, nonce: Any, draw: Any, high: Any, rest: Any, guide: Any, least: Any) -> None:
    """values: the least value plus the number of thresholds that the 128 bits of each position reach."""
    words, more = np.empty((4, CHUNK), np.uint32), np.empty((3, 4, CHUNK), np.uint32)
    for chunk in range(values.shape[0]):
        position = np.uint64(chunk * CHUNK)
        fill_words(words, key, nonce, draw, position)
        undecided = False
        for w in range(4):
            for i in range(CHUNK):
                word = np.uint64(words[w, i])
                place = guide[word >> np.uint64(32 - GUIDE_BITS)]
                while high[place] < word:
                    place += 1
                undecided |= high[place] == word
                values[chunk, w, i] = least + place
        if undecided:
            for k in range(3):
                fill_words(more[k], key, nonce, draw, position + np.uint64((k + 1) * REST_COUNTER))
            _decide(values[chunk], words, more, high, rest, least)


@jit
def _decide(values: Any, words: Any, more: Any, high: Any, rest: Any, least: Any) -> None:
    """Settle the values whose first 32 bits equal those of a threshold, by the other 96 bits."""
    for w in range(4):
        for i in range(CHUNK):
            place = values[w, i] - least
            while high[place] == np.uint64(words[w, i]) and _reaches(more[:, w, i], rest[place]):
                place += 1
            values[w, i] = least + place


@jit
def _reaches(bits: Any, threshold: Any) -> Any:
    """bits >= threshold, for three words each, the first the highest."""
    for k in range(3):
        if bits[k] != threshold[k]:
            return bits[k] > threshold[k]
    return True
