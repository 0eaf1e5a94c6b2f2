"""Two certified maps of one image compared pixel by pixel: the same label, a finer or a coarser one, or another.

Labels are compared by the classes they hold, so vertices and sets, and trees over the same classes, go together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.render.colours import BLUE, GREEN, ORANGE, RED, YELLOW
from certiseg.words import COMPARISON, EXPLORATION

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

_WORD = 64
"""Classes in a word of bits."""


@dataclass(frozen=True)
class Difference:
    """How B differs from A at a pixel: its number in the map, its colour and its words."""

    code: int
    colour: str
    words: str


DIFFERENCES = (
    Difference(1, "#c9ced8", "the same label"),
    Difference(2, BLUE, "B is finer"),
    Difference(3, GREEN, "B is coarser"),
    Difference(4, YELLOW, "they share some classes"),
    Difference(5, RED, "no class in common"),
    Difference(6, ORANGE, "only A certifies"),
    Difference(7, "#7a5cc4", "only B certifies"),
    Difference(8, "#f4f5f8", "both abstain"),
)


def difference_map(first: Certificate, second: Certificate) -> NDArray[np.uint8]:
    """(H, W): the code of every pixel."""
    if first.vertex.shape != second.vertex.shape:
        sizes = " and ".join("x".join(map(str, each.vertex.shape)) for each in (first, second))
        raise InputError(f"both maps must have one size, got {sizes}; the runs scaled their images differently")
    if set(first.hierarchy.classes) != set(second.hierarchy.classes):
        raise InputError("both maps must be over the same classes, got others; compare runs of one class list")
    a, b = _bits(first, first.hierarchy.classes), _bits(second, first.hierarchy.classes)
    none_a, none_b = first.abstained, second.abstained
    same, shared = (a == b).all(axis=-1), (a & b).any(axis=-1)
    finer, coarser = ((b & ~a) == 0).all(axis=-1), ((a & ~b) == 0).all(axis=-1)
    tests = (none_a & none_b, none_b, none_a, same, finer, coarser, shared)
    return np.select(tests, (8, 6, 7, 1, 2, 3, 4), 5).astype(np.uint8)


def _bits(certificate: Certificate, classes: tuple[str, ...]) -> NDArray[np.uint64]:
    """(H, W, words): the classes of each certified label, a bit each in the order of `classes`."""
    tree = certificate.hierarchy
    words = np.zeros((len(tree.vertices), -(-len(classes) // _WORD)), np.uint64)
    for leaf, name in enumerate(tree.classes):
        place = classes.index(name)
        words[tree.members[:, leaf], place // _WORD] |= np.uint64(1 << place % _WORD)
    if certificate.settings.method != "sets":
        return words[np.maximum(certificate.vertex, 0)]
    ranking, sizes = certificate.votes.ranking, certificate.set_size
    found = np.zeros((*sizes.shape, words.shape[1]), np.uint64)
    for rank in range(ranking.shape[2]):
        chosen = sizes > rank
        found[chosen] |= words[ranking[..., rank][chosen]]
    return found


def joint_role(first: str, second: str) -> str:
    """What a difference is: two maps seen side by side are a comparison, and exploration where one of them is."""
    return EXPLORATION if EXPLORATION in (first, second) else COMPARISON


def shares(codes: NDArray[np.uint8]) -> dict[int, float]:
    """The share of all pixels by code."""
    counts = np.bincount(codes.reshape(-1), minlength=len(DIFFERENCES) + 1)
    return {each.code: float(counts[each.code] / codes.size) for each in DIFFERENCES}
