"""Adaptation without labels: normalisation statistics re-estimated under noise.

A network trained on clean images fails under noise first of all because BatchNorm's stored means and variances are
those of clean features. Passing noisy images through once and storing their statistics instead repairs much of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.models.segmenter import Segmenter, as_batch


def adapt_normalisation(
    segmenter: Segmenter, images: Sequence[NDArray[np.float32]], *, sigma: float, batch_size: int = 4, seed: int = 0
) -> Iterator[int]:
    """Replace the statistics of every BatchNorm layer by those of the images under noise; yields images done so far.

    Statistics are averaged over all batches, every batch weighing the same. Weights are not touched. At least two
    images go into a batch, because layers behind a global average see one value per image.
    """
    layers = normalisation_layers(segmenter)
    if len(images) < 2:
        raise InputError(f"images must be at least two, got {len(images)}")
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a plain average instead of a running one
        layer.train()
    try:
        for done, batch in noisy_batches(images, sigma=sigma, batch_size=batch_size, seed=seed):
            segmenter(as_batch(batch))
            yield done
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
            layer.eval()


def normalisation_layers(segmenter: Segmenter) -> list[_BatchNorm]:
    """The BatchNorm layers with stored statistics; a model without any is refused."""
    if not isinstance(segmenter.model, nn.Module):
        raise InputError(f"model must be a torch network to be adapted, got {segmenter.name}, which is not")
    layers = [m for m in segmenter.model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    if not layers:
        raise InputError(f"model must have BatchNorm layers to be adapted, got {segmenter.name}, which has none")
    return layers


def noisy_batches(
    images: Sequence[NDArray[np.float32]], *, sigma: float, batch_size: int, seed: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Batches of noisy images (B, H, W, 3), cut to a common size, none of them of a single image."""
    rng = np.random.Generator(np.random.Philox(seed))
    starts = list(range(0, len(images), batch_size))
    if len(images) - starts[-1] == 1:
        starts.pop()
    for position, start in enumerate(starts):
        end = len(images) if position == len(starts) - 1 else start + batch_size
        height, width = (min(image.shape[axis] for image in images[start:end]) for axis in (0, 1))
        batch = np.stack([image[:height, :width] for image in images[start:end]])
        yield end, batch + np.float32(sigma) * rng.standard_normal(batch.shape, np.float32)


def noisy_accuracy(
    segmenter: Segmenter,
    images: Sequence[NDArray[np.float32]],
    labels: Sequence[NDArray[np.integer]],
    *,
    sigma: float,
    seed: int = 0,
) -> float:
    """Share of the labelled pixels that the model gets right under one draw of noise per image."""
    rng = np.random.Generator(np.random.Philox(seed))
    right = total = 0
    for image, label in zip(images, labels, strict=True):
        noisy = image + np.float32(sigma) * rng.standard_normal(image.shape, np.float32)
        predicted = segmenter(as_batch(noisy[None])).labels()[0]
        known = label != VOID
        right += int((predicted[known] == label[known]).sum())
        total += int(known.sum())
    return right / total if total else float("nan")
