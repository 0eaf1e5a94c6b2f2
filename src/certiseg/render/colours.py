"""Colours: of a hierarchy (siblings in related hues), of what has no vertex, and of charts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import ROOT, VOID, Hierarchy

ABSTAIN_COLOUR = (255, 255, 255)
ROOT_COLOUR = (190, 190, 190)
"""Of a certified set that only the omitted root covers."""
VOID_COLOUR = (60, 60, 66)
OUTSIDE_COLOUR = (90, 90, 90)
"""Of pixels outside the tested region."""

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
"""Okabe and Ito's colours: nearly everybody can tell them apart."""
INK, FAINT = "#222226", "#8a8a90"

_FIRST_HUE = 250.0
"""Degrees; the first top vertex (often the sky) is blue."""


def palette(hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(vertices, 3): an RGB colour for every vertex.

    The hue circle is shared out among the children of the root, and each share again among their children, in
    proportion to the square root of their leaves. Lightness alternates between siblings, so that people who see few
    hues can tell them apart.
    """
    colours = np.zeros((len(hierarchy.vertices), 3), np.uint8)

    def paint(vertex: int, low: float, high: float, position: int) -> None:
        lightness = (0.62, 0.78, 0.48, 0.70, 0.55, 0.84)[position % 6]
        chroma = 0.15 if hierarchy.level_of[vertex] == 0 else 0.11
        colours[vertex] = oklch_to_rgb(lightness, chroma, (low + high) / 2 + _FIRST_HUE)
        split(vertex, low, high)

    def split(parent: int, low: float, high: float) -> None:
        children = hierarchy.children(parent)
        weights = np.sqrt([hierarchy.generality(child) for child in children])
        edges = low + (high - low) * np.concatenate([[0], np.cumsum(weights) / max(weights.sum(), 1)])
        for position, child in enumerate(children):
            paint(child, float(edges[position]), float(edges[position + 1]), position)

    split(ROOT, 0.0, 360.0)
    return colours


def colour_table(hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(vertices + 2, 3): the palette, then ROOT and ABSTAIN, whose ids -2 and -1 index the last two rows."""
    return np.vstack([palette(hierarchy), ROOT_COLOUR, ABSTAIN_COLOUR]).astype(np.uint8)


def colour_vertices(
    vertex: NDArray[np.integer], hierarchy: Hierarchy, *, region: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    """(H, W, 3): a map of vertices in the hierarchy's colours; abstentions are white, pixels outside a region grey."""
    colours: NDArray[np.uint8] = colour_table(hierarchy)[vertex]
    if region is not None:
        colours[~region] = OUTSIDE_COLOUR
    return colours


def colour_labels(label: NDArray[np.integer], hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(H, W, 3): a map of classes in the hierarchy's colours; void is dark."""
    known = (label < hierarchy.num_classes) & (label != VOID)
    colours: NDArray[np.uint8] = colour_table(hierarchy)[np.where(known, label, 0)]
    colours[~known] = VOID_COLOUR
    return colours


def hex_colour(colour: Iterable[int]) -> str:
    """An RGB colour as #rrggbb."""
    return "#" + "".join(f"{int(value):02x}" for value in colour)


def oklch_to_rgb(lightness: float, chroma: float, hue: float) -> tuple[int, int, int]:
    """An sRGB colour from perceptual lightness, chroma and hue (degrees), clipped to what a screen can show."""
    a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = np.array(
        [
            4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
        ]
    ).clip(0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    red, green, blue = (round(float(value) * 255) for value in encoded)
    return red, green, blue
