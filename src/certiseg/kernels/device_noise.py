"""The noise of `kernels.noise` as torch operations, which run where their tensors are and give the same bits.

Each operation rounds once, as in the loops: nothing is contracted, and no division becomes a product with a reciprocal.
Words are 32 bits held in an int64, whose products wrap around.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.kernels.noise import CHUNK, REST_COUNTER, TAIL_COUNTER, TAIL_WORD

_LOW = 0xFFFFFFFF
_LN2 = float(np.float32(np.log(2.0)))
_ANGLE = float(np.float32(2.0**-30) * np.float32(math.pi / 2))

Words: TypeAlias = "Tensor | int"
Name = tuple[int, int]
"""Key and nonce of a stream."""


def standard_normal(name: Name, draws: Tensor, size: int) -> Tensor:
    """(draws, size) float32: the first `size` standard normal values of each draw of a stream."""
    positions = _positions(size, draws.device)
    words = _words(name, draws[:, None], positions)
    values: list[Tensor] = []
    for w in (0, 2):
        radius, angle = words[w], words[w + 1]
        u = ((radius >> 1).to(torch.float32) + 0.5) * 2.0**-31
        row, place = (radius < int(TAIL_WORD)).nonzero(as_tuple=True)
        extra = _words(name, draws[row], positions[place] + TAIL_COUNTER)[w].double()
        u[row, place] = ((radius[row, place].double() + (extra + 0.5) * 2.0**-32) * 2.0**-32).float()
        values += _pair(u, angle)
    return _in_order(values, size)


def grid(
    name: Name, draws: Tensor, size: int, high: NDArray[np.uint64], rest: NDArray[np.uint32], least: int
) -> Tensor:
    """(draws, size) int64: the least value plus the number of thresholds that the 128 bits of each position reach."""
    positions, device = _positions(size, draws.device), draws.device
    words = _in_order(_words(name, draws[:, None], positions), size)
    firsts = torch.from_numpy(high.astype(np.int64)).to(device)
    places = torch.searchsorted(firsts, words)
    row, value = (firsts[places] == words).nonzero(as_tuple=True)
    if len(row):  # the other 96 bits of the few values whose first 32 bits equal those of a threshold
        w, position = value // CHUNK % 4, value // (4 * CHUNK) * CHUNK + value % CHUNK
        more = [torch.stack(_words(name, draws[row], position + k * REST_COUNTER)) for k in (1, 2, 3)]
        bits = torch.stack([of_all.gather(0, w[None])[0] for of_all in more], 1)
        places[row, value] = _decided(places[row, value], words[row, value], bits, firsts, rest)
    return places + least


def _decided(places: Tensor, words: Tensor, bits: Tensor, firsts: Tensor, rest: NDArray[np.uint32]) -> Tensor:
    """Each place moved past the thresholds that its 128 bits reach; bits: (values, 3)."""
    thresholds = torch.from_numpy(rest.astype(np.int64)).to(places.device)
    while True:
        others = thresholds[places]
        reached = bits[:, 2] >= others[:, 2]
        for k in (1, 0):
            reached = (bits[:, k] > others[:, k]) | ((bits[:, k] == others[:, k]) & reached)
        reached &= firsts[places] == words
        if not bool(reached.any()):
            return places
        places = places + reached


def _positions(size: int, device: torch.device) -> Tensor:
    return torch.arange(-(-size // (4 * CHUNK)) * CHUNK, device=device)


def _in_order(words: list[Tensor], size: int) -> Tensor:
    """Value w * CHUNK + i of a chunk comes from word w of its counter i."""
    chunks = torch.stack([word.reshape(len(word), -1, CHUNK) for word in words], 2)
    return chunks.flatten(1)[:, :size].contiguous()


def _words(name: Name, draws: Tensor, positions: Tensor) -> list[Tensor]:
    """Philox4x32-10 of the counters (nonce, draw, position): four words each."""
    key, nonce = name
    k0, k1 = key & _LOW, key >> 32
    c0: Words = positions
    c1: Words = draws
    c2: Words = nonce & _LOW
    c3: Words = nonce >> 32
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = ((b >> 32) & _LOW) ^ c1 ^ k0, b & _LOW, ((a >> 32) & _LOW) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    found = [word for word in (c0, c1, c2, c3) if isinstance(word, Tensor)]
    assert len(found) == 4, "ten rounds mix all of the counter"
    return found


def _log(u: Tensor) -> Tensor:
    bits = u.view(torch.int32)
    exponent = (bits - 0x3F3504F3) >> 23
    m = (bits - (exponent << 23)).view(torch.float32)
    s = (m - 1) / (m + 1)
    q = s * s
    series = q * (1 / 9) + 1 / 7
    series = q * (q * series + 1 / 5) + 1 / 3
    return exponent.float() * _LN2 + (2 * s) * (q * series + 1)


def _pair(u: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Two standard normal values from a uniform u and 32 bits of angle."""
    r = (_log(u) * -2).double().sqrt().float()  # rounded correctly, as some libraries' root in 32 bits is not
    t = ((angle >> 2) - (1 << 29)).float() * _ANGLE
    q = t * t
    sine = q * (1 / 362880) + -1 / 5040
    sine = t * (q * (q * (q * sine + 1 / 120) + -1 / 6) + 1)
    cosine = q * (1 / 40320) + -1 / 720
    cosine = q * (q * (q * cosine + 1 / 24) + -1 / 2) + 1
    signed = r * (1 - (angle & 2)).float()
    swap = (angle & 1) != 0
    return signed * torch.where(swap, sine, cosine), signed * torch.where(swap, cosine, sine)
