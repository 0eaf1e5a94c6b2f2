"""Masks as run lengths, in the two forms of COCO: numbers, or text of a few letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError


def decode_runs(segmentation: Mapping[str, Any], size: tuple[int, int], source: str) -> NDArray[np.bool_]:
    """The mask (H, W) of run lengths down the columns, outside first: {"size": [H, W], "counts": numbers or text}."""
    counts = segmentation["counts"]
    runs = _from_text(counts) if isinstance(counts, str) else [int(run) for run in counts]
    if tuple(segmentation["size"]) != size or min(runs, default=-1) < 0 or sum(runs) != size[0] * size[1]:
        raise InputError(f"{source}: run lengths must be of the size of the image, {size}, got others")
    flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return np.asarray(flat.reshape(size[::-1]).T)


def _from_text(text: str) -> list[int]:
    """Run lengths from COCO's text: 5 bits a letter, from the third run on the difference to the run two before."""
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    return runs
