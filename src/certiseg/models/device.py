"""Where a model runs and on how many threads: moved after it was made, since weights are loaded on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter


def device_type(device: str) -> str:
    """The kind of a device, cpu or cuda, as the manifest has it."""
    import torch

    try:
        return torch.device(device).type
    except RuntimeError as error:
        raise _unknown(device, error) from None


def move(segmenter: Segmenter, device: str, number: int = 0) -> Segmenter:
    """The segmenter on a device; `cuda` without an index gives the accelerators in turn to workers 0, 1, 2, ..."""
    import torch

    if device == "cpu":
        return segmenter
    try:
        chosen = torch.device(device)
        if chosen.type == "cuda":
            keep_exact()
        if chosen.type == "cuda" and chosen.index is None and torch.cuda.device_count():
            chosen = torch.device("cuda", number % torch.cuda.device_count())
        for part in (segmenter.model, segmenter.denoising and segmenter.denoising.denoiser):
            if isinstance(part, torch.nn.Module):
                part.to(chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise _unknown(device, error) from None
    return segmenter


def keep_exact() -> None:
    """No arithmetic of fewer bits that nobody asked for, and no algorithm that depends on chance or on a short race."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def _unknown(device: str, error: Exception) -> InputError:
    reason = str(error).strip().splitlines()[0].removesuffix(".")[:120]
    return InputError(f"device must be one of this machine, such as cpu or cuda, got {device!r} ({reason})")


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """That many threads of torch inside, the former number afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
