"""Objects on a picture: the outline of each, and a line of text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_LINE, _SHADE, _TEXT = (255, 214, 10), (20, 20, 24), 11


def outlined(picture: Image.Image, objects: Iterable[tuple[NDArray[np.bool_], str]]) -> Image.Image:
    """The picture, whose upper left part is the image, with outlines and texts over it."""
    drawn = np.array(picture.convert("RGB"))
    texts: list[tuple[int, int, str]] = []
    for mask, text in objects:
        edge = _edge(mask)
        drawn[: mask.shape[0], : mask.shape[1]][edge] = _LINE
        rows, columns = np.nonzero(edge)
        texts.append((int(columns.min()), int(rows.min()), text))
    finished = Image.fromarray(drawn)
    draw, font = ImageDraw.Draw(finished), ImageFont.load_default(size=_TEXT)
    for left, top, text in texts:
        room = max(0, picture.width - int(draw.textlength(text, font)) - 2)
        place = (min(left, room), max(0, top - _TEXT - 3))
        draw.rectangle(draw.textbbox(place, text, font), fill=_SHADE)
        draw.text(place, text, _LINE, font)
    return finished


def _edge(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels of a mask with a neighbour, left, right, above or below, that is not in it."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return np.asarray(mask & ~inner)
