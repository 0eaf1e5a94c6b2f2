"""Figures of matplotlib that come out the same every time, with label maps and their legend."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    FAINT,
    INK,
    ROOT_COLOUR,
    VOID_COLOUR,
    hex_colour,
    line_colour,
    palette,
    texture_of,
)

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from certiseg.hierarchy import Hierarchy

MIXED = (hex_colour(ROOT_COLOUR), "set under no vertex")
"""Legend of a certified set that only the omitted root covers."""
_HATCHES = ("", "\\\\\\\\", "xxxx", "....")
"""Of legends, one for each texture."""
_MOST_PIXELS = 65_000
"""Of a side of a PNG; matplotlib draws no larger ones."""
_SETTINGS: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "certiseg",
    "legend.frameon": False,
}


def new_figure(
    width: float, height: float, *, rows: int = 1, columns: int = 1, **grid: Any
) -> tuple[Figure, NDArray[np.object_]]:
    """A figure, in inches, and its axes (rows, columns); it belongs to no window and no global state."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def figure_bytes(figure: Figure, ending: str, *, dpi: int = 150) -> bytes:
    """The figure as `png` or `svg`; the same figure gives the same bytes."""
    import matplotlib as mpl

    plain_text(figure)
    fits = min(dpi, _MOST_PIXELS / max(figure.get_size_inches()))
    options: dict[str, Any] = {"dpi": fits} if ending == "png" else {"metadata": {"Date": None}}
    content = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(content, format=ending, **options)
    return content.getvalue()


def plain_text(figure: Figure) -> None:
    """Show every text as it stands: a dollar sign in the name of an image or a class begins no formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


def show_map(axes: Axes, picture: NDArray[Any], title: str, **options: Any) -> Any:
    """A picture with its title above and a thin frame, so that white areas have an edge; returns what was drawn."""
    drawn = axes.imshow(picture, interpolation="nearest", **options)
    axes.set_title(title, fontsize=10, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT, linewidth=0.6)
    return drawn


def vertex_legend(
    figure: Figure,
    hierarchy: Hierarchy,
    vertices: Sequence[int],
    *,
    columns: int = 7,
    also: Sequence[tuple[str, str]] = (),
) -> None:
    """A legend of vertices below the panels, then `also` (colour, text), abstained and void."""
    from matplotlib.patches import Patch

    colours = palette(hierarchy)
    entries = [
        Patch(
            facecolor=hex_colour(colours[v]),
            edgecolor=hex_colour(line_colour(colours[v])),
            hatch=_HATCHES[texture_of(hierarchy.level_of[v])],
            label=hierarchy.vertices[v],
        )
        for v in vertices
    ]
    names = [*also, (hex_colour(ABSTAIN_COLOUR), "abstained"), (hex_colour(VOID_COLOUR), "void")]
    entries += [Patch(facecolor=colour, edgecolor=FAINT, label=text) for colour, text in names]
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
