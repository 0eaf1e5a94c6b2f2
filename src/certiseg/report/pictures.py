"""Pictures of certificates: label map, overlay with legend, methods side by side, the drawn hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy
from certiseg.palette import ABSTAIN_COLOUR, ROOT_COLOUR, palette

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

ABSTAIN_INDEX, ROOT_INDEX = 255, 254
_INK, _PAPER, _FAINT = (30, 30, 34), (255, 255, 255), (150, 150, 156)


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend."""

    colour: tuple[int, ...]
    text: str
    share: float


def colour_map(vertex: NDArray[np.integer], hierarchy: Hierarchy) -> NDArray[np.uint8]:
    """(H, W, 3): vertices in their colours, abstentions white, "everything" grey."""
    table = np.vstack([palette(hierarchy), ROOT_COLOUR, ABSTAIN_COLOUR]).astype(np.uint8)
    return table[vertex]  # ROOT is -2 and ABSTAIN -1: the last two rows


def label_image(certificate: Certificate) -> Image.Image:
    """A palette PNG: the pixel value is the vertex id, 254 the omitted root, 255 an abstention (white).

    Hierarchies with more than 254 vertices become plain RGB.
    """
    hierarchy = certificate.hierarchy
    if len(hierarchy.vertices) > ROOT_INDEX:
        return Image.fromarray(colour_map(certificate.vertex, hierarchy))
    index = np.where(certificate.vertex == ROOT, ROOT_INDEX, certificate.vertex)
    index = np.where(certificate.vertex == ABSTAIN, ABSTAIN_INDEX, index).astype(np.uint8)
    picture = Image.fromarray(index)
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(hierarchy.vertices)] = palette(hierarchy)
    colours[ROOT_INDEX], colours[ABSTAIN_INDEX] = ROOT_COLOUR, ABSTAIN_COLOUR
    picture.putpalette(colours.tobytes())
    return picture


def overlay(pixels: NDArray[np.float32], certificate: Certificate, *, opacity: float = 0.65) -> Image.Image:
    """The image with the certified labels over it and a legend beside it; abstentions are white."""
    colours = colour_map(certificate.vertex, certificate.hierarchy)
    blended = (1 - opacity) * pixels * 255 + opacity * colours
    picture = Image.fromarray(blended.round().clip(0, 255).astype(np.uint8))
    return beside([picture, legend_panel(legend(certificate), height=picture.height)])


def legend(certificate: Certificate, *, most: int = 14) -> list[LegendEntry]:
    """The certified labels with their shares of the tested pixels, most frequent first, abstentions last."""
    hierarchy, tested = certificate.hierarchy, certificate.tested
    colours = np.vstack([palette(hierarchy), ROOT_COLOUR, ABSTAIN_COLOUR])
    entries = []
    for text, vertex, count in _label_counts(certificate):
        entries.append(LegendEntry(tuple(int(c) for c in colours[vertex]), text, count / tested))
    entries.sort(key=lambda entry: -entry.share)
    if len(entries) > most:
        rest = sum(entry.share for entry in entries[most - 1 :])
        entries = [*entries[: most - 1], LegendEntry(_FAINT, f"{len(entries) - most + 1} more labels", rest)]
    return [*entries, LegendEntry(ABSTAIN_COLOUR, "abstained", certificate.abstain_rate)]


def _label_counts(certificate: Certificate) -> list[tuple[str, int, int]]:
    """(name, vertex, pixels) of every label that occurs."""
    names = certificate.hierarchy.vertices
    if certificate.settings.method != "sets":
        vertices, counts = np.unique(certificate.vertex[certificate.vertex >= 0], return_counts=True)
        return [(names[v], int(v), int(c)) for v, c in zip(vertices, counts, strict=True)]
    chosen = certificate.set_size > 0
    members = certificate.votes.ranking[chosen].astype(np.int64)
    members[np.arange(members.shape[1]) >= certificate.set_size[chosen][:, None]] = -1
    rows = np.column_stack([certificate.vertex[chosen], np.sort(members, axis=1)])
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    return [
        (" or ".join(names[c] for c in row[1:] if c >= 0), int(row[0]), int(count))
        for row, count in zip(distinct, counts, strict=True)
    ]


def legend_panel(entries: Sequence[LegendEntry], *, height: int, width: int = 230) -> Image.Image:
    """A legend as a picture of the given height; the text shrinks before it is cut."""
    line = max(10, min(22, (height - 12) // max(len(entries), 1)))
    panel = Image.new("RGB", (width, height), _PAPER)
    draw, font = ImageDraw.Draw(panel), ImageFont.load_default(size=max(8, line - 8))
    for row, entry in enumerate(entries):
        top = 6 + row * line
        draw.rectangle((8, top + 1, 8 + line - 4, top + line - 3), fill=entry.colour, outline=_FAINT)
        share = f"{entry.share:.1%}"
        room = width - line - 24 - draw.textlength(share, font)
        draw.text((line + 10, top + line // 2), _shortened(entry.text, room, draw, font), _INK, font, anchor="lm")
        draw.text((width - 8, top + line // 2), share, _INK, font, anchor="rm")
    return panel


def _shortened(
    text: str, room: float, draw: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> str:
    while len(text) > 4 and draw.textlength(text, font) > room:
        text = text[:-2].rstrip() + "…"
    return text


def beside(pictures: Sequence[Image.Image], *, gap: int = 6) -> Image.Image:
    """Pictures in a row."""
    width = sum(picture.width for picture in pictures) + gap * (len(pictures) - 1)
    row = Image.new("RGB", (width, max(picture.height for picture in pictures)), _PAPER)
    left = 0
    for picture in pictures:
        row.paste(picture.convert("RGB"), (left, 0))
        left += picture.width + gap
    return row


def stacked(pictures: Sequence[Image.Image], *, gap: int = 6) -> Image.Image:
    """Pictures in a column."""
    height = sum(picture.height for picture in pictures) + gap * (len(pictures) - 1)
    column = Image.new("RGB", (max(picture.width for picture in pictures), height), _PAPER)
    top = 0
    for picture in pictures:
        column.paste(picture.convert("RGB"), (0, top))
        top += picture.height + gap
    return column


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


def draw_hierarchy(hierarchy: Hierarchy, *, line: int = 24) -> Image.Image:
    """The tree from left (coarse) to right (leaves), each vertex a box in its colour."""
    column = 190
    picture = Image.new("RGB", (column * hierarchy.num_levels + 20, line * hierarchy.num_classes + 20), _PAPER)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=13)
    colours, row = palette(hierarchy), iter(range(hierarchy.num_classes))

    def place(vertex: int) -> tuple[int, int]:
        """Draw a vertex and all below it; returns where its left edge is."""
        left = 10 + column * (hierarchy.num_levels - 1 - hierarchy.level_of[vertex])
        below = [place(child) for child in hierarchy.children(vertex)]
        middle = sum(y for _, y in below) // len(below) if below else 10 + next(row) * line + line // 2
        for x, y in below:
            draw.line([(left + column - 40, middle), (left + column - 20, middle)], _FAINT)
            draw.line([(left + column - 20, middle), (left + column - 20, y), (x, y)], _FAINT)
        colour = tuple(int(c) for c in colours[vertex])
        draw.rounded_rectangle((left, middle - line // 2 + 2, left + column - 40, middle + line // 2 - 2), 5, colour)
        ink = _INK if np.dot(colour, (0.3, 0.59, 0.11)) > 128 else _PAPER
        text = _shortened(hierarchy.vertices[vertex], column - 52, draw, font)
        draw.text((left + 6, middle), text, ink, font, anchor="lm")
        return left, middle

    for top in hierarchy.children(ROOT):
        place(top)
    return picture
