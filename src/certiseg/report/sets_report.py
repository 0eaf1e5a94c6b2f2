"""The report of the calibrated sets of one image: a promise about the truth, their sizes, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from certiseg.analysis.exports import Column, Table
from certiseg.render.pictures import size_map
from certiseg.report.page import Section, image_uri, page, part, table
from certiseg.words import PROMISE

if TYPE_CHECKING:
    from PIL.Image import Image

    from certiseg.truth.answer import TruthSets


def sets_report(found: TruthSets, name: str, *, image: str | None = None, show: Sequence[int] = ()) -> str:
    """The page of calibrated sets; image: the file of the photograph, which no file of sets keeps.

    show: the channels (from 1) that are shown of it.
    """
    summary = found.summary()
    picture = size_map(found.size) if image is None else found.overlay(image, channels=show)
    shares = {"size": summary["set_sizes"], "class": summary["in_sets"]}
    sections = [
        Section("promise", "What is promised", part("promise", found.claim())),
        Section("sizes", "How many classes the sets hold", _picture(picture, name) + _shares("size", shares["size"])),
        Section("classes", "Classes in the sets", _shares("class", shares["class"])),
        Section("settings", "Settings", part("facts", _facts(found))),
    ]
    kind = "a promise about the truth" if found.role == PROMISE else f"{found.role}, not a promise"
    subtitle = f"calibrated sets, {kind}: {found.mean_size:.2f} classes on average, one at {found.singletons:.1%}"
    return page(f"certiseg: {name}", subtitle, sections)


def _picture(picture: Image, name: str) -> Markup:
    return part("picture", image_uri(picture, "PNG"), f"{name}: number of classes in the set of every pixel", "plain")


def _shares(what: str, shares: dict[str, float]) -> Markup:
    columns = (Column("what", what), Column("share", "share of the pixels", "percent"))
    rows = tuple({"what": key, "share": share} for key, share in shares.items())
    note = "Smaller sets say more." if what == "size" else "Share of the pixels whose set holds the class."
    return table(Table("Sets", note, columns, rows))


def _facts(found: TruthSets) -> list[tuple[str, str]]:
    risk, pixels = found.level
    facts = {"method": "truth", "risk": risk, "pixels": pixels, "model": found.calibration.model.name}
    facts |= {"calibration images": found.calibration.images, "seed of the noise": found.seed}
    return [(name, str(value)) for name, value in facts.items()]
