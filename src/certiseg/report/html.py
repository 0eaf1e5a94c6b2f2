"""One HTML file that holds all it shows: text escaped, pictures inline, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from certiseg.analysis.drawing import figure_bytes
from certiseg.analysis.exports import Table, show_cell

LONG_TABLE = 14
"""Tables with more rows are folded; printing unfolds them."""


@dataclass(frozen=True)
class Section:
    """A part of the page. `body` is HTML, in which everything that came from a file was escaped."""

    key: str
    title: str
    body: str


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole document."""
    script, style = (files("certiseg").joinpath(f"report/{name}").read_text("utf-8") for name in _PARTS)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    links = "".join(f'<li><a href="#{escape(s.key)}">{escape(s.title)}</a></li>' for s in sections)
    parts = "\n".join(
        f'<section id="{escape(s.key)}"><h2>{escape(s.title)}</h2>\n{s.body}\n</section>' for s in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>
<nav aria-label="Contents"><ol>{links}</ol></nav>
<main>
{parts}
</main>
<dialog id="zoom" aria-label="Enlarged picture"><form method="dialog"><button>Close</button></form>
<p></p><img alt="" src="data:,"></dialog>
<script>{script}</script>
</body>
</html>
"""


_PARTS = ("page.js", "page.css")


def paragraphs(text: str) -> str:
    """A paragraph per line."""
    return "\n".join(f"<p>{escape(line)}</p>" for line in text.splitlines() if line.strip())


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names with their values."""
    return f"<dl>{''.join(f'<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>' for k, v in pairs)}</dl>"


def table(content: Table) -> str:
    """A table that scrolls by itself where the page is narrow; long ones are folded."""
    kinds = ["" if c.kind == "text" else ' class="number"' for c in content.columns]
    heads = "".join(f'<th scope="col"{k}>{escape(c.head)}</th>' for c, k in zip(content.columns, kinds, strict=True))
    body = "\n".join(_row(content, row, kinds) for row in content.rows)
    grid = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(content.title)}"><table>'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
    note = f'<p class="note">{escape(content.note)}</p>'
    if len(content.rows) <= LONG_TABLE:
        return f'<div class="table"><h3>{escape(content.title)}</h3>{grid}{note}</div>'
    summary = f"<summary>{escape(content.title)} ({len(content.rows)} rows)</summary>"
    return f'<details class="table">{summary}{grid}{note}</details>'


def figure(drawn: Any, text: str, *, maps: bool = False) -> str:
    """A matplotlib figure: shapes for charts, pixels for label maps."""
    if maps:
        source = data_uri(figure_bytes(drawn, "png", dpi=110), "image/png")
    else:
        source = data_uri(figure_bytes(drawn, "svg"), "image/svg+xml")
    return picture(source, text, css="wide")


def picture(source: str, text: str, *, css: str = "") -> str:
    """An inline picture that scrolls by itself where it would become too small to read."""
    return (
        f'<figure class="{css}"><div class="scroll" tabindex="0" role="region" aria-label="{escape(text)}">'
        f'<img alt="{escape(text)}" src="{source}"></div></figure>'
    )


def chips(entries: Sequence[tuple[Sequence[int], str]]) -> str:
    """A legend: colours with their names."""
    parts = "".join(
        f'<li><i style="background:rgb({int(r)},{int(g)},{int(b)})"></i>{escape(text)}</li>'
        for (r, g, b), text in entries
    )
    return f'<ul class="chips">{parts}</ul>'


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
    content = io.BytesIO()
    image.save(content, kind, optimize=True)
    return data_uri(content.getvalue(), f"image/{kind.lower()}")


def data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _row(content: Table, row: dict[str, Any], kinds: Sequence[str]) -> str:
    cells = []
    for column, kind in zip(content.columns, kinds, strict=True):
        value, interval = show_cell(row, column)
        small = f" <small>{escape(interval)}</small>" if interval else ""
        cells.append(f"<td{kind}>{escape(value)}{small}</td>")
    return f"<tr>{''.join(cells)}</tr>"
