"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """An edit: `old`, which occurs exactly once in the file, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
