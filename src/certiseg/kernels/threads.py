"""How loops are compiled, and how they are run over the parts of a large image."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numba

_PIXELS_PER_THREAD = 50_000

jit = numba.njit(cache=True, nogil=True, error_model="numpy")
inline = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")


def over_pixels(loop: Callable[..., Any], count: int, *arguments: Any) -> list[Any]:
    """Run a loop over `count` pixels, large images on several threads: parts of an image do not touch each other."""
    return _run(loop, count, min(_cores(), count // _PIXELS_PER_THREAD), arguments)


def in_parts(loop: Callable[..., Any], rows: int, width: int, *arguments: Any) -> list[Any]:
    """Run a loop over rows, as `over_pixels`, for loops that take five times as long for a pixel."""
    return _run(loop, rows, min(_cores(), rows, 5 * rows * width // _PIXELS_PER_THREAD), arguments)


def _run(loop: Callable[..., Any], count: int, parts: int, arguments: tuple[Any, ...]) -> list[Any]:
    """What the loop returned for each part."""
    if parts <= 1:
        return [loop(0, count, *arguments)]
    edges = [count * part // parts for part in range(parts + 1)]
    waiting = [_pool().submit(loop, first, last, *arguments) for first, last in pairwise(edges[1:])]
    return [loop(0, edges[1], *arguments), *(part.result() for part in waiting)]


def _cores() -> int:
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="certiseg")
