"""Noisy images and what the model says about them, batch by batch.

Noise is made beside the model where it leaves a core free. A model that several threads may ask at once is asked in
lanes: each makes the noise of its draws, asks, and reads the answer, on a share of the threads, which is faster than
all threads for one call. Noise and counts do not depend on who makes them or when, so neither changes a vote.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg import on_device
from certiseg.errors import InputError
from certiseg.kernels.threads import ahead, core_is_free, in_lanes
from certiseg.models.segmenter import Segmenter, as_batch
from certiseg.noise import noise_stream, perturbation
from certiseg.noise.along_threat import moved_images
from certiseg.partial_votes import PartialVotes
from certiseg.settings import SamplingSettings, Stage

if TYPE_CHECKING:
    from certiseg.models.outputs import Answers

_MOST_BESIDE = 1 << 26
"""Bytes of a batch above which noise is not made ahead: it takes memory for one more."""
_MOST_LANES = 8
_MOST_IN_LANES = 1 << 24
"""Bytes of the batches of all lanes: a call of HRNet takes up to seventy times as much as its images, so about 1 GB."""
_DRAWS_PER_LANE = 8
"""With fewer, the call without noise, which has no lane beside it, would cost more than lanes save."""


def lanes_of(segmenter: Segmenter, batch_bytes: int, draws: int | None = None, *, threads: int = 1) -> int:
    """How many calls of the model run at once, at so many of torch's threads each; draws: None stands for many.

    Under torch's autocast, which belongs to the thread that asked for it, there is one lane.
    """
    if not segmenter.reentrant or segmenter.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return 1
    room = min(_MOST_LANES, _MOST_IN_LANES // batch_bytes, torch.get_num_threads() // threads)
    return max(1, room if draws is None else min(room, draws // _DRAWS_PER_LANE))


def threads_of_a_call(segmenter: Segmenter, batch_bytes: int, draws: int) -> int:
    """On how many threads the model runs: all that torch has, or one lane's share of them, rounded up."""
    return -(-torch.get_num_threads() // lanes_of(segmenter, batch_bytes, draws))


def works_beside(partial: PartialVotes) -> bool:
    """Whether noise and counts are made while the model runs: it must leave a core free, and batches be small."""
    batch = 4 * partial.settings.batch_size * partial.size[0] * partial.size[1] * int(partial.model.get("channels", 3))
    return batch <= _MOST_BESIDE and core_is_free(torch.get_num_threads())


def ask_in_lanes(
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    partial: PartialVotes,
    stage: Stage,
    draws: list[int],
    *,
    lanes: int,
    take: Callable[[list[int], Answers], None],
) -> None:
    """Batches of draws on so many threads at once; take(batch, scores) is called on each of them.

    What goes wrong in one lane, or interrupts this one, ends the others after their batch.
    """
    batches, guard, threads = iter(_batches(partial, draws)), threading.Lock(), torch.get_num_threads()

    def lane() -> None:
        try:
            torch.set_num_threads(threads)  # OpenMP counts them per thread
            inputs = _inputs(pixels, partial.settings, partial.key, stage, segmenter.device, buffers=1)
            while True:
                with guard:
                    batch = next(batches, None)
                if batch is None:
                    return
                take(batch, _asked(segmenter, inputs(_filled(partial, batch)), stage, batch))
        except BaseException:
            with guard:
                list(batches)
            raise

    in_lanes(lane, lanes)


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
    inputs = _inputs(pixels, partial.settings, partial.key, stage, segmenter.device, buffers=2 if beside else 1)
    batches = _batches(partial, draws)
    images = (inputs(_filled(partial, batch)) for batch in batches)
    for batch, noisy in zip(batches, ahead(images) if beside else images, strict=True):
        scores = _asked(segmenter, noisy, stage, batch)
        yield batch, scores.copied() if beside else scores


def _batches(partial: PartialVotes, draws: list[int]) -> list[list[int]]:
    size = partial.settings.batch_size
    return [draws[begin : begin + size] for begin in range(0, len(draws), size)]


def _filled(partial: PartialVotes, batch: list[int]) -> list[int]:
    """A last incomplete batch filled up, so that every call of the model has the same size."""
    return batch + batch[:1] * (partial.settings.batch_size - len(batch))


def _asked(segmenter: Segmenter, noisy: Tensor, stage: Stage, batch: list[int]) -> Answers:
    try:
        return segmenter(noisy).take(len(batch))
    except InputError as error:
        raise InputError(f"{error} ({stage} draw {batch[0]})") from None


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
    shape = (settings.batch_size, *pixels.shape)

    def fill(noisy: NDArray[np.float32], batch: list[int]) -> None:
        for row, index in enumerate(batch):
            if row and index == batch[0]:
                noisy[row] = noisy[0]
            else:
                write(index, noisy[row])

    if on_device.serves(device):
        crossings = itertools.cycle([on_device.Crossing(shape, device) for _ in range(2)])

        def there(batch: list[int]) -> Tensor:
            crossing = next(crossings)
            fill(crossing.array(), batch)
            return crossing.moved()

        return there
    turns = itertools.cycle([np.empty(shape, np.float32) for _ in range(buffers)])

    def here(batch: list[int]) -> Tensor:
        noisy = next(turns)
        fill(noisy, batch)
        return as_batch(noisy)

    return here
