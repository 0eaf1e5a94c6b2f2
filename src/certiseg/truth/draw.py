"""One noisy pass: the posteriors of f(x + eps), or of f(T_beta x + eps), in whole numbers; and how many images pass."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from certiseg.drawing import lanes_of
from certiseg.kernels.threads import in_order
from certiseg.models.outputs import inside
from certiseg.models.segmenter import Segmenter, as_batch
from certiseg.noise import noise_stream, perturbation
from certiseg.noise.along_threat import standard_parameter, threat_streams
from certiseg.noise.gaussian import add_noise
from certiseg.truth.scores import UNIT, Fits

if TYPE_CHECKING:
    from certiseg.truth.settings import CalibrationSettings

Task = tuple[Any, ...]
"""The pixels of an image, and what else is needed to work on it."""
Result = TypeVar("Result")


def noisy_image(
    pixels: NDArray[np.float32], settings: CalibrationSettings, *, seed: int, key: str, anchor: float = 0.0
) -> NDArray[np.float32]:
    """What the model is asked about. The noise is a function of (seed, key) and the same at every anchor."""
    threat, noisy = settings.threat, np.empty_like(pixels)
    if threat.law == "none":
        stream = noise_stream(seed=seed, image_key=key, stage="estimation", along=("truth",))
        perturbation(pixels, sigma=settings.sigma, noise="gaussian")(stream, 0, noisy)
        return noisy
    of_parameter, of_pixels = threat_streams(threat, 0.0, seed=seed, image_key=key, stage="estimation")
    threat.require_fits(pixels)
    threat.along(pixels)(anchor + threat.scale * standard_parameter(of_parameter, 0, threat.law), noisy)
    if settings.sigma > 0:
        add_noise(of_pixels, 0, noisy, settings.sigma, noisy)
    return noisy


def posterior_of(segmenter: Segmenter, noisy: NDArray[np.float32], *, temperature: float) -> Fits:
    """The posteriors of one image as it is, where UNIT stands for one."""
    scores = segmenter(as_batch(noisy[None]))
    assert segmenter.num_classes is not None, "known after one answer"
    asked: dict[str, Any] = {"unit": UNIT, "temperature": temperature}
    parts = [(inside(tile), *tile.coarse_posteriors(segmenter.num_classes, **asked)) for tile in scores.tiles]
    return Fits(scores.size, tuple(parts))


def over_images(
    segmenter: Segmenter, work: Callable[..., Result], tasks: Iterable[Task], *, alone: bool = False
) -> Generator[Result, None, None]:
    """work(*task) of all images in their order.

    A model that several threads may ask at once is asked about several images at once, each on a share of the threads;
    a few images are then read ahead. Otherwise, or if they are to be `alone`, one is read and asked about at a time.
    """

    def one(task: Task) -> Result:
        return work(*task)

    def lanes_for(task: Task) -> int:
        return 1 if alone else lanes_of(segmenter, task[0].nbytes)

    for lanes, alike in itertools.groupby(tasks, lanes_for):
        if lanes == 1:
            yield from map(one, alike)
            continue
        begin = functools.partial(torch.set_num_threads, -(-torch.get_num_threads() // lanes))
        try:
            with contextlib.closing(in_order(one, alike, lanes, begin=begin)) as results:
                for found in results:
                    _forget_shares()
                    yield found
        finally:
            _forget_shares()


def _forget_shares() -> None:
    """OpenMP counts threads per thread, but new ones begin with the number that was set last: let it be this one's."""
    torch.set_num_threads(torch.get_num_threads())
