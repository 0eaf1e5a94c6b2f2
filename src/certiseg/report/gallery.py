"""The gallery of a run: every image by every method, sorted by how much a method gains over segcertify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from certiseg.analysis.drawing import method_name
from certiseg.analysis.images import ImageScores, by_gain, image_scores
from certiseg.analysis.pieces import main_methods
from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    ROOT_COLOUR,
    VOID_COLOUR,
    colour_labels,
    colour_vertices,
    palette,
)
from certiseg.report.page import map_uri, part, photograph_uri
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.words import LOW_AGREEMENT

Photographs = Callable[[str], NDArray[np.uint8] | None]
"""The photograph of an image of the run, where there is one; a run keeps none."""


@dataclass(frozen=True)
class ShownMap:
    """A picture of a card."""

    source: str
    title: str
    text: str = ""


@dataclass(frozen=True)
class Card:
    """An image of the gallery; gains: over segcertify, one number per compared method."""

    name: str
    gains: str
    maps: list[ShownMap]


def gallery(
    folder: RunFolder,
    run: ScoredRun,
    setting: Setting,
    *,
    most: int,
    photograph: Photographs = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Markup:
    """The gallery as HTML, of at most `most` images: those with the largest and the smallest gains."""
    methods, tree = folder.manifest.methods, folder.manifest.tree
    others = main_methods(methods)
    shown = [m for m in (BASELINE, *others) if m in methods] or list(methods)
    compared = others if BASELINE in methods else []
    leading = "nested" if "nested" in compared else next(iter(compared), None)
    scores = image_scores(run, setting)
    chosen = _extremes(by_gain(scores, leading) if leading else scores, most)
    cards = []
    for image in chosen:
        gains = " ".join(f"{image.gain(method):.6f}" for method in compared)
        cards.append(Card(image.name, gains, list(_maps(folder, image, setting, shown, photograph(image.name)))))
        progress(1)
    which = f": those with the largest and the smallest gain of {method_name(leading)}" if leading else ""
    note = f"{len(chosen)} of {len(scores)} images{which if len(chosen) < len(scores) else ''}."
    note += f" {folder.manifest.words(setting)}. White: abstained."
    colours = [
        *zip(palette(tree).tolist(), tree.vertices, strict=True),
        (ABSTAIN_COLOUR, "abstained"),
        (ROOT_COLOUR, "set under no vertex"),
        (VOID_COLOUR, "void"),
    ]
    names = [method_name(method) for method in compared]
    return part("gallery", cards, names, leading and method_name(leading), note, colours)


def _extremes(ordered: Sequence[ImageScores], most: int) -> list[ImageScores]:
    """All images if they are few enough, otherwise half of the first and half of the last."""
    if len(ordered) <= most:
        return list(ordered)
    last = most // 2
    return [*ordered[: most - last], *ordered[len(ordered) - last :]]


def _maps(
    folder: RunFolder,
    image: ImageScores,
    setting: Setting,
    methods: Sequence[str],
    photograph: NDArray[np.uint8] | None,
) -> Iterator[ShownMap]:
    tree, name = folder.manifest.tree, image.name
    if photograph is not None:
        yield ShownMap(photograph_uri(photograph), "photograph")
    yield ShownMap(map_uri(colour_labels(folder.label(name), tree)), "ground truth")
    yield ShownMap(map_uri(colour_labels(folder.prediction(name), tree)), "model", "without noise or proof")
    for method in methods:
        vertex = folder.certificate(name, setting, method).vertex
        gain = f", gain {image.gain(method):+.3f}" if BASELINE in methods and method != BASELINE else ""
        agreement = image.of[method]["agreement"]
        warning = f"; WARNING: agreement {agreement:.1%}" if agreement < LOW_AGREEMENT else ""
        title = f"{method_name(method)} ({folder.manifest.role(method, setting)})"
        yield ShownMap(map_uri(colour_vertices(vertex, tree)), title, f"{image.words(method)}{gain}{warning}")
