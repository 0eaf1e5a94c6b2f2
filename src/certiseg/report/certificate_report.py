"""The report of one certified image: what is promised, the label map, its labels, and the radius of each pixel."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from markupsafe import Markup
from numpy.typing import NDArray

from certiseg.analysis.exports import Column, Table
from certiseg.errors import InputError
from certiseg.images import BYTES, shown_words
from certiseg.render.colours import OUTSIDE_COLOUR, colour_vertices
from certiseg.render.figures import new_figure, show_map
from certiseg.render.pictures import legend
from certiseg.render.tree import draw_tree
from certiseg.report.page import Chip, Section, figure, map_uri, page, part, photograph_uri, table
from certiseg.report.summary import PLAIN
from certiseg.words import agreement_words, confidence, rounded_down

if TYPE_CHECKING:
    import numpy as np

    from certiseg.bounds import Bounds
    from certiseg.certificate import Certificate, LabelShare

_WIDE = 960
_MOST_LABELS = 20


def certificate_report(
    certificate: Certificate,
    name: str,
    *,
    image: NDArray[np.uint8] | None = None,
    show: Sequence[int] = (),
    bounds: Bounds | None = None,
    path: str | None = None,
) -> str:
    """The page of a certificate.

    image: the photograph, which no certificate keeps; show: the channels it shows; bounds: of objects and the whole
    image, from the same draws; path: the file, for the command that checks it.
    """
    size, settings, tree = certificate.vertex.shape, certificate.settings, certificate.hierarchy
    if image is not None and image.shape[:2] != size:
        raise InputError(f"image must have the size of the certificate, {size}, got {image.shape[:2]}")
    sections = [
        Section(
            "promise",
            "What is promised",
            part("promise", f"{PLAIN}\n{certificate.claim()}\n{agreement_words(certificate.agreement)}."),
        ),
        Section("not-promised", "What is not promised", part("points", _not_promised(certificate))),
        Section("labels", "Certified labels", _labels(certificate, certificate.label_shares(), name, image, show)),
        Section("detail", "How fine the labels are", table(_detail(certificate))),
        Section("radius", f"{_measured(certificate).capitalize()} of every pixel", _radius(certificate)),
        Section("settings", "Settings", part("facts", _settings(certificate))),
    ]
    if bounds is not None:
        sections.insert(3, Section("objects", "Objects and the whole image", _bounds(bounds)))
    if path is not None:
        checked = [(f"certiseg verify {shlex.quote(path)}", "recomputed from its votes by other code")]
        sections.insert(2, Section("verify", "Check it", part("commands", checked)))
    if tree.num_levels > 1:
        sections.append(Section("hierarchy", "Hierarchy", figure(draw_tree(tree), f"Hierarchy {tree.name}")))
    subtitle = f"{settings.method}: {1 - certificate.abstain_rate:.1%} of {certificate.tested:,} pixels certified"
    return page(f"certiseg: {name}", f"{subtitle} for {certificate.extent}", sections)


def _labels(
    certificate: Certificate,
    shares: Sequence[LabelShare],
    name: str,
    image: NDArray[np.uint8] | None,
    show: Sequence[int],
) -> Markup:
    colours = colour_vertices(certificate.vertex, certificate.hierarchy, region=certificate.region)
    body = Markup()
    if image is not None:
        channels = certificate.votes.channels
        which = f" ({shown_words(channels, show)})" if channels != 3 or show else ""
        body += part("picture", photograph_uri(image, most=_WIDE), f"{name}, photograph{which}", "plain")
    text = f"{name}: certified labels, abstentions white"
    body += part("picture", map_uri(colours, most=_WIDE), text, "plain named")
    chips = [
        Chip(entry.colour, f"{entry.text} {entry.share:.1%}", entry.text, entry.texture)
        for entry in legend(shares, certificate.hierarchy, most=_MOST_LABELS)
    ]
    if certificate.region is not None:
        chips.append(Chip(OUTSIDE_COLOUR, "outside the region", "outside the region"))
    columns = (Column("text", "label"), Column("share", "share of the tested pixels", "percent"))
    note = "Abstentions are listed last. A certified label can be wrong: the proof is about the model, not the truth."
    rows = tuple(label._asdict() for label in shares)
    return body + part("chips", chips) + table(Table("All labels", note, columns, rows))


def _not_promised(certificate: Certificate) -> list[str]:
    return [
        "That a label is true: the proof is about the smoothed model's answers, and a certified label can be wrong.",
        f"Anything where it abstains: {certificate.abstain_rate:.1%} of the pixels.",
        f"Any other change than {certificate.extent}: nothing larger, and no other kind.",
    ]


def _bounds(bounds: Bounds) -> Markup:
    """What holds for objects and the whole image, with an alpha of their own."""
    columns = (
        Column("name", "measure"),
        Column("pixels", "pixels", "count"),
        Column("bound", "bound", "percent"),
        Column("says", "what is certified"),
    )
    sure = confidence(bounds.settings.alpha)
    note = f"For {bounds.extent}, with probability {sure} for all of them, beside the alpha of the pixels."
    if bounds.record.explored:
        note = "Exploration, not a promise: these measures were asked after the label maps were drawn."
    title = "Explored bounds" if bounds.record.explored else "Certified bounds"
    return table(Table(title, note, columns, tuple(bounds.table())))


def _detail(certificate: Certificate) -> Table:
    """Share of the tested pixels by level, or by size of the set."""
    sets = certificate.settings.method == "sets"
    head = "size of the set" if sets else "level of the hierarchy"
    note = "Smaller sets say more." if sets else "Level 0 are the classes themselves; higher levels are coarser."
    columns = (Column("what", head), Column("share", "share of the tested pixels", "percent"))
    rows = tuple({"what": what, "share": share} for what, share in certificate.detail_shares().items())
    return Table("Certified pixels", note, columns, rows)


def _measured(certificate: Certificate) -> str:
    """What is certified pixel by pixel: a radius, or with a threat a range."""
    return "radius" if certificate.votes.threat.law == "none" else "range"


def _radius(certificate: Certificate) -> Markup:
    """The radius map as a picture with its scale, and what it promises."""
    height, width = certificate.vertex.shape
    drawn, ((axes,),) = new_figure(9, 9 * height / width * 0.82 + 0.8)
    what = _measured(certificate)
    ranges = certificate.votes.image_values
    title, factor = "certified radius, in units of the range of values", 1.0
    if len(ranges) == 1:
        factor = ranges[0][1] - ranges[0][0]
        title = f"certified radius, {'grey levels of 255' if ranges == BYTES else 'in the numbers of the file'}"
        title += " on one single value"
    if what == "range":
        title, factor = f"end of the certified range, t of {certificate.votes.threat.name}", 1.0
    shown = show_map(axes, factor * certificate.radius_map, title, cmap="viridis", vmin=0)
    drawn.colorbar(shown, ax=axes, shrink=0.85)
    picture = figure(drawn, f"Heat map of the certified {what} of every pixel", maps=True)
    return picture + part("paragraphs", certificate.radius_map_statement)


def _settings(certificate: Certificate) -> list[tuple[str, str]]:
    """The settings of the certificate, of its draws, and where they came from."""
    votes, tree, chosen = certificate.votes, certificate.hierarchy, asdict(certificate.settings)
    if certificate.settings.correction != "kfwer":
        del chosen["k"]
    needed = "more than n" if certificate.critical is None else f"{certificate.critical} of {votes.n}"
    facts: dict[str, object] = {
        **chosen,
        "sigma": votes.sigma,
        "R": rounded_down(certificate.radius, 4),
        "threat": None if votes.threat.law == "none" else f"{votes.threat.describe()}, scale {votes.threat.scale:g}",
        "range of t": None if votes.threat.law == "none" else certificate.range,
        "draws": f"n0 = {votes.n0}, n = {votes.n}" + (f" at {len(votes.anchors)} anchors" if votes.further else ""),
        "votes needed": needed,
        "seed": votes.seed,
        "image size": f"{votes.size[0]} x {votes.size[1]}",
        "pixels tested": f"{certificate.tested:,}",
        "hierarchy": f"{tree.name}, {tree.size}",
    }
    everything = [*facts.items(), *votes.provenance.items()]
    return [(str(name).replace("_", " "), _shown(value)) for name, value in everything if value is not None]


def _shown(value: object) -> str:
    """A value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
