"""Independent noise by counter. `perturbation` writes x + eps for a draw of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.noise.gaussian import add_noise
from certiseg.noise.grid import grid_noise, grid_table, whole_grey_levels
from certiseg.noise.stream import NoiseStream, image_key, noise_stream, require_image

if TYPE_CHECKING:
    from certiseg.settings import Noise

Perturbation = Callable[[NoiseStream, int, NDArray[np.float32]], None]


def perturbation(pixels: NDArray[np.float32], *, sigma: float, noise: Noise) -> Perturbation:
    """A function that writes x + eps, for a draw of a stream, into an array of the image's shape."""

    def add_gaussian(stream: NoiseStream, draw: int, out: NDArray[np.float32]) -> None:
        add_noise(stream, draw, pixels, sigma, out)

    if noise == "gaussian":
        return add_gaussian
    levels, table = whole_grey_levels(pixels), grid_table(sigma)

    def add_grid(stream: NoiseStream, draw: int, out: NDArray[np.float32]) -> None:
        out[...] = levels + grid_noise(stream, draw, pixels.shape, table)
        out /= np.float32(255)  # one correctly rounded division: a function of the whole number alone

    return add_grid


__all__ = ["NoiseStream", "Perturbation", "image_key", "noise_stream", "perturbation", "require_image"]
