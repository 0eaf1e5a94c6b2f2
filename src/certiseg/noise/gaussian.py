"""Standard normal noise in 32 bits, by Box-Muller from two words of the counter for two values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.kernels.noise import TAIL_COUNTER, add_standard_normal, fill_standard_normal
from certiseg.kernels.threads import in_parts

if TYPE_CHECKING:
    from certiseg.noise.stream import NoiseStream


def standard_normal(stream: NoiseStream, draw: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The noise of one draw of a stream."""
    values = np.empty(stream.chunks(draw, shape, most=4 * TAIL_COUNTER), np.float32)
    fill_standard_normal(values, np.uint64(stream.key), np.uint64(stream.nonce), np.uint64(draw))
    size = int(np.prod(shape))
    return values.reshape(-1)[:size].reshape(shape)


def add_noise(
    stream: NoiseStream, draw: int, image: NDArray[np.float32], sigma: float, out: NDArray[np.float32]
) -> None:
    """out = image + sigma * the noise of one draw; out may be the image itself."""
    chunks, *of_chunk = stream.chunks(draw, image.shape, most=4 * TAIL_COUNTER)
    assert out.flags.c_contiguous, "written in the order of the draw"
    name = np.uint64(stream.key), np.uint64(stream.nonce), np.uint64(draw)
    flat = np.ascontiguousarray(image).reshape(-1), np.float32(sigma), out.reshape(-1)
    in_parts(add_standard_normal, chunks, int(np.prod(of_chunk)), *flat, *name)
