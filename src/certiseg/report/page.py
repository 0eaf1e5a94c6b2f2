"""One HTML file that holds all it shows: text escaped, pictures inline, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from certiseg.analysis.exports import Table, show_cell
from certiseg.hierarchy import Hierarchy
from certiseg.render.colours import Colours, line_colour, palette, texture_of
from certiseg.render.figures import figure_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG_TABLE = 14
"""Tables with more rows are folded; printing unfolds them."""
_TEMPLATES = Environment(
    loader=PackageLoader("certiseg.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Section:
    """A part of the page with a title."""

    key: str
    title: str
    body: Markup


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole document. Its policy allows its own script and nothing else."""
    folder = files("certiseg.report") / "templates"
    script, style = ((folder / name).read_text("utf-8") for name in ("page.js", "page.css"))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    return _TEMPLATES.get_template("page.html").render(
        title=title, subtitle=subtitle, sections=sections, script=script, style=style, policy=policy
    )


@dataclass(frozen=True)
class Chip:
    """An entry of a legend; name: what a map tells on hover."""

    colour: Sequence[int]
    text: str
    name: str = ""
    texture: int = 0

    @property
    def line(self) -> list[int]:
        """The colour of the lines of its texture."""
        lines: list[int] = line_colour(np.array(self.colour, np.uint8)).tolist() if self.texture else [*self.colour]
        return lines


def vertex_chip(hierarchy: Hierarchy, vertex: int, colours: Colours, text: str = "") -> Chip:
    """The entry of a vertex."""
    name = hierarchy.vertices[vertex]
    colour = palette(hierarchy, colours)[vertex].tolist()
    return Chip(colour, text or name, name, texture_of(hierarchy.level_of[vertex]))


def part(macro: str, *content: object) -> Markup:
    """HTML made by a macro of parts.html, everything in it escaped."""
    made = getattr(_TEMPLATES.get_template("parts.html").module, macro)(*content)
    return Markup(made)


def table(content: Table) -> Markup:
    """A table that scrolls by itself where the page is narrow; long ones are folded."""
    rows = [[show_cell(row, column) for column in content.columns] for row in content.rows]
    return part("table", content, rows, len(rows) > LONG_TABLE)


def figure(drawn: Figure, text: str, *, maps: bool = False) -> Markup:
    """A figure: shapes for charts, pixels for label maps."""
    if maps:
        return part("picture", data_uri(figure_bytes(drawn, "png", dpi=110), "image/png"), text, "wide")
    return part("picture", data_uri(figure_bytes(drawn, "svg"), "image/svg+xml"), text, "wide chart")


def map_uri(colours: NDArray[np.uint8], *, most: int = 480) -> str:
    """A map in few colours as an inline PNG, at most so many pixels wide; nothing is blended."""
    step = max(1.0, colours.shape[1] / most)
    rows, columns = (np.arange(max(1, round(size / step))) * step for size in colours.shape[:2])
    small = colours[rows.astype(np.intp)[:, None], columns.astype(np.intp)[None]]
    packed = small.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    found, index = np.unique(packed, return_inverse=True)
    if len(found) > 256:
        return image_uri(Image.fromarray(small), "PNG")
    indexed = Image.fromarray(index.reshape(packed.shape).astype(np.uint8))
    indexed.putpalette(np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.uint8).tobytes())
    return image_uri(indexed, "PNG")


def photograph_uri(pixels: NDArray[np.uint8], *, most: int = 480) -> str:
    """A photograph as an inline JPEG, at most so many pixels wide."""
    image = Image.fromarray(np.asarray(pixels))
    if image.width > most:
        image = image.resize((most, max(1, round(image.height * most / image.width))))
    return image_uri(image, "JPEG")


def image_uri(image: Image.Image, kind: str) -> str:
    """An image inline, as PNG or JPEG."""
    content = io.BytesIO()
    image.save(content, kind, optimize=True)
    return data_uri(content.getvalue(), f"image/{kind.lower()}")


def data_uri(content: bytes, kind: str) -> str:
    """Bytes inline, of a MIME type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
