"""Options of measures: objects, areas and the whole image; and what is written and said about their bounds."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from certiseg.errors import InputError
from certiseg.measures.files import area_question, read_instances
from certiseg.measures.measure import percent
from certiseg.measures.questions import Question, kept, objects
from certiseg.words import confidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.bounds import Bounds
    from certiseg.hierarchy import Hierarchy

LEAST_AREA = 100


def add_measure_options(parser: argparse.ArgumentParser) -> None:
    """What is asked about objects, areas and the whole image."""
    group = parser.add_argument_group("objects, areas, the whole image (docs/measures.md)")
    add_objects_options(group)
    group.add_argument(
        "--area",
        action="append",
        metavar="FILE:LABEL",
        help="how free of a label an area stays: a mask, a polygon in JSON, or lane or image; may be given again",
    )
    group.add_argument(
        "--instances",
        action="append",
        metavar="FILE[:LABEL]",
        help="objects of your own: COCO JSON, Cityscapes instanceIds, or a map of ids with their label",
    )
    group.add_argument("--keep-maps", action="store_true", help="keep the label map of every draw, to ask more later")
    group.add_argument("--measures-only", action="store_true", help="no certificate of pixels; fewer draws are enough")


def add_objects_options(group: Any) -> None:
    """Which connected parts of the candidate map are objects."""
    group.add_argument(
        "--objects",
        nargs="?",
        const="",
        metavar="LABELS",
        help="bound every object of these labels, for example vehicle,human (default: the things of the hierarchy)",
    )
    group.add_argument(
        "--least-area", type=int, metavar="PIXELS", help=f"the least area of an object (default: {LEAST_AREA})"
    )


def object_labels(asked: str | None, least: int | None, hierarchy: Hierarchy | None) -> tuple[str, ...]:
    """The labels whose connected parts are objects; none where none are asked for."""
    if asked is None:
        if least is not None:
            raise InputError("--least-area must come with --objects, got it alone")
        return ()
    things = () if hierarchy is None else hierarchy.things
    labels = tuple(name.strip() for name in asked.split(",") if name.strip()) or things
    if not labels:
        raise InputError("--objects must name labels, got none, and the hierarchy names no things of its own")
    if hierarchy is not None and (strange := [label for label in labels if label not in hierarchy.vertices]):
        raise InputError(f"--objects must name classes or vertices of {hierarchy.name}, got {strange[0]!r}")
    return labels


def questions_of(
    args: argparse.Namespace, size: tuple[int, int], hierarchy: Hierarchy | None, image: str
) -> list[Question]:
    """All that is measured in an image: the whole of it by default, and what the options ask for."""
    asked = [kept()]
    if labels := object_labels(args.objects, args.least_area, hierarchy):
        asked.append(objects(*labels, least=LEAST_AREA if args.least_area is None else args.least_area))
    asked += [area_question(text, size) for text in args.area or ()]
    for text in args.instances or ():
        if hierarchy is None:
            raise InputError("--instances must come with a hierarchy, got none; give --hierarchy")
        for instance in read_instances(text, size, hierarchy, image=image):
            asked += instance.questions()
    for question in asked:
        if hierarchy is not None and isinstance(question.label, list | str):
            for name in [question.label] if isinstance(question.label, str) else question.label:
                hierarchy.id(name)
    return asked


def summary_of(bounds: Bounds) -> dict[str, Any]:
    """What a program wants to know about the bounds of an image."""
    settings = bounds.settings
    return {
        "alpha": settings.alpha,
        "tau": settings.tau,
        "test": settings.test,
        "draws_needed": bounds.critical,
        "covered": bounds.extent,
        "bounds": bounds.table(),
        "claim": bounds.claim(),
    }


def together(alpha: float) -> str:
    """What a certificate of pixels and bounds of measures promise at once."""
    return (
        f"Pixels and measures spend an alpha of {alpha:g} each: both together hold with probability at least "
        f"{confidence(min(2 * alpha, 1))}."
    )


def lines_of(bounds: Bounds, *, most: int = 8) -> list[str]:
    """A line for the whole image, and one for each object and area."""
    shown = list(zip(bounds.measures, bounds.lower.tolist(), strict=True))
    lines = [measure.sentence(value) for measure, value in shown if measure.kind != "overlap"]
    return lines[:most] + ([f"and {len(lines) - most} more: see the CSV file"] if len(lines) > most else [])


def csv_of(bounds: Bounds) -> bytes:
    """The table of bounds as CSV."""
    rows, text = bounds.table(), io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def drawn_objects(bounds: Bounds) -> Iterable[tuple[NDArray[np.bool_], str]]:
    """Outline, name and bound of every object and area."""
    for measure, value in zip(bounds.measures, bounds.lower.tolist(), strict=True):
        if measure.kind in ("share", "free") and measure.name != "the image":
            word = "free " if measure.kind == "free" else ""
            yield measure.inside.mask, f"{measure.name}: {word}>= {percent(value)}"
