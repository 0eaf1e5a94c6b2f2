"""Is the model a function of the image? A few passes before the first draw, and one sentence if it is not.

The proof speaks of one fixed function f of one image. Dropout or BatchNorm in training mode, an output that depends on
the other images of a batch, or a callable that has changed since the last start would all break it unseen.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.models.segmenter import Segmenter, as_batch

if TYPE_CHECKING:
    from certiseg.models.outputs import Answers

_SLACK = 1e-3
"""Difference between two answers, relative to the largest score, that rounding in another order may explain."""
_probed: WeakKeyDictionary[Segmenter, set[int]] = WeakKeyDictionary()


def noise_free(segmenter: Segmenter, pixels: NDArray[np.float32], *, batch_size: int) -> NDArray[np.integer]:
    """(H, W): the labels of an image without noise; the first call for a model checks that it is a function.

    Refused: a network in training mode, one that answers the same image differently, one whose answer depends on the
    rest of its batch.
    """
    _require_evaluation(segmenter)
    alone = np.repeat(pixels[None], batch_size, axis=0)
    if batch_size in _probed.setdefault(segmenter, set()):
        return _labels(segmenter(as_batch(alone)), 0, segmenter)
    beside = alone.copy()
    for place in range(1, batch_size):
        beside[place] = np.roll(pixels, place, axis=(0, 1))[::-1] * np.float32(0.5)
    first, again = segmenter(as_batch(beside)), segmenter(as_batch(alone))
    one, other = first.values[0].double(), again.values[-1].double()
    if float((one - other).abs().max()) > _SLACK * max(1.0, float(one.abs().max())):
        how = "beside other images" if batch_size > 1 else "the second time"
        why = f"it answers differently {how}"
        raise InputError(
            f"model {segmenter.name} must be a fixed function of one image, but {why}; switch off dropout, "
            "statistics of the batch and other randomness"
        )
    _probed[segmenter].add(batch_size)
    return _labels(first, 0, segmenter)


def probe_of(segmenter: Segmenter, prediction: NDArray[np.integer]) -> str | None:
    """A hash of the prediction, for models that nothing else tells apart: plain callables have no weights to hash."""
    if isinstance(segmenter.model, torch.nn.Module) or hasattr(segmenter.model, "fingerprint"):
        return None
    return hashlib.sha256(np.ascontiguousarray(prediction).tobytes()).hexdigest()


def _require_evaluation(segmenter: Segmenter) -> None:
    if isinstance(segmenter.model, torch.nn.Module) and any(part.training for part in segmenter.model.modules()):
        raise InputError(
            f"model {segmenter.name} must be in evaluation mode, got one in training mode; call .eval() on it"
        )


def _labels(scores: Answers, place: int, segmenter: Segmenter) -> NDArray[np.integer]:
    labels: NDArray[np.integer] = scores.labels()[place]
    count = segmenter.num_classes or int(labels.max()) + 1
    return labels.astype(np.uint8 if count <= 256 else np.uint16)
