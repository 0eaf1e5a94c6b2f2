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
from certiseg.certificate import Certificate
from certiseg.hierarchy import ROOT, Hierarchy
from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    ROOT_COLOUR,
    VOID_COLOUR,
    Colours,
    colour_labels,
    colour_vertices,
    from_hex,
)
from certiseg.render.groups import SEVERAL, groups_of
from certiseg.render.verdict import VERDICTS, colour_verdicts
from certiseg.report.page import Chip, map_uri, part, photograph_uri, vertex_chip
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.scores import verdict_map
from certiseg.words import LOW_AGREEMENT

Photographs = Callable[[str], NDArray[np.uint8] | None]
"""The photograph of an image of the run, where there is one; a run keeps none."""


@dataclass(frozen=True)
class ShownMap:
    """A picture of a card."""

    source: str
    title: str
    text: str = ""
    more: bool = False
    """A comparison, which is not printed."""


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
    colours: Colours = "classes",
    photograph: Photographs = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Markup:
    """The gallery as HTML, of at most `most` images: those with the largest and the smallest gains."""
    methods, tree = folder.manifest.methods, folder.manifest.tree
    others = main_methods(methods)
    promised = folder.manifest.promised[0]
    rest = [m for m in (BASELINE, *others) if m in methods and m != promised]
    compared = others if BASELINE in methods else []
    leading = "nested" if "nested" in compared else next(iter(compared), None)
    scores = image_scores(run, setting)
    chosen = _extremes(by_gain(scores, leading) if leading else scores, most)
    cards, seen = [], set[int]()
    for image in chosen:
        gains = " ".join(f"{image.gain(method):.6f}" for method in compared)
        maps = _Maps(folder, image, setting, colours, seen)
        cards.append(Card(image.name, gains, list(maps.all([promised, *rest], photograph(image.name)))))
        progress(1)
    which = f": those with the largest and the smallest gain of {method_name(leading)}" if leading else ""
    note = f"{len(chosen)} of {len(scores)} images{which if len(chosen) < len(scores) else ''}."
    note += f" {folder.manifest.words(setting)}. White: abstained. Lines and dots: coarser than a class."
    names = [method_name(method) for method in compared]
    return part("gallery", cards, names, leading and method_name(leading), note, legend(tree, seen, colours))


def legend(tree: Hierarchy, seen: set[int], colours: Colours) -> list[Chip]:
    """What the colours of the maps mean: the labels that occur, or their groups; then those of no label."""
    groups = groups_of(tree) if colours == "groups" else None
    if groups is None:
        chips = [vertex_chip(tree, vertex, colours) for vertex in sorted(seen) if vertex >= 0]
    else:
        places = sorted({int(groups.of[vertex]) for vertex in seen if vertex >= 0})
        named = [(groups.colours[place].tolist(), (*groups.names, SEVERAL)[place]) for place in places]
        chips = [Chip(colour, name, name) for colour, name in named]
    chips.append(Chip(ABSTAIN_COLOUR, "abstained", "abstained"))
    if ROOT in seen:
        chips.append(Chip(ROOT_COLOUR, "set under no vertex", "set under no vertex"))
    chips.append(Chip(VOID_COLOUR, "void", "void"))
    return [*chips, *(Chip(from_hex(each.colour), each.words, each.words) for each in VERDICTS if each.colour)]


def _extremes(ordered: Sequence[ImageScores], most: int) -> list[ImageScores]:
    """All images if they are few enough, otherwise half of the first and half of the last."""
    if len(ordered) <= most:
        return list(ordered)
    last = most // 2
    return [*ordered[: most - last], *ordered[len(ordered) - last :]]


@dataclass(frozen=True)
class _Maps:
    """The maps of one image; seen: collects the labels that they show."""

    folder: RunFolder
    image: ImageScores
    setting: Setting
    colours: Colours
    seen: set[int]

    def all(self, methods: Sequence[str], photograph: NDArray[np.uint8] | None) -> Iterator[ShownMap]:
        """Photograph, truth, model, the promise, where it is wrong, then the comparisons."""
        label = self.folder.label(self.image.name)
        if photograph is not None:
            yield ShownMap(photograph_uri(photograph), "photograph")
        yield self._labels(label, "ground truth")
        yield self._labels(self.folder.prediction(self.image.name), "model", "without noise or proof")
        for place, method in enumerate(methods):
            certificate = self.folder.certificate(self.image.name, self.setting, method)
            yield self._certified(certificate, method, more=place > 0)
            if place == 0:
                yield ShownMap(
                    map_uri(colour_verdicts(verdict_map(certificate, label))),
                    "right or wrong",
                    "blue: right, orange: wrong",
                )

    def _labels(self, label: NDArray[np.integer], title: str, text: str = "") -> ShownMap:
        tree = self.folder.manifest.tree
        self.seen.update(int(k) for k in np.unique(label) if k < tree.num_classes)
        return ShownMap(map_uri(colour_labels(label, tree, colours=self.colours)), title, text)

    def _certified(self, certificate: Certificate, method: str, *, more: bool) -> ShownMap:
        image, tree = self.image, self.folder.manifest.tree
        self.seen.update(np.unique(certificate.vertex).tolist())
        gain = f", gain {image.gain(method):+.3f}" if BASELINE in image.of and method != BASELINE else ""
        agreement = image.of[method]["agreement"]
        warning = f"; WARNING: agreement {agreement:.1%}" if agreement < LOW_AGREEMENT else ""
        title = f"{method_name(method)} ({self.folder.manifest.role(method, self.setting)})"
        painted = colour_vertices(certificate.vertex, tree, colours=self.colours)
        return ShownMap(map_uri(painted), title, f"{image.words(method)}{gain}{warning}", more)
