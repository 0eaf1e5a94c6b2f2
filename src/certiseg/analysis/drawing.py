"""How figures look: names and colours of methods, label maps, PNG and SVG that come out the same every time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import write_atomically
from certiseg.hierarchy import Hierarchy
from certiseg.palette import ABSTAIN_COLOUR, ROOT_COLOUR, palette
from certiseg.scores import VOID

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#F0E442",
)
"""Okabe and Ito's colours, told apart by nearly everybody."""
INK, FAINT = "#222226", "#8a8a90"
VOID_COLOUR = (60, 60, 66)
MIXED = ("#bebebe", "set under no vertex")
"""Colour and text of a certified set that only the omitted root covers (palette.ROOT_COLOUR)."""
MARKERS = "osD^vPX*<>"
_COLOURS = {"segcertify": INK, "adaptive": ORANGE, "nested": BLUE, "sets": GREEN, "uncertified": FAINT}
_LEVEL_COLOURS = (SKY, PURPLE, RED, YELLOW)
_NAMES = {"segcertify": "SegCertify", "adaptive": "Adaptive", "nested": "Nested", "sets": "Sets"}
_SETTINGS: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "certiseg",
    "legend.frameon": False,
}


def method_name(method: str) -> str:
    """A method of a run in the paper's words: level:2 is Non-adaptive-H2."""
    name, _, value = method.partition(":")
    if name == "level":
        return f"Non-adaptive-H{value}"
    if name == "adaptive" and value:
        return f"Adaptive ({value.replace(',', ', ')})"
    return _NAMES.get(name, name) + (f" (up to {value})" if value else "")


def method_colour(method: str) -> str:
    name, _, value = method.partition(":")
    return _LEVEL_COLOURS[(int(value) - 1) % len(_LEVEL_COLOURS)] if name == "level" else _COLOURS.get(name, PURPLE)


def new_figure(
    width: float, height: float, *, rows: int = 1, columns: int = 1, **grid: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure, in inches, and its axes (rows, columns); belongs to no window and no global state."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def save_figure(figure: Figure, stem: str | Path, *, endings: Sequence[str] = (".png", ".svg")) -> list[Path]:
    """STEM.png and STEM.svg; the same figure gives the same bytes."""
    paths = []
    for ending in endings:
        path = Path(f"{stem}{ending}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as file:
            file.write(figure_bytes(figure, ending[1:]))
        paths.append(path)
    return paths


def figure_bytes(figure: Figure, ending: str, *, dpi: int = 150) -> bytes:
    """The figure as `png` or `svg`."""
    import matplotlib as mpl

    plain_text(figure)
    options: dict[str, Any] = {"dpi": dpi} if ending == "png" else {"metadata": {"Date": None}}
    content = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(content, format=ending, **options)
    return content.getvalue()


def plain_text(figure: Figure) -> None:
    """Take every text as it stands: names of images and classes may hold dollar signs, which are no formulas."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # type: ignore[attr-defined]


def colour_vertices(vertex: NDArray[np.integer], hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(H, W, 3): vertices in the hierarchy's palette, abstentions white, the omitted root grey."""
    table = np.vstack([palette(hierarchy), ROOT_COLOUR, ABSTAIN_COLOUR]).astype(np.uint8)
    return table[vertex]  # ROOT is -2 and ABSTAIN -1: the last two rows


def colour_labels(label: NDArray[np.integer], hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(H, W, 3): classes in the hierarchy's palette, void dark."""
    known = (label < hierarchy.num_classes) & (label != VOID)
    colours = colour_vertices(np.where(known, label, 0).astype(np.intp), hierarchy)
    colours[~known] = VOID_COLOUR
    return colours


def show_map(axes: Any, picture: NDArray[Any], title: str) -> None:
    """A picture with its title above and a thin frame, so that white areas have an edge."""
    axes.imshow(picture, interpolation="nearest")
    axes.set_title(title, fontsize=10, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT, linewidth=0.6)


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

    names = [(_hex(palette(hierarchy)[v]), hierarchy.vertices[v]) for v in vertices]
    names += [*also, ("#ffffff", "abstained"), (_hex(VOID_COLOUR), "void")]
    entries = [Patch(facecolor=colour, edgecolor=FAINT, label=text) for colour, text in names]
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def _hex(colour: Any) -> str:
    red, green, blue = (int(value) for value in colour)
    return f"#{red:02x}{green:02x}{blue:02x}"
