"""Streams of draws by counter: every draw is a function of (seed, image key, stage, draw index) alone.

Philox maps a 64-bit key and a 128-bit counter to random words. Key and upper half of the counter are 128 bits of a
hash of (seed, image key, stage); the lower half holds draw index and position. So no two draws share noise, and order,
batch size, workers and restarts cannot change any of them. On an accelerator the same bits are made by operations of
torch: see `on_device`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.kernels.noise import CHUNK

if TYPE_CHECKING:
    from certiseg.settings import Stage


@dataclass(frozen=True)
class NoiseStream:
    """The draws of one stage for one image and seed: 128 bits that no other stream has."""

    key: int
    nonce: int

    def chunks(self, draw: int, shape: tuple[int, ...], *, most: int) -> tuple[int, int, int]:
        """The shape of whole chunks of values that cover a draw; more values than the counter has are refused."""
        size = int(np.prod(shape))
        if not 0 <= draw < 2**32 or size > most:
            raise InputError(f"draw and shape must fit the 64-bit counter, got {draw} and {shape}")
        return -(-size // (4 * CHUNK)), 4, CHUNK


def noise_stream(*, seed: int, image_key: str, stage: Stage, along: Sequence[str] = ()) -> NoiseStream:
    """The stream of (seed, image key, stage): 128 bits of their SHA-256.

    along: what else tells it from others where a threat is drawn: threat, anchor, and what the stream is for.
    """
    identity = "\0".join(["certiseg noise 1", f"{seed}", image_key, stage, *along])
    digest = hashlib.sha256(identity.encode()).digest()
    return NoiseStream(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))


def image_key(pixels: NDArray[np.float32]) -> str:
    """The hash of the decoded pixels (H, W, channels) in [0, 1], which stands for the image."""
    pixels = np.ascontiguousarray(pixels, dtype="<f4")
    hashed = hashlib.sha256(f"{pixels.shape}".encode())
    hashed.update(pixels.data)
    return hashed.hexdigest()


def require_image(pixels: NDArray[np.float32], key: str | None, what: str) -> None:
    """Refuse other pixels than those of a key, where it is known; what: the image, in a message."""
    if key is not None and image_key(pixels) != key:
        raise InputError(f"{what} must be the image that was certified, but its pixels are others")
