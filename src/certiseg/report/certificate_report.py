"""The report of one certified image: what is promised, the label map, its labels, and how far each pixel is proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis import trees
from certiseg.analysis.drawing import new_figure, show_map
from certiseg.analysis.exports import Column, Table
from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.report import html
from certiseg.report.pictures import LegendEntry, colour_map, legend
from certiseg.report.run_report import PLAIN

_WIDE = 960


def certificate_report(certificate: Certificate, name: str, *, image: NDArray[np.uint8] | None = None) -> str:
    """The page of a certificate; image: the photograph, which no certificate keeps."""
    if image is not None and image.shape[:2] != certificate.vertex.shape:
        raise InputError(
            f"image must have the size of the certificate, {certificate.vertex.shape}, got {image.shape[:2]}"
        )
    entries, settings = legend(certificate, most=10**6), certificate.settings
    promise = f'<div class="promise">{html.paragraphs(f"{PLAIN}{chr(10)}{certificate.claim()}")}</div>'
    sections = [
        html.Section("promise", "What is promised", promise),
        html.Section("labels", "Certified labels", _labels(certificate, entries, name, image)),
        html.Section("detail", "How fine the labels are", html.table(_detail(certificate))),
        html.Section("radius", "Radius of every pixel", _radius(certificate)),
        html.Section("settings", "Settings", _settings(certificate)),
    ]
    if certificate.hierarchy.num_levels > 1:
        tree = html.figure(trees.draw(certificate.hierarchy), f"Hierarchy {certificate.hierarchy.name}")
        sections.append(html.Section("hierarchy", "Hierarchy", tree))
    subtitle = f"{settings.method}: {1 - certificate.abstain_rate:.1%} of {certificate.tested:,} pixels certified"
    return html.page(f"certiseg: {name}", f"{subtitle} within R = {certificate.radius:.4f}", sections)


def _labels(
    certificate: Certificate, entries: Sequence[LegendEntry], name: str, image: NDArray[np.uint8] | None
) -> str:
    colours = colour_map(certificate.vertex, certificate.hierarchy)
    if certificate.region is not None:
        colours = np.where(certificate.region[..., None], colours, 90).astype(np.uint8)
    source = html.map_uri(colours, most=_WIDE)
    body = (
        ""
        if image is None
        else html.picture(html.photograph_uri(image, most=_WIDE), f"{name}, photograph", css="plain")
    )
    body += html.picture(source, f"{name}: certified labels, abstentions white", css="plain")
    shown = [(entry.colour, f"{entry.text} {entry.share:.1%}") for entry in _shortened(entries)]
    outside = [((90, 90, 90), "outside the region")] if certificate.region is not None else []
    rows = tuple({"label": entry.text, "share": entry.share} for entry in entries)
    columns = (Column("label", "label"), Column("share", "share of the tested pixels", "percent"))
    note = "Abstentions are listed last. A certified label can be wrong: the proof is about the model, not the truth."
    return body + html.chips([*shown, *outside]) + html.table(Table("All labels", note, columns, rows))


def _shortened(entries: Sequence[LegendEntry], most: int = 20) -> list[LegendEntry]:
    """The most frequent labels, and the abstentions."""
    return [*entries[:-1][:most], entries[-1]]


def _detail(certificate: Certificate) -> Table:
    """Share of the tested pixels by level, or by size of the set."""
    tested = np.ones(certificate.vertex.shape, bool) if certificate.region is None else certificate.region
    sets = certificate.settings.method == "sets"
    certified = certificate.set_size > 0 if sets else certificate.vertex >= 0
    fineness = certificate.set_size if sets else certificate.level
    values, counts = np.unique(fineness[tested & certified], return_counts=True)
    rows: list[dict[str, Any]] = [
        {"what": (f"{value} class{'es' if value > 1 else ''}" if sets else f"level {value}"), "share": float(count)}
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
    ]
    rows = [{**row, "share": row["share"] / certificate.tested} for row in rows]
    rows.append({"what": "abstained", "share": certificate.abstain_rate})
    head = "size of the set" if sets else "level of the hierarchy"
    note = "Level 0 are the classes themselves; higher levels are coarser." if not sets else "Smaller sets say more."
    columns = (Column("what", head), Column("share", "share of the tested pixels", "percent"))
    return Table("Certified pixels", note, columns, tuple(rows))


def _radius(certificate: Certificate) -> str:
    """The radius map as a picture with its scale, and what it promises."""
    found = certificate.radius_map
    height, width = found.shape
    figure, ((axes,),) = new_figure(9, 9 * height / width * 0.82 + 0.8)
    show_map(axes, np.zeros((height, width)), "proven radius, grey levels of 255 on one single value")
    axes.images[0].remove()
    drawn = axes.imshow(255 * found, cmap="viridis", interpolation="nearest", vmin=0)
    figure.colorbar(drawn, ax=axes, shrink=0.85)
    picture = html.figure(figure, "Heat map of the proven radius of every pixel", maps=True)
    return picture + html.paragraphs(certificate.radius_map_statement)


def _settings(certificate: Certificate) -> str:
    settings, votes, tree = certificate.settings, certificate.votes, certificate.hierarchy
    options = {"thresholds": settings.thresholds, "level": settings.level, "max_set": settings.max_set}
    chosen = ", ".join(f"{key} {value}" for key, value in options.items() if value is not None)
    needed = "more than n" if certificate.critical is None else f"{certificate.critical} of {votes.n}"
    pairs = [
        ("method", settings.method + (f" ({chosen})" if chosen else "")),
        ("sigma", f"{votes.sigma:g}"),
        ("tau", f"{settings.tau:g}"),
        ("alpha", f"{settings.alpha:g}"),
        ("R", f"{certificate.radius:.4f}"),
        ("correction", settings.correction + (f", k = {settings.k}" if settings.correction == "kfwer" else "")),
        ("test", settings.test),
        ("draws", f"n0 = {votes.n0}, n = {votes.n}"),
        ("votes needed", needed),
        ("seed", str(votes.seed)),
        ("image size", f"{votes.size[0]} x {votes.size[1]}"),
        ("pixels tested", f"{certificate.tested:,}"),
        ("hierarchy", f"{tree.name}, {tree.num_classes} classes, {tree.num_levels} levels"),
        *((str(key).replace("_", " "), _shown(value)) for key, value in votes.provenance.items() if value is not None),
    ]
    return html.facts(pairs)


def _shown(value: Any) -> str:
    """A value of the provenance as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
