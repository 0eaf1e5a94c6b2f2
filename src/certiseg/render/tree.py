"""The drawn hierarchy: coarse vertices left, leaves right, each in its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from certiseg.hierarchy import ROOT, Hierarchy
from certiseg.render.colours import FAINT, INK, palette
from certiseg.render.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW, _COLUMN, _BOX = 0.27, 2.15, 0.8
"""Inches of a row and of a column; share of a column that a box takes."""


def draw_tree(hierarchy: Hierarchy) -> Figure:
    """A box per vertex, in the order of the tree; the omitted root is not drawn."""
    from matplotlib.patches import FancyBboxPatch

    levels, leaves = hierarchy.num_levels, hierarchy.num_classes
    figure, ((axes,),) = new_figure(_COLUMN * levels, _ROW * leaves + 0.7)
    colours, rows = palette(hierarchy) / 255, iter(range(leaves))

    def place(vertex: int) -> float:
        """Draw a vertex and all below it; returns its row."""
        below = [(child, place(child)) for child in hierarchy.children(vertex)]
        row = float(np.mean([y for _, y in below])) if below else float(next(rows))
        left = float(levels - 1 - hierarchy.level_of[vertex])
        for child, y in below:
            start, bend = left + _BOX, left + (1 + _BOX) / 2
            end = float(levels - 1 - hierarchy.level_of[child])
            axes.plot([start, bend, bend, end], [row, row, y, y], color=FAINT, linewidth=0.8, zorder=0)
        box = FancyBboxPatch((left, row - 0.38), _BOX, 0.76, boxstyle="round,pad=0,rounding_size=0.06", linewidth=0)
        box.set_facecolor(tuple(colours[vertex]))
        axes.add_patch(box)
        dark = float(np.dot(colours[vertex], (0.3, 0.59, 0.11))) < 0.5
        axes.text(left + 0.04, row, hierarchy.vertices[vertex], color="white" if dark else INK, va="center", fontsize=8)
        return row

    for top in hierarchy.children(ROOT):
        place(top)
    axes.set_xlim(-0.05, levels - 1 + _BOX + 0.05)
    axes.set_ylim(leaves - 0.4, -1.4)
    for level in range(levels):
        axes.text(levels - 1 - level, -1, f"level {level}", color=INK, fontsize=9, weight="bold", va="center")
    axes.set_axis_off()
    return figure
