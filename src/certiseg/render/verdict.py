"""Certified and right, certified and wrong, abstained: against the ground truth, pixel by pixel.

A certificate speaks of the smoothed model's answers, so it may be wrong about the street: where the truth is known,
both are shown side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import VOID
from certiseg.render.colours import ABSTAIN_COLOUR, BLUE, RED, VOID_COLOUR, from_hex

if TYPE_CHECKING:
    from certiseg.certificate import Certificate


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


def verdict_map(certificate: Certificate, truth: NDArray[np.integer]) -> NDArray[np.uint8]:
    """(H, W): the code of every pixel, 0 where the truth is void or the pixel was not tested."""
    known = truth != VOID if certificate.region is None else (truth != VOID) & certificate.region
    right = certificate.holds(np.where(known, truth, 0))
    codes = np.where(certificate.abstained, 3, np.where(right, 1, 2))
    return np.where(known, codes, 0).astype(np.uint8)


def colour_verdicts(certificate: Certificate, truth: NDArray[np.integer]) -> NDArray[np.uint8]:
    """(H, W, 3): the map in its colours."""
    palette = [VOID_COLOUR, *(from_hex(each.colour) if each.colour else ABSTAIN_COLOUR for each in VERDICTS)]
    return np.array(palette, np.uint8)[verdict_map(certificate, truth)]
