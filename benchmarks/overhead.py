"""How much longer a certificate takes than the same forward passes of the bare network, noisy inputs precomputed.

The pass without noise, which every certificate holds, is one of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, hrnet, street_pixels
from certiseg.models.backends import with_backend
from certiseg.models.preparation import prepare
from certiseg.models.segmenter import as_batch
from certiseg.noise import noise_stream
from certiseg.noise.gaussian import standard_normal


def bare_passes(segmenter: cs.Segmenter, pixels: NDArray[np.float32], draws: int) -> Callable[[], None]:
    """The network itself, one call per draw: images are noisy, normalised and in their memory format beforehand."""
    rng = np.random.Generator(np.random.Philox(0))
    noisy = [pixels + np.float32(0.25) * rng.standard_normal(pixels.shape, np.float32) for _ in range(draws)]
    prepared = [prepare(as_batch(image[None]).to(segmenter.device), segmenter.settings)[0] for image in noisy]

    def run() -> None:
        with torch.inference_mode():
            for images in prepared:
                segmenter.model(images)

    return run


def overhead(
    segmenter: cs.Segmenter, pixels: NDArray[np.float32], hierarchy: cs.Hierarchy, *, n0: int, n: int, repeats: int
) -> float:
    """sample + certify (nested) over 1 + n0 + n bare passes."""

    def certificate(n0: int, n: int) -> Any:
        votes = cs.sample(segmenter, pixels, sigma=0.25, n0=n0, n=n, batch_size=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few draws certify nothing, in the same time
            return cs.certify(votes, hierarchy, method="nested")

    warm = (partial(certificate, 1, 1), bare_passes(segmenter, pixels, 1))
    bare = bare_passes(segmenter, pixels, 1 + n0 + n)
    return interleaved_ratio(partial(certificate, n0, n), bare, repeats=repeats, warm=warm)


def measure(*, draws: int = 100, repeats: int = 1) -> list[Figure]:
    """`compact` in torch and in its fastest backend, HRNet-W48, and the noise alone."""
    pixels, camvid = street_pixels(), cs.load_hierarchy("camvid")
    model, name = compact(), "sample + certify over bare forward passes"
    fast, figures = with_backend(model, "auto", (360, 480)), []
    for segmenter, which, aim in ((model, "torch", 1.08), (fast, "fastest backend", 1.12)):
        ratio = overhead(segmenter, pixels, camvid, n0=draws // 10, n=draws, repeats=repeats)
        note = "" if segmenter is model else segmenter.backend
        figures.append(Figure(f"{name}, compact ({which}) 480x360, n = {draws}", ratio, aim, "<=", note=note))
    ratio = overhead(hrnet(), street_pixels(512, 1024), cs.load_hierarchy("cityscapes"), n0=2, n=16, repeats=repeats)
    figures.append(Figure(f"{name}, HRNet-W48 1024x512, n = 16", ratio, 1.02, "<="))
    return [*figures, noise_share(model, pixels)]


def noise_share(segmenter: cs.Segmenter, pixels: NDArray[np.float32]) -> Figure:
    """One draw of noise over one bare pass."""
    stream = noise_stream(seed=0, image_key="", stage="estimation")
    ratio = interleaved_ratio(
        lambda: standard_normal(stream, 0, pixels.shape), bare_passes(segmenter, pixels, 1), repeats=21
    )
    return Figure("noise of a draw over a bare forward pass, compact 480x360", ratio, 0.05, "<=")
