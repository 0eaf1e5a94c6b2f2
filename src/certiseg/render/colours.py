"""Colours: of a hierarchy (siblings in related hues, levels by texture), of what has no vertex, and of charts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import ROOT, VOID, Hierarchy
from certiseg.render.groups import groups_of
from certiseg.render.vision import distances, seen

Colours = Literal["classes", "groups"]
"""A colour for every vertex, or one for each of at most six groups."""

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
APART = 10
"""Least CIE76 distance of the colours of a palette, also without red or green cones, while there is room for it."""
TILE = 12
"""Pixels after which a texture repeats."""


@lru_cache(maxsize=32)
def palette(hierarchy: Hierarchy, colours: Colours = "classes") -> NDArray[np.uint8]:
    """(vertices, 3): an RGB colour for every vertex.

    The hue circle is shared out among the children of the root, and each share again among their children; from there
    every colour moves as little as it must to differ from all others. Trees of more than about 50 vertices have no room
    for that, and `groups` has at most six colours.
    """
    if colours == "groups":
        groups = groups_of(hierarchy)
        if groups is None:
            raise InputError(f"colours must be classes, got groups: {hierarchy.name} has too many vertices at its top")
        chosen: NDArray[np.uint8] = groups.colours[groups.of]
    else:
        wanted = _by_hue(hierarchy)
        chosen = next(found for least in range(APART, -1, -1) if (found := _moved_apart(wanted, least)) is not None)
    chosen.setflags(write=False)
    return chosen


def _by_hue(hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """Shares of the hue circle in proportion to the square root of the leaves; lightness alternates."""
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


def _moved_apart(wanted: NDArray[np.uint8], least: float) -> NDArray[np.uint8] | None:
    """The wanted colours in turn, each moved to the nearest that is `least` from those before; None without a place."""
    offered = _offered()
    looks = seen(offered)
    free = distances(looks, seen([ABSTAIN_COLOUR, ROOT_COLOUR, VOID_COLOUR])).min(axis=1)
    chosen = []
    for look in seen(wanted)[0]:
        away = np.where(free >= least, np.linalg.norm(looks[0] - look, axis=1), np.inf)
        if not np.isfinite(away).any():
            return None
        place = int(away.argmin())
        chosen.append(place)
        free = np.minimum(free, distances(looks, looks[:, place : place + 1])[:, 0])
    return offered[chosen]


@lru_cache(maxsize=1)
def _offered() -> NDArray[np.uint8]:
    """The colours that a palette may take."""
    steps = [
        oklch_to_rgb(lightness, chroma, hue)
        for lightness in np.arange(0.32, 0.95, 0.04)
        for chroma in (0.03, 0.06, 0.09, 0.12, 0.15, 0.18)
        for hue in range(0, 360, 12)
    ]
    return np.unique(np.array(steps, np.uint8), axis=0)


def colour_table(hierarchy: Hierarchy, colours: Colours = "classes") -> NDArray[np.uint8]:
    """(vertices + 2, 3): the palette, then ROOT and ABSTAIN, whose ids -2 and -1 index the last two rows."""
    return np.vstack([palette(hierarchy, colours), ROOT_COLOUR, ABSTAIN_COLOUR]).astype(np.uint8)


def textures() -> NDArray[np.bool_]:
    """(4, TILE, TILE): where textures have their lines: none at level 0, then lines, crossed lines, from 3 on dots."""
    row, column = np.indices((TILE, TILE))
    falling, rising = (column - row) % 6 == 0, (column + row) % 6 == 0
    dots = (row % 4 < 2) & ((column + row // 4 * 2) % 4 < 2)
    return np.stack([np.zeros_like(dots), falling, falling | rising, dots])


def line_colour(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The colours of the lines of a texture over colours (..., 3): darker over light ones, lighter over dark ones."""
    light = colours @ np.array([0.3, 0.59, 0.11]) > 110
    mixed: NDArray[np.uint8] = np.where(light[..., None], 0.6 * colours, 0.55 * colours + 0.45 * 255).astype(np.uint8)
    return mixed


def texture_of(level: int) -> int:
    """Which texture a level has."""
    return min(level, len(textures()) - 1)


def colour_vertices(
    vertex: NDArray[np.integer],
    hierarchy: Hierarchy,
    *,
    region: NDArray[np.bool_] | None = None,
    colours: Colours = "classes",
) -> NDArray[np.uint8]:
    """(H, W, 3): a map of vertices in the hierarchy's colours, textured above level 0.

    Abstentions are white, pixels outside a region grey.
    """
    table = colour_table(hierarchy, colours)
    shown: NDArray[np.uint8] = table[vertex]
    kinds = np.array([*map(texture_of, hierarchy.level_of), 0, 0])
    coarse = max(1, vertex.shape[1] // 640)
    row, column = (np.arange(size) // coarse % TILE for size in vertex.shape)
    lines = textures()[kinds[vertex], row[:, None], column[None]]
    shown[lines] = line_colour(table)[vertex[lines]]
    if region is not None:
        shown[~region] = OUTSIDE_COLOUR
    return shown


def colour_labels(
    label: NDArray[np.integer], hierarchy: Hierarchy, *, colours: Colours = "classes"
) -> NDArray[np.uint8]:
    """(H, W, 3): a map of classes in the hierarchy's colours; void is dark."""
    known = (label < hierarchy.num_classes) & (label != VOID)
    shown: NDArray[np.uint8] = colour_table(hierarchy, colours)[np.where(known, label, 0)]
    shown[~known] = VOID_COLOUR
    return shown


def hex_colour(colour: Iterable[int]) -> str:
    """An RGB colour as #rrggbb."""
    return "#" + "".join(f"{int(value):02x}" for value in colour)


def from_hex(text: str) -> tuple[int, int, int]:
    """The RGB colour of #rrggbb."""
    red, green, blue = (int(text[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


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
