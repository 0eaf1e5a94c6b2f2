"""A cache with a bound on its size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Forgets what was used longest ago; the newest value stays, whatever its size."""

    def __init__(self, limit: int, size_of: Callable[[Value], int]) -> None:
        self.limit, self.size_of = limit, size_of
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make()
        with self._lock:
            self._kept[key] = (value, self.size_of(value))
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self.limit:
                self._kept.popitem(last=False)
        return value
