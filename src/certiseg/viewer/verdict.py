"""Certified and right, certified and wrong, abstained: counted by image and true class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.runs.table import UNCERTIFIED

if TYPE_CHECKING:
    from certiseg.scores import PixelSums
    from certiseg.viewer.run_reader import RunReader


COLUMNS = ("image", "class", "method", "pixels", "right", "wrong", "abstained")


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
