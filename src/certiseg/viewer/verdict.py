"""Certified and right, certified and wrong, abstained: against the ground truth, by pixel and by true class.

A certificate speaks of the smoothed model's answers, so it may be wrong about the street: where the truth is known,
both are shown and counted side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import VOID
from certiseg.render.colours import BLUE, RED
from certiseg.runs.table import UNCERTIFIED

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.scores import PixelSums
    from certiseg.viewer.run_reader import RunReader


@dataclass(frozen=True)
class Verdict:
    """What became of a pixel: its number in the map, its colour (none: hatched) and its words."""

    code: int
    colour: str | None
    words: str


VERDICTS = (
    Verdict(1, BLUE, "certified and right"),
    Verdict(2, RED, "certified and wrong"),
    Verdict(3, None, "abstained"),
)
"""0 stands for void: nobody knows what is there."""
COLUMNS = ("image", "class", "method", "pixels", "right", "wrong", "abstained")


def verdict_map(certificate: Certificate, truth: NDArray[np.integer]) -> NDArray[np.uint8]:
    """(H, W): the code of every pixel, 0 where the truth is void or the pixel was not tested."""
    known = truth != VOID if certificate.region is None else (truth != VOID) & certificate.region
    right = certificate.holds(np.where(known, truth, 0))
    codes = np.where(certificate.abstained, 3, np.where(right, 1, 2))
    return np.where(known, codes, 0).astype(np.uint8)


def by_class(sums: PixelSums) -> list[list[int]]:
    """[class, pixels, right, wrong, abstained] of every class that occurs, the most wrong pixels first."""
    columns = (sums.pixels, sums.right, sums.pixels - sums.right - sums.abstained, sums.abstained)
    found = [[c, *(int(column[c]) for column in columns)] for c in np.flatnonzero(sums.pixels).tolist()]
    return sorted(found, key=lambda row: (-row[3], -row[1]))


def table(reader: RunReader, images: list[str], *, sigma: float, n: int, tau: float) -> dict[str, Any]:
    """Images x classes x methods of a setting as the run counted them: a row of whole numbers for each.

    images, classes and methods are told by their place in the lists beside the rows.
    """
    sums: dict[tuple[int, int, str], list[int]] = {}
    for place, name in enumerate(images):
        for row in reader.rows(name):
            if (row["sigma"], row["n"], row["tau"]) != (sigma, n, tau) or row["method"] == UNCERTIFIED:
                continue
            counted = (row["pixels"], row["right"], row["pixels"] - row["right"] - row["abstained"], row["abstained"])
            kept = sums.setdefault((place, row["class"], row["method"]), [0, 0, 0, 0])
            kept[:] = [a + b for a, b in zip(kept, counted, strict=True)]
    methods = reader.manifest.methods
    rows = [[i, c, methods.index(m), *counted] for (i, c, m), counted in sums.items() if counted[0]]
    return {"columns": COLUMNS, "images": images, "classes": reader.tree.classes, "methods": methods, "rows": rows}
