"""Generated inputs: each is a function of (kind, number) alone, so that a finding can be made again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODEL = ["--model", "torch:fuzzed_networks:small", "--hierarchy", "tiny.yaml"]
CHEAP = ["--sigma", "0.1", "-n", "50", "--n0", "2"]
TREE = "name: tiny\nclasses: [road, car, bus, tree]\nlevels:\n  1:\n    vehicle: [car, bus]\nthresholds: [0.25]\n"
FACTORY = """
import torch
def small():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 1)
    return torch.nn.Sequential(*layers)
"""
Make = Callable[[random.Random, Path], list[str]]
"""Writes hostile files into a folder that holds a copy of the base files, and returns the command to run there."""
KINDS: dict[str, Make] = {}


def kind(make: Make) -> Make:
    """Register a maker under its name."""
    KINDS[make.__name__] = make
    return make


@dataclass(frozen=True)
class Case:
    """One input."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    def build(self, base: Path, folder: Path) -> list[str]:
        """Fill an empty folder and return the command line."""
        shutil.copytree(base, folder, dirs_exist_ok=True)
        return KINDS[self.kind](random.Random(str(self)), folder)


def damage(rng: random.Random, data: bytes, tokens: tuple[bytes, ...] = ()) -> bytes:
    """Bytes flipped, removed, doubled, cut off or replaced by tokens, once or a few times."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 40])):
        at = rng.randrange(len(found) + 1)
        length = rng.choice([1, 1, 2, 8, 100])
        action = rng.randrange(6)
        if action == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif action == 1:
            del found[at : at + length]
        elif action == 2:
            found[at:at] = found[at : at + length]
        elif action == 3:
            found[at:at] = rng.randbytes(length)
        elif action == 4 and tokens:
            found[at : at + rng.choice([0, length])] = rng.choice(tokens)
        elif rng.random() < 0.3:
            del found[at:]
    return bytes(found)


def every_kind() -> dict[str, Make]:
    """All makers, loaded."""
    from tests.fuzz import archives, arguments, models, pictures, runs, trees  # noqa: F401

    return KINDS


def cases(count: int, kinds: list[str] | None = None, *, first: int = 0) -> list[Case]:
    """`count` cases, spread evenly over the kinds."""
    names = kinds or list(every_kind())
    return [Case(names[i % len(names)], first + i // len(names)) for i in range(count)]
