"""Noise that looks like matter: one wrapping fractal tile and one white tile, sampled by nearest texel."""

import numpy as np
import numpy.typing as npt

from streets.draws import Draws, stream

Array = npt.NDArray[np.float32]
SIZE = 256


def _double(grid: Array) -> Array:
    """A wrapping grid at twice the resolution, by linear interpolation."""
    wide = np.stack([grid, (grid + np.roll(grid, -1, axis=1)) * np.float32(0.5)], axis=2).reshape(grid.shape[0], -1)
    tall = np.stack([wide, (wide + np.roll(wide, -1, axis=0)) * np.float32(0.5)], axis=1)
    return tall.reshape(2 * grid.shape[0], -1)


def _centred(rng: Draws, size: int) -> Array:
    """Independent uniform values in [-1, 1)."""
    return (rng.random((size, size), dtype=np.float32) - np.float32(0.5)) * np.float32(2.0)


class Grain:
    """The noise of one scene: `fractal` has all scales, `white` has none in common between neighbours."""

    def __init__(self, seed: int) -> None:
        rng = stream(seed, 2)
        grid = _centred(rng, 4)
        strength = 1.0
        while grid.shape[0] < SIZE:
            strength *= 0.62
            grid = _double(grid)
            grid = grid + _centred(rng, grid.shape[0]) * np.float32(strength)
        middle = float(np.median(grid))
        spread = float(np.median(np.abs(grid - np.float32(middle)))) * 3.0
        self.fractal: Array = np.clip((grid - np.float32(middle)) / np.float32(spread), -1.0, 1.0)
        self.white: Array = _centred(rng, SIZE)

    def rough(self, u: Array, v: Array) -> Array:
        """White noise at the texel that holds (u, v); the two broadcast."""
        return self.white[_texel(v), _texel(u)]

    def cloud(self, u: Array, v: Array) -> Array:
        """Fractal noise at the texel that holds (u, v)."""
        return self.fractal[_texel(v), _texel(u)]

    def smooth(self, u: Array, v: Array) -> Array:
        """Fractal noise between texels, by linear interpolation: for slow things such as clouds."""
        left, low = np.floor(u), np.floor(v)
        a, b = u - left, v - low
        i, j = left.astype(np.int32), low.astype(np.int32)
        mask = SIZE - 1
        tile = self.fractal
        near = tile[j & mask, i & mask] * (1 - a) + tile[j & mask, (i + 1) & mask] * a
        far = tile[(j + 1) & mask, i & mask] * (1 - a) + tile[(j + 1) & mask, (i + 1) & mask] * a
        between: Array = near * (1 - b) + far * b
        return between


def _texel(x: Array) -> npt.NDArray[np.int32]:
    """The wrapped texel of a coordinate."""
    return np.floor(x).astype(np.int32) & (SIZE - 1)
