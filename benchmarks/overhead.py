"""How much longer a certificate takes than the same forward passes of the bare network, noisy inputs precomputed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import hrnet, street_pixels
from certiseg.models.backends import with_backend
from certiseg.models.preparation import prepare
from certiseg.models.segmenter import as_batch
from certiseg.noise import noise_stream
from certiseg.noise.gaussian import standard_normal


def bare_passes(segmenter: cs.Segmenter, pixels: NDArray[np.float32], draws: int) -> Callable[[], None]:
    """The network itself, one call per draw: images are noisy, normalised and in their memory format beforehand."""
    rng = np.random.Generator(np.random.Philox(0))
    noisy = [pixels + np.float32(0.25) * rng.standard_normal(pixels.shape, np.float32) for _ in range(draws)]
    prepared = [prepare(as_batch(image[None]), segmenter.settings)[0] for image in noisy]

    def run() -> None:
        with torch.inference_mode():
            for images in prepared:
                segmenter.model(images)

    return run


def overhead(
    segmenter: cs.Segmenter, pixels: NDArray[np.float32], hierarchy: cs.Hierarchy, *, n0: int, n: int, repeats: int
) -> float:
    """sample + certify (nested) over n0 + n bare passes."""

    def certificate() -> Any:
        votes = cs.sample(segmenter, pixels, sigma=0.25, n0=n0, n=n, batch_size=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few draws certify nothing, in the same time
            return cs.certify(votes, hierarchy, method="nested")

    return interleaved_ratio(certificate, bare_passes(segmenter, pixels, n0 + n), repeats=repeats)


def measure(*, draws: int = 100, repeats: int = 3) -> list[Figure]:
    """`compact` in torch and in its fastest backend, HRNet-W48, and the noise alone."""
    pixels, camvid = street_pixels(), cs.load_hierarchy("camvid")
    model = cs.load_model("compact")
    fast = with_backend(model, "auto", (360, 480))
    figures = []
    for segmenter in (model, *([fast] if fast.backend != "torch" else [])):
        ratio = overhead(segmenter, pixels, camvid, n0=draws // 10, n=draws, repeats=repeats)
        name = f"sample + certify over bare forward passes, compact ({segmenter.backend}) 480x360, n = {draws}"
        figures.append(Figure(name, ratio, 1.10, "<="))
    large = street_pixels(512, 1024)
    ratio = overhead(hrnet(), large, cs.load_hierarchy("cityscapes"), n0=1, n=4, repeats=3)
    figures.append(Figure("the same, HRNet-W48 512x1024, n = 4", ratio, 1.03, "<="))
    return [*figures, noise_share(model, pixels)]


def noise_share(segmenter: cs.Segmenter, pixels: NDArray[np.float32]) -> Figure:
    """One draw of noise over one bare pass."""
    stream = noise_stream(seed=0, image_key="", stage="estimation")
    ratio = interleaved_ratio(
        lambda: standard_normal(stream, 0, pixels.shape), bare_passes(segmenter, pixels, 1), repeats=21
    )
    return Figure("noise of a draw over a bare forward pass, compact 480x360", ratio, 0.05, "<=")
