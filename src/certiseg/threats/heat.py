"""Blur by heat flow, which composes exactly, as a sampled and cut-off Gaussian kernel does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certiseg.threats.base import Path, Pixels, Threat
from certiseg.words import no_more


@dataclass(frozen=True, eq=False)
class Blur(Threat):
    """T_t = e^(-t A), A the 5-point Laplacian with mirrored borders: a Gaussian of deviation sqrt(2 t) pixels."""

    name = "blur"

    def along(self, pixels: Pixels) -> Path:
        from scipy.fft import dctn, idctn

        # A is diagonal in the cosine basis (DCT-II), with eigenvalues 2 - 2 cos(pi k / size) along each side.
        rows, columns = (2 - 2 * np.cos(np.pi * np.arange(size) / size) for size in pixels.shape[:2])
        waves = dctn(np.moveaxis(pixels, -1, 0), axes=(1, 2), norm="ortho").astype(np.float32)

        def flow(t: float, out: Pixels) -> None:
            damped = waves * np.exp(-t * rows).astype(np.float32)[:, None]
            damped *= np.exp(-t * columns).astype(np.float32)
            blurred = idctn(damped, axes=(1, 2), norm="ortho", overwrite_x=True)
            np.clip(np.moveaxis(blurred, 0, -1), 0, 1, out=out)  # rounding alone can leave [0, 1]

        return flow

    def words(self, t: float) -> str:
        return f"blur of up to {no_more(np.sqrt(2 * t), 2)} pixels"

    def describe(self) -> str:
        return "blur by heat flow with mirrored borders (a Gaussian, by its deviation)"
