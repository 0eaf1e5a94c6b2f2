"""Random draws by seed and part: the same on every machine, and one part never shifts another."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Option = TypeVar("Option")


class Draws(np.random.Generator):
    """A random generator with the few plain draws that a street is made of."""

    def between(self, low: float, high: float) -> float:
        """A number between two."""
        return float(self.uniform(low, high))

    def chance(self, share: float) -> bool:
        """True in a share of all draws."""
        return bool(self.random() < share)

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.integers(low, high + 1))

    def pick(self, options: Sequence[Option]) -> Option:
        """One of the options."""
        return options[int(self.integers(len(options)))]

    def seed(self) -> int:
        """A seed for the looks of one thing."""
        return int(self.integers(2**31))


def stream(seed: int, part: int = 0) -> Draws:
    """The draws of one part (looks 0, plan 1, grain 2, sensor 3) of the scene or thing with this seed."""
    return Draws(np.random.Philox(key=np.array([seed, part], dtype=np.uint64)))
