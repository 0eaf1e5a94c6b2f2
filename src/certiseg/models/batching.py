"""How many draws a call of the model takes: chosen by a short measurement within a memory budget, then fixed."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

from certiseg.models.backends import least_seconds

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

_WORTH = 0.97
"""A larger batch must take less than this share of the time per draw: it costs memory, and more in the last batch."""


def measured_batch_size(
    segmenter: Segmenter, size: tuple[int, int], *, memory: int, channels: int = 3, most: int = 32, at_once: int = 1
) -> int:
    """The batch that takes the least time per draw while the process stays below `memory` bytes.

    1, 2, 4, ... are tried until one is not worth it, or the next one, which takes at most twice as much beyond what
    the process had before, would not fit. at_once: calls that run side by side, which count together. One draw at a
    time is always allowed.
    """
    channels = segmenter.settings.channels or channels
    before = _memory(segmenter.device, peak=False)
    best, least, batch = 1, float("inf"), 1
    while batch <= most:
        _forget_peak(segmenter.device)
        images = torch.rand(
            batch, segmenter.settings.channels or channels, *size, generator=torch.Generator().manual_seed(0)
        )
        taken = least_seconds(segmenter, images) / batch
        if taken > _WORTH * least:
            break
        best, least = batch, taken
        if before + 2 * at_once * (_memory(segmenter.device, peak=True) - before) > memory:
            break
        batch *= 2
    return best


def _memory(device: torch.device, *, peak: bool) -> int:
    """Bytes that are used where the model runs, now or at most since `_forget_peak`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) if peak else torch.cuda.memory_allocated(device)
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        field = "VmHWM:" if peak else "VmRSS:"
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field))
    if resource is None:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
