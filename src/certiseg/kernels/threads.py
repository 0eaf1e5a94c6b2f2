"""How loops are compiled, how they run over the parts of a large image, beside a model, and in lanes around it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numba

Item = TypeVar("Item")
Result = TypeVar("Result")

_PIXELS_PER_THREAD = 50_000
_here = threading.local()

jit = numba.njit(cache=True, nogil=True, error_model="numpy")
inline = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")


def over_pixels(loop: Callable[..., Any], count: int, *arguments: Any) -> list[Any]:
    """Run a loop over `count` pixels, large images on several threads: parts of an image do not touch each other."""
    return _run(loop, count, min(_cores(), count // _PIXELS_PER_THREAD), arguments)


def in_parts(loop: Callable[..., Any], rows: int, width: int, *arguments: Any) -> list[Any]:
    """Run a loop over rows, as `over_pixels`, for loops that take five times as long for a pixel."""
    return _run(loop, rows, min(_cores(), rows, 5 * rows * width // _PIXELS_PER_THREAD), arguments)


def _run(loop: Callable[..., Any], count: int, parts: int, arguments: tuple[Any, ...]) -> list[Any]:
    """What the loop returned for each part; in a lane there is one part, since the other lanes have the other cores."""
    if parts <= 1 or getattr(_here, "in_lane", False):
        return [loop(0, count, *arguments)]
    edges = [count * part // parts for part in range(parts + 1)]
    waiting = [_pool().submit(loop, first, last, *arguments) for first, last in pairwise(edges[1:])]
    return [loop(0, edges[1], *arguments), *(part.result() for part in waiting)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="certiseg")


def core_is_free(used: int) -> bool:
    """Whether there are more cores than these threads."""
    return used < _cores()


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The items in their order, each made on another thread while the one before is used."""
    making, end = iter(items), object()
    with ThreadPoolExecutor(1, thread_name_prefix="certiseg") as thread:
        waiting: Future[Any] = thread.submit(next, making, end)
        while (item := waiting.result()) is not end:
            waiting = thread.submit(next, making, end)
            yield item


@contextlib.contextmanager
def aside() -> Iterator[Callable[..., None]]:
    """A function that runs a task on another thread, after the one before; what it raises comes with the next one."""
    waiting: Future[Any] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="certiseg") as thread:

        def run(task: Callable[..., Any], *arguments: Any) -> None:
            nonlocal waiting
            if waiting is not None:
                waiting.result()
            waiting = thread.submit(task, *arguments)

        yield run
        if waiting is not None:
            waiting.result()


def in_lanes(work: Callable[[], None], count: int) -> None:
    """Run the same work on so many threads at once, this one among them, and return when all are done."""
    with ThreadPoolExecutor(max(1, count - 1), thread_name_prefix="certiseg") as others:
        waiting = [others.submit(_lane, work) for _ in range(count - 1)]
        _lane(work)
        for other in waiting:
            other.result()


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], lanes: int, *, begin: Callable[[], object] = lambda: None
) -> Generator[Result, None, None]:
    """work(item) of all items in their order, so many at once; at most as many more are read or kept ahead.

    begin: called on each thread before its first item. What goes wrong with an item, also when it is read, comes after
    the results of those before it.
    """
    waiting: deque[Future[Result]] = deque()
    coming = iter(items)
    with ThreadPoolExecutor(lanes, thread_name_prefix="certiseg", initializer=begin) as threads:

        def submit() -> None:
            try:
                waiting.append(threads.submit(_lane, work, next(coming)))
            except StopIteration:
                pass
            except Exception as error:
                waiting.append(Future())
                waiting[-1].set_exception(error)

        try:
            for _ in range(2 * lanes - 1):
                submit()
            while waiting:
                submit()
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


def _lane(work: Callable[..., Result], *arguments: Any) -> Result:
    _here.in_lane = True
    try:
        return work(*arguments)
    finally:
        _here.in_lane = False
