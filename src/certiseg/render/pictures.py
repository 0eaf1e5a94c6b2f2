"""Pictures of label maps, as PIL images: the map itself, an overlay, a legend, and several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy
from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    ROOT_COLOUR,
    TILE,
    VOID_COLOUR,
    colour_table,
    colour_vertices,
    line_colour,
    oklch_to_rgb,
    palette,
    texture_of,
    textures,
)
from certiseg.words import LOW_AGREEMENT

ABSTAIN_INDEX, ROOT_INDEX = 255, 254
SIZE_BANDS: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, None))
"""Sizes of label sets that share a colour."""
_LEAST_LINE, _MARGIN = 10, 12
"""Pixels of a legend: least height of a line, and above and below all lines."""
_INK, _PAPER, _FAINT, _WARNING = (30, 30, 34), (255, 255, 255), (150, 150, 156), (200, 20, 20)


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend."""

    colour: tuple[int, ...]
    text: str
    share: float
    texture: int = 0


def label_image(vertex: NDArray[np.integer], hierarchy: Hierarchy) -> Image.Image:
    """A palette PNG: the pixel value is the vertex id, 254 the omitted root, 255 an abstention (white).

    Hierarchies with more than 254 vertices become plain RGB.
    """
    if len(hierarchy.vertices) > ROOT_INDEX:
        return Image.fromarray(colour_table(hierarchy)[vertex])
    index = np.where(vertex == ROOT, ROOT_INDEX, np.where(vertex == ABSTAIN, ABSTAIN_INDEX, vertex))
    picture = Image.fromarray(index.astype(np.uint8))
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(hierarchy.vertices)] = palette(hierarchy)
    colours[ROOT_INDEX], colours[ABSTAIN_INDEX] = ROOT_COLOUR, ABSTAIN_COLOUR
    picture.putpalette(colours.tobytes())
    return picture


def photograph(pixels: NDArray[np.floating]) -> Image.Image:
    """Pixels in [0, 1] as a picture."""
    return Image.fromarray((pixels * 255).round().clip(0, 255).astype(np.uint8))


def labelled_map(
    vertex: NDArray[np.integer],
    hierarchy: Hierarchy,
    shares: Iterable[tuple[str, int, float]],
    *,
    region: NDArray[np.bool_] | None = None,
    under: tuple[NDArray[np.floating], float] | None = None,
    agreement: float | None = None,
) -> Image.Image:
    """A map of vertices with a legend; `under`: pixels in [0, 1] to lay it over, and its opacity.

    agreement: of the certified labels with the prediction without noise, the last line of the legend; red where low.
    """
    colours = colour_vertices(vertex, hierarchy, region=region)
    picture = Image.fromarray(colours)
    if under is not None:
        pixels, opacity = under
        if pixels.shape != colours.shape:
            raise InputError(f"image must have the size of the map, {vertex.shape}, got {pixels.shape[:2]}")
        if not 0 <= opacity <= 1:
            raise InputError(f"opacity must lie in [0, 1], got {opacity:g}")
        picture = photograph((1 - opacity) * pixels + opacity * (colours / 255))
    fits = (picture.height - _MARGIN) // _LEAST_LINE - 2
    entries = legend(shares, hierarchy, most=max(1, min(14, fits)))
    if agreement is not None:
        low = agreement < LOW_AGREEMENT
        words = f"{'LOW: ' if low else ''}agrees with noise-free"
        entries.append(LegendEntry(_WARNING if low else _INK, words, agreement))
    return beside([picture, legend_panel(entries, height=picture.height)])


def size_map(sizes: NDArray[np.integer], *, under: NDArray[np.floating] | None = None) -> Image.Image:
    """How many classes the set of every pixel holds, with a legend; under: pixels in [0, 1] to lay it over."""
    bands = [(low, high) for low, high in SIZE_BANDS if low <= max(int(sizes.max()), 1)]
    band = np.searchsorted([low for low, _ in bands], sizes, side="right") - 1
    colours = np.array([size_colour(index) for index in range(len(bands))], np.uint8)[band]
    picture = photograph(colours / 255 if under is None else 0.4 * under + 0.6 * (colours / 255))
    entries = [
        LegendEntry(size_colour(index), size_words(low, high), float((band == index).mean()))
        for index, (low, high) in enumerate(bands)
    ]
    return beside([picture, legend_panel(entries, height=picture.height)])


def size_words(low: int, high: int | None) -> str:
    """A band of set sizes in words."""
    if high is None:
        return f"{low} classes and more"
    return (
        "no class"
        if high == 0
        else f"{low} class{'es' if low > 1 else ''}"
        if low == high
        else f"{low} to {high} classes"
    )


def size_colour(band: int) -> tuple[int, int, int]:
    """From dark grey (no class) and deep blue (one class: all is said) to pale yellow (nearly nothing is)."""
    return VOID_COLOUR if band == 0 else oklch_to_rgb(0.34 + 0.095 * band, 0.13, 262 - 30 * band)


def legend(shares: Iterable[tuple[str, int, float]], hierarchy: Hierarchy, *, most: int = 14) -> list[LegendEntry]:
    """Labels (text, vertex, share), the most frequent first, in their colours; those beyond `most` become one line.

    A line with the vertex ABSTAIN stays the last.
    """
    table, levels = colour_table(hierarchy).tolist(), (*hierarchy.level_of, 0, 0)
    rows = [
        (vertex, LegendEntry(tuple(table[vertex]), text, share, texture_of(levels[vertex])))
        for text, vertex, share in shares
    ]
    entries = [entry for vertex, entry in rows if vertex != ABSTAIN]
    if len(entries) > most:
        rest = entries[most - 1 :]
        entries = [*entries[: most - 1], LegendEntry(_FAINT, f"{len(rest)} more labels", sum(e.share for e in rest))]
    return entries + [entry for vertex, entry in rows if vertex == ABSTAIN]


def legend_panel(entries: Sequence[LegendEntry], *, height: int, width: int = 230) -> Image.Image:
    """A legend as a picture of the given height; the text shrinks before it is cut."""
    line = max(_LEAST_LINE, min(22, (height - _MARGIN) // max(len(entries), 1)))
    panel = Image.new("RGB", (width, height), _PAPER)
    draw, font = ImageDraw.Draw(panel), ImageFont.load_default(size=max(8, line - 8))
    for row, entry in enumerate(entries):
        top = 6 + row * line
        panel.paste(swatch(entry, line - 3), (8, top + 1))
        share = f"{entry.share:.1%}"
        room = width - line - 24 - draw.textlength(share, font)
        text = entry.text
        while len(text) > 4 and draw.textlength(text, font) > room:
            text = text[:-2].rstrip() + "…"
        draw.text((line + 10, top + line // 2), text, _INK, font, anchor="lm")
        draw.text((width - 8, top + line // 2), share, _INK, font, anchor="rm")
    return panel


def swatch(entry: LegendEntry, size: int) -> Image.Image:
    """The square before a line of a legend, with the texture of its level."""
    colour = np.array(entry.colour, np.uint8)
    places = np.arange(size) % TILE
    square = np.where(textures()[entry.texture][np.ix_(places, places)][..., None], line_colour(colour), colour)
    framed = Image.fromarray(square.astype(np.uint8))
    ImageDraw.Draw(framed).rectangle((0, 0, size - 1, size - 1), outline=_FAINT)
    return framed


def beside(pictures: Sequence[Image.Image], *, gap: int = 6) -> Image.Image:
    """Pictures in a row."""
    return _placed(pictures, gap, down=False)


def stacked(pictures: Sequence[Image.Image], *, gap: int = 6) -> Image.Image:
    """Pictures in a column."""
    return _placed(pictures, gap, down=True)


def _placed(pictures: Sequence[Image.Image], gap: int, *, down: bool) -> Image.Image:
    sizes = np.array([picture.size for picture in pictures])
    along, across = (1, 0) if down else (0, 1)
    starts = np.cumsum([0, *(sizes[:, along] + gap)])
    total = (int(starts[-1]) - gap, int(sizes[:, across].max()))
    sheet = Image.new("RGB", total[::-1] if down else total, _PAPER)
    for picture, start in zip(pictures, starts.tolist(), strict=False):
        sheet.paste(picture.convert("RGB"), (0, start) if down else (start, 0))
    return sheet


def captioned(picture: Image.Image, caption: str, *, size: int = 15) -> Image.Image:
    """A picture with a line of text above it."""
    framed = Image.new("RGB", (picture.width, picture.height + size + 8), _PAPER)
    framed.paste(picture.convert("RGB"), (0, size + 8))
    ImageDraw.Draw(framed).text((2, 2), caption, _INK, ImageFont.load_default(size=size))
    return framed


def comparison(panels: Mapping[str, Image.Image], *, columns: int = 3) -> Image.Image:
    """Captioned pictures in a grid."""
    framed = [captioned(picture, caption) for caption, picture in panels.items()]
    return stacked([beside(framed[start : start + columns]) for start in range(0, len(framed), columns)])
