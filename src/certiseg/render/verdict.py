"""Certified and right, certified and wrong, abstained: what the codes of `scores.verdict_map` look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certiseg.render.colours import ABSTAIN_COLOUR, BLUE, RED, VOID_COLOUR, from_hex


@dataclass(frozen=True)
class Verdict:
    """What became of a pixel: its number in the map, its colour (none: that of abstention) and its words."""

    code: int
    colour: str | None
    words: str


VERDICTS = (
    Verdict(1, BLUE, "certified and right"),
    Verdict(2, RED, "certified and wrong"),
    Verdict(3, None, "abstained"),
)
"""0 stands for void: nobody knows what is there."""


def colour_verdicts(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(H, W, 3): a map of codes in its colours."""
    palette = [VOID_COLOUR, *(from_hex(each.colour) if each.colour else ABSTAIN_COLOUR for each in VERDICTS)]
    return np.array(palette, np.uint8)[codes]
