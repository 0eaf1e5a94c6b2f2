"""Of many moves of a slider only the newest is worth computing: one at a time per tab, the overtaken ones dropped."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread

_MOST_LANES = 64
_AT_ONCE = 2


class Overtaken(Exception):
    """A newer request of the same lane has come in."""


@dataclass
class _Lane:
    newest: int = -1
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Newest:
    """Lanes of numbered requests; in each, what waits while a newer one arrives is never computed."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        self._limiter: anyio.CapacityLimiter | None = None
        self.computed = 0
        """How many requests were computed since the start."""

    async def run(self, lane: str, request: int, work: Callable[[], Any]) -> Any:
        """The result of `work`, in a thread; raises Overtaken where a newer request of the lane came first."""
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        mine = self._lanes.setdefault(lane, _Lane())
        self._lanes.move_to_end(lane)
        while len(self._lanes) > _MOST_LANES:
            self._lanes.popitem(last=False)
        mine.newest = max(mine.newest, request)
        async with mine.lock:
            if request < mine.newest:
                raise Overtaken
            self.computed += 1
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
