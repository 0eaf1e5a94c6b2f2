"""While a slider moves, only its latest position is worth computing: one at a time per tab, no overtaken ones."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio.to_thread

_MOST_LANES = 64
_AT_ONCE = 2
Result = TypeVar("Result")


class Overtaken(Exception):
    """A newer request of the same lane has come in."""


@dataclass
class _Lane:
    latest: int = -1
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LatestOnly:
    """Lanes of numbered requests; one that waits while a newer one arrives is never computed."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        self._limiter: anyio.CapacityLimiter | None = None
        self.computed = 0
        """How many requests were computed since the start."""

    async def run(self, lane: str, request: int, work: Callable[[], Result]) -> Result:
        """The result of `work`, computed in a thread; raises Overtaken where the lane has a newer request."""
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        mine = self._lanes.setdefault(lane, _Lane())
        self._lanes.move_to_end(lane)
        while len(self._lanes) > _MOST_LANES:
            self._lanes.popitem(last=False)
        mine.latest = max(mine.latest, request)
        async with mine.lock:
            if request < mine.latest:
                raise Overtaken
            self.computed += 1
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
