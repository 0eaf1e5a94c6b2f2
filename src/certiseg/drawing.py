"""Noisy images and what the model says about them, batch by batch; noise is made beside the model where a core is free.

Noise and counts do not depend on who makes them or when, so a thread more changes no vote.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg import on_device
from certiseg.errors import InputError
from certiseg.kernels.threads import ahead, core_is_free
from certiseg.models.segmenter import Segmenter, as_batch
from certiseg.noise import noise_stream, perturbation
from certiseg.noise.along_threat import moved_images
from certiseg.partial_votes import PartialVotes
from certiseg.settings import SamplingSettings, Stage

if TYPE_CHECKING:
    from certiseg.models.outputs import Answers

_MOST_BESIDE = 1 << 26
"""Bytes of a batch above which noise is not made ahead: it takes memory for one more."""


def works_beside(partial: PartialVotes) -> bool:
    """Whether noise and counts are made while the model runs: it must leave a core free, and batches be small."""
    batch = 4 * partial.settings.batch_size * partial.size[0] * partial.size[1] * int(partial.model.get("channels", 3))
    return batch <= _MOST_BESIDE and core_is_free(torch.get_num_threads())


def answers(
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    partial: PartialVotes,
    stage: Stage,
    draws: list[int],
    *,
    beside: bool = False,
) -> Iterator[tuple[list[int], Answers]]:
    """Batches of draws with the model's scores of x + eps, or of T_beta x + eps.

    beside: the noise of the next batch is made while the model runs, and an answer may be read while the next is made,
        so it is copied: a model may use the same memory for all its answers, or that of the image.
    """
    size = partial.settings.batch_size
    inputs = _inputs(pixels, partial.settings, partial.key, stage, segmenter.device, buffers=2 if beside else 1)
    batches = [draws[begin : begin + size] for begin in range(0, len(draws), size)]
    images = (inputs(batch + batch[:1] * (size - len(batch))) for batch in batches)
    for batch, noisy in zip(batches, ahead(images) if beside else images, strict=True):
        try:
            scores = segmenter(noisy)
        except InputError as error:
            raise InputError(f"{error} ({stage} draw {batch[0]})") from None
        scores = scores.take(len(batch))
        yield batch, scores.copied() if beside else scores


def _inputs(
    pixels: NDArray[np.float32],
    settings: SamplingSettings,
    key: str,
    stage: Stage,
    device: torch.device,
    *,
    buffers: int,
) -> Callable[[list[int]], Tensor]:
    """A function that makes what the model is asked about in a batch of draws, in so many buffers by turns."""
    if settings.threat.law != "none":
        write = moved_images(pixels, settings, image_key=key, stage=stage)
    else:
        stream = noise_stream(seed=settings.seed, image_key=key, stage=stage)
        if on_device.serves(device):
            return on_device.noisy_images(pixels, settings, stream, device)
        write = functools.partial(perturbation(pixels, sigma=settings.sigma, noise=settings.noise), stream)
    turns = itertools.cycle([np.empty((settings.batch_size, *pixels.shape), np.float32) for _ in range(buffers)])

    def images(batch: list[int]) -> Tensor:
        noisy = next(turns)
        for row, index in enumerate(batch):
            if row and index == batch[0]:
                noisy[row] = noisy[0]
            else:
                write(index, noisy[row])
        return as_batch(noisy)

    return images
