"""One image of a run side by side: ground truth, the uncertified model, every method; abstentions are white."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import (
    MIXED,
    colour_labels,
    colour_vertices,
    method_name,
    new_figure,
    save_figure,
    show_map,
    vertex_legend,
)
from certiseg.palette import ROOT_COLOUR
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.scores import VOID, evaluate, evaluate_prediction


def panels(
    folder: RunFolder,
    name: str,
    setting: Setting,
    *,
    methods: Sequence[str] | None = None,
    image: NDArray[np.uint8] | None = None,
) -> tuple[dict[str, NDArray[np.uint8]], list[int]]:
    """Title -> picture (H, W, 3), and the vertices that occur in them.

    image: the photograph, where somebody has it; a run keeps none.
    """
    tree, label, prediction = folder.manifest.tree, folder.label(name), folder.prediction(name)
    pictures = {} if image is None else {"image": np.asarray(image)}
    pictures["ground truth"] = colour_labels(label, tree)
    model = evaluate_prediction(prediction, label, num_classes=tree.num_classes)
    pictures[f"uncertified\naccuracy {model.accuracy:.3f}"] = colour_labels(prediction, tree)
    seen = set(np.unique(label[label != VOID]).tolist()) | set(np.unique(prediction).tolist())
    for method in methods or folder.manifest.methods:
        certificate = folder.certificate(name, setting, method)
        scores = evaluate(certificate, label)
        title = f"{method_name(method)}\nCIG {scores.cig:.3f}, abstain {scores.abstain:.1%}"
        pictures[title] = colour_vertices(certificate.vertex, tree)
        seen |= set(certificate.vertex[certificate.vertex >= 0].tolist())
    return pictures, sorted(int(vertex) for vertex in seen)


def draw(
    folder: RunFolder,
    name: str,
    setting: Setting,
    *,
    methods: Sequence[str] | None = None,
    image: NDArray[np.uint8] | None = None,
    columns: int = 3,
) -> Any:
    """The panels in a grid with one legend below; label sets under no vertex are grey."""
    pictures, seen = panels(folder, name, setting, methods=methods, image=image)
    rows, tree = math.ceil(len(pictures) / columns), folder.manifest.tree
    height, width = folder.label(name).shape
    legend_lines = math.ceil((len(seen) + 2) / 7)
    size = (13, rows * (13 / columns * height / width + 0.5) + 0.6 + 0.2 * legend_lines)
    figure, axes = new_figure(*size, rows=rows, columns=columns)
    for place, (title, picture) in zip(axes.flat, pictures.items(), strict=False):
        show_map(place, picture, title)
    for place in axes.flat[len(pictures) :]:
        place.set_axis_off()
    mixed = any((picture == ROOT_COLOUR).all(axis=2).any() for picture in pictures.values())
    vertex_legend(figure, tree, seen, also=[MIXED] if mixed else [])
    figure.suptitle(f"{name}, sigma = {setting.sigma:g}, n = {setting.n}, tau = {setting.tau:g}", fontsize=12)
    return figure


def write(folder: RunFolder, out: str | Path, *, name: str, setting: Setting, **options: Any) -> list[Path]:
    """visual-NAME-SETTING.* in the folder `out`; without `image` the pictures show label maps only."""
    plain = name.replace("/", "__").replace("\\", "__")
    return save_figure(draw(folder, name, setting, **options), f"{out}/visual-{plain}-{setting}")
