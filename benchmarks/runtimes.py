"""The best backend or memory format over plain eager torch (contiguous memory)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import certiseg as cs
from benchmarks.measure import Figure, interleaved
from benchmarks.models import hrnet
from certiseg.models.backends import available_backends, with_backend


def gain(segmenter: cs.Segmenter, size: tuple[int, int], *, repeats: int) -> tuple[str, float]:
    """The fastest way to run a model, and how many times faster than eager torch it is."""
    images = torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0))
    runs: dict[str, Callable[[], object]] = {}
    for name, layout in (("contiguous", torch.contiguous_format), ("channels_last", torch.channels_last)):
        network: Any = copy.deepcopy(segmenter.model)
        formatted = images.contiguous(memory_format=layout)
        runs[f"torch {name}"] = partial(_pass, network.to(memory_format=layout), formatted)
    for backend in available_backends(segmenter)[1:]:
        runs[backend] = partial(_pass, with_backend(segmenter, backend, size).model, images)
    seconds = dict(zip(runs, interleaved(*runs.values(), repeats=repeats), strict=True))
    best = min(seconds, key=lambda name: seconds[name])
    return best, seconds["torch contiguous"] / seconds[best]


def _pass(model: Callable[[torch.Tensor], object], images: torch.Tensor) -> object:
    with torch.inference_mode():
        return model(images)


def measure() -> list[Figure]:
    """`compact` at 480x360, HRNet-W48 at 512x256."""
    figures = []
    for name, segmenter, size, repeats in (
        ("compact 480x360", cs.load_model("compact"), (360, 480), 21),
        ("HRNet-W48 512x256", hrnet(), (256, 512), 3),
    ):
        best, ratio = gain(segmenter, size, repeats=repeats)
        figures.append(Figure(f"best backend over eager torch, {name}, times faster", ratio, 1.25, ">=", note=best))
    return figures
