"""One image of a run side by side: ground truth, the uncertified model, every method; abstentions are white."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from certiseg.analysis.drawing import method_name
from certiseg.analysis.images import scores_in_words
from certiseg.certificate import Certificate
from certiseg.hierarchy import ROOT, VOID
from certiseg.render.colours import colour_labels, colour_vertices
from certiseg.render.figures import MIXED, new_figure, show_map, vertex_legend
from certiseg.runs.folder import RunFolder
from certiseg.runs.settings import Setting
from certiseg.scores import score, score_prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(folder: RunFolder, name: str, setting: Setting, *, methods: Sequence[str], columns: int = 3) -> Figure:
    """The panels in a grid with one legend below; label sets under no vertex are grey. A run keeps no photograph."""
    tree, label, prediction = folder.manifest.tree, folder.label(name), folder.prediction(name)
    rows = math.ceil((2 + len(methods)) / columns)
    height = rows * (13 / columns * label.shape[0] / label.shape[1] + 0.5)
    vertices = {*label[label != VOID].tolist(), *prediction.flat}
    certificates = {method: folder.certificate(name, setting, method) for method in methods}
    for certificate in certificates.values():
        vertices |= set(np.unique(certificate.vertex).tolist())
    seen = sorted(int(vertex) for vertex in vertices if vertex >= 0)
    figure, panels = new_figure(13, height + 0.6 + 0.2 * math.ceil((len(seen) + 2) / 7), rows=rows, columns=columns)
    places: list[Axes] = panels.ravel().tolist()
    show_map(places[0], colour_labels(label, tree), "ground truth")
    model = score_prediction(prediction, label, num_classes=tree.num_classes)
    show_map(places[1], colour_labels(prediction, tree), f"uncertified\naccuracy {model.accuracy:.3f}")
    for place, (method, certificate) in zip(places[2:], certificates.items(), strict=False):
        show_certificate(place, certificate, folder, name, method)
    for place in places[2 + len(methods) :]:
        place.set_axis_off()
    vertex_legend(figure, tree, seen, also=[MIXED] if ROOT in vertices else [])
    figure.suptitle(f"{name}, {folder.manifest.words(setting)}", fontsize=12)
    return figure


def show_certificate(axes: Axes, certificate: Certificate, folder: RunFolder, name: str, method: str) -> None:
    """A certified map, with its scores in the title."""
    title = f"{method_name(method)}\n{scores_in_words(vars(score(certificate, folder.label(name))))}"
    show_map(axes, colour_vertices(certificate.vertex, certificate.hierarchy), title)
