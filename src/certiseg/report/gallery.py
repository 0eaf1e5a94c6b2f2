"""The gallery of a run: every image by every method, where one wins most over segcertify first, or last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import VOID_COLOUR, colour_labels, colour_vertices, method_name
from certiseg.analysis.experiments import main_methods
from certiseg.analysis.images import ImageScores, by_gain, image_scores
from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import BASELINE
from certiseg.palette import ABSTAIN_COLOUR, ROOT_COLOUR, palette
from certiseg.report.html import chips, map_uri, photograph_uri
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting

Photographs = Callable[[str], NDArray[np.uint8] | None]
"""The photograph of an image of the run, where somebody has it; a run keeps none."""


def gallery(
    folder: RunFolder,
    pools: Pools,
    setting: Setting,
    *,
    most: int,
    photograph: Photographs = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> str:
    """The gallery as HTML: at most so many images, those with the largest and the least gains."""
    others = main_methods(folder.manifest.methods)
    shown = [m for m in (BASELINE, *others) if m in folder.manifest.methods] or list(folder.manifest.methods)
    compared = others if BASELINE in folder.manifest.methods else []
    leading = "nested" if "nested" in compared else (compared[0] if compared else None)
    scores = image_scores(pools, setting)
    chosen = _extremes(by_gain(scores, leading) if leading else scores, most)
    cards = []
    for place, image in enumerate(chosen):
        gains = " ".join(f"{image.gain(method):.6f}" for method in compared)
        maps = _maps(folder, image, setting, shown, photograph(image.name))
        cards.append(
            f'<article class="card" data-place="{place}" data-gains="{gains}"><h3>{escape(image.name)}</h3>'
            f'<div class="maps">{maps}</div></article>'
        )
        progress(1)
    count = f"{len(chosen)} of {len(scores)} images" + (
        f": those with the largest and the least gain of {method_name(leading)}."
        if leading and len(chosen) < len(scores)
        else "."
    )
    return (
        f"{_controls(compared, leading)}"
        f'<p class="count">{escape(count)} {escape(_setting_text(setting))} White: abstained.</p>'
        f"{_legend(folder)}"
        f'<div class="cards">{"".join(cards)}</div>'
    )


def _extremes(ordered: Sequence[ImageScores], most: int) -> list[ImageScores]:
    """All images if they are few enough, else half of the first and half of the last."""
    if len(ordered) <= most:
        return list(ordered)
    last = most // 2
    return [*ordered[: most - last], *ordered[len(ordered) - last :]]


def _controls(compared: Sequence[str], leading: str | None) -> str:
    if leading is None:
        return ""
    options = "".join(
        f"<option{' selected' if m == leading else ''}>{escape(method_name(m))}</option>" for m in compared
    )
    return (
        f'<div class="controls"><label>Gain over SegCertify of <select id="gain-of">{options}</select></label>'
        '<label>Order <select id="gain-order"><option value="best">best first</option>'
        '<option value="worst">worst first</option></select></label></div>'
    )


def _maps(
    folder: RunFolder,
    image: ImageScores,
    setting: Setting,
    methods: Sequence[str],
    photograph: NDArray[np.uint8] | None,
) -> str:
    tree, name = folder.manifest.tree, image.name
    parts = [] if photograph is None else [_map(photograph_uri(photograph), name, "photograph", "")]
    parts.append(_map(map_uri(colour_labels(folder.label(name), tree)), name, "ground truth", ""))
    parts.append(_map(map_uri(colour_labels(folder.prediction(name), tree)), name, "model", "without noise or proof"))
    for method in methods:
        vertex = folder.certificate(name, setting, method).vertex
        gain = f" ({image.gain(method):+.3f})" if BASELINE in methods and method != BASELINE else ""
        text = f"CIG {image.cig[method]:.3f}{gain}, abstained {image.abstain[method]:.1%}"
        parts.append(_map(map_uri(colour_vertices(vertex, tree)), name, method_name(method), text))
    return "".join(parts)


def _map(source: str, name: str, title: str, text: str) -> str:
    alternative = escape(f"{name}, {title}{f': {text}' if text else ''}")
    return (
        f'<figure><button class="zoom" type="button"><img alt="{alternative}" loading="lazy" src="{source}"></button>'
        f"<figcaption>{escape(title)} <span>{escape(text)}</span></figcaption></figure>"
    )


def _legend(folder: RunFolder) -> str:
    tree = folder.manifest.tree
    entries = list(zip(palette(tree).tolist(), tree.vertices, strict=True))
    extra = [(ABSTAIN_COLOUR, "abstained"), (ROOT_COLOUR, "set under no vertex"), (VOID_COLOUR, "void")]
    return f"<details><summary>Colours</summary>{chips([*entries, *extra])}</details>"


def _setting_text(setting: Setting) -> str:
    return f"sigma = {setting.sigma:g}, n = {setting.n}, tau = {setting.tau:g}."
