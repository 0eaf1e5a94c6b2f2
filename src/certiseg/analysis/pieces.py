"""Every experiment of the paper over one run folder, as pieces of a document: heading, text, table and figure.

None of them calls the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from certiseg.analysis import (
    boundaries,
    fluctuations,
    levels,
    objects,
    per_class,
    set_sizes,
    thresholds,
    tradeoff,
    visual,
)
from certiseg.analysis import tables as score_tables
from certiseg.analysis import tuned_comparison as tuned
from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Table
from certiseg.analysis.images import by_gain, image_scores
from certiseg.render.tree import draw_tree
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import MethodChoice, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAIN = ("adaptive", "nested", "sets")
"""The methods that are compared with segcertify, in the order in which they are shown."""


@dataclass(frozen=True)
class Piece:
    """A table, a figure, or both."""

    stem: str
    """Name of its files, without the extension."""
    title: str
    text: str
    table: Table | None = None
    draw: Callable[[], Figure] | None = None
    """Draws the figure, which takes longer than the table."""
    maps: bool = False
    """Whether the figure shows label maps, which are smaller as pixels than as vector graphics."""


def all_pieces(folder: RunFolder, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Every experiment for which the run has the methods, images and draws."""
    run = ScoredRun(folder)
    yield from score_pieces(run, draws=draws)
    yield from tuned_pieces(folder, run, setting, draws=draws)
    yield from class_pieces(run, setting)
    yield from level_pieces(folder, run, setting)
    yield from object_pieces(folder, setting)
    yield from boundary_pieces(folder, run, setting, draws=draws)
    yield vote_piece(folder, setting)
    yield from tradeoff_pieces(folder, setting)
    yield from visual_pieces(folder, run, setting)
    yield hierarchy_piece(folder)


def main_pieces(folder: RunFolder, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Those that an engineer asks for: the scores, and the tables of objects."""
    yield next(score_pieces(ScoredRun(folder), draws=draws))
    for piece in object_pieces(folder, setting):
        yield replace(piece, draw=None)


def main_methods(methods: tuple[str, ...]) -> list[str]:
    """The first of each of adaptive, nested and sets that a run has."""
    kinds = {MethodChoice(m).options["method"]: m for m in reversed(methods)}
    return [kinds[kind] for kind in MAIN if kind in kinds]


def score_pieces(
    run: ScoredRun, *, settings: tuple[Setting, ...] | None = None, draws: int = 1000, stem: str = ""
) -> Iterator[Piece]:
    """Scores, and changes against segcertify."""
    text = "CIG is 1 if every pixel is certified as its class; coarser labels count less, wrong ones and none nothing."
    yield Piece(f"scores{stem}", "Scores", text, score_tables.score_table(run, draws=draws, settings=settings))
    if BASELINE in run.manifest.methods and len(run.manifest.methods) > 1:
        text = "Relative to SegCertify at the same setting; fewer abstentions are better."
        table = score_tables.gain_table(run, draws=draws, settings=settings)
        yield Piece(f"gains{stem}", "Change against SegCertify", text, table)


def tuned_pieces(folder: RunFolder, run: ScoredRun, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Tuned thresholds against methods that need none, and the threshold functions over n."""
    anchors = len(folder.manifest.sampling(setting.sigma).anchors)
    if folder.manifest.tree.num_levels < 2 or len(run.images) < 2 or anchors > 1:
        return
    searches = thresholds.search_over_n(folder, sigma=setting.sigma, tau=setting.tau)
    for search in searches:
        if search.setting == setting:
            text = "Each image is certified with thresholds that were chosen on other images."
            table = tuned.to_table(tuned.compare_with_tuned(run, search), draws=draws)
            yield Piece(f"tuned-{setting}", "Against tuned thresholds", text, table)
    if searches:
        stem = f"thresholds-sigma{setting.sigma:g}-tau{setting.tau:g}"
        text = "Every threshold function of the grid over the number of draws, on images not used for the choice."
        table = thresholds.to_table(searches[-1], promise=folder.manifest.guarantee(), most=10, draws=draws)
        yield Piece(stem, "Threshold functions over n", text, table, partial(thresholds.draw, searches))


def class_pieces(run: ScoredRun, setting: Setting) -> Iterator[Piece]:
    """Per-class differences of each main method."""
    for method in main_methods(run.manifest.methods) if BASELINE in run.manifest.methods else ():
        table = per_class.class_table(run, method, setting)
        text = "Right: more pixels certified than by SegCertify. Up: more information. Top right wins twice."
        stem = f"classes-{setting}-{method.partition(':')[0]}"
        yield Piece(stem, f"{method_name(method)} by class", text, table, partial(per_class.draw, table))


def level_pieces(folder: RunFolder, run: ScoredRun, setting: Setting) -> Iterator[Piece]:
    """Shares per level, and per set size."""
    with_sets = set_sizes.set_methods(run.manifest.methods)
    if len(with_sets) < len(run.manifest.methods):
        table = levels.level_table(run, setting)
        text = "How coarse the labels are: share of pixels at each level of the hierarchy."
        yield Piece(f"levels-{setting}", "Per level", text, table, partial(levels.draw, table))
    for method in with_sets:
        table = set_sizes.set_size_table(folder, method, setting, note=run.describe())
        text = "How many classes a certified set holds; it is right when the true class is among them."
        stem = f"{method.replace(':', '')}-sizes-{setting}"
        yield Piece(stem, "By set size", text, table, partial(set_sizes.draw, table))


def object_pieces(folder: RunFolder, setting: Setting) -> Iterator[Piece]:
    """Recall and precision of objects, and the whole images, where the run has measured them."""
    if folder.manifest.objects is None:
        return
    recall = objects.recall_table(folder, setting)
    if recall.rows:
        text = "How many of the true objects are certified to be seen, by label and size."
        yield Piece(f"recall-{setting}", "Certified recall of objects", text, recall, partial(objects.draw, recall))
    text = "How many of the objects that the model finds are real: a bound tells true from false."
    yield Piece(f"precision-{setting}", "Certified precision", text, objects.precision_table(folder, setting))
    text = "What holds for whole images at once, and how free of phantoms they stay where there is no object."
    yield Piece(f"whole-{setting}", "Whole images", text, objects.image_table(folder, setting))


def boundary_pieces(folder: RunFolder, run: ScoredRun, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Boundary against other pixels, and one image in six panels."""
    table = boundaries.boundary_table(run, setting, draws=draws)
    text = "Where labels meet, models waver: pixels within 10 of another label against the rest."
    yield Piece(f"boundaries-{setting}", "Boundaries", text, table)
    others = main_methods(run.manifest.methods)
    if BASELINE in run.manifest.methods and others:
        ordered = by_gain(image_scores(run, setting), others[0])
        name = ordered[len(ordered) // 2].name
        text = f"{name}, the image with the median gain: where SegCertify and {method_name(others[0])} abstain."
        draw = partial(boundaries.draw_example, folder, name, setting, method=others[0])
        yield Piece(f"boundary-example-{setting}", "Boundaries in one image", text, draw=draw, maps=True)


def vote_piece(folder: RunFolder, setting: Setting) -> Piece:
    """Sets of classes between which the votes of abstained pixels are divided."""
    table = fluctuations.fluctuation_table(folder, setting)
    text = "Between which classes the votes are divided where SegCertify abstains, and which vertex would cover them."
    draw = partial(fluctuations.draw, table)
    return Piece(f"fluctuations-{setting}", "Fluctuations in abstained pixels", text, table, draw)


def tradeoff_pieces(folder: RunFolder, setting: Setting) -> Iterator[Piece]:
    """CIG and certified rate over n, where the run kept several n."""
    if len(tradeoff.certifiable_draws(folder, setting.tau)) > 1:
        table = tradeoff.tradeoff_table(folder, sigma=setting.sigma, tau=setting.tau)
        text = "More draws certify more; coarse levels certify most and say least."
        stem = f"tradeoff-sigma{setting.sigma:g}-tau{setting.tau:g}"
        yield Piece(stem, "Over the number of draws", text, table, partial(tradeoff.draw, table))


def visual_pieces(folder: RunFolder, run: ScoredRun, setting: Setting) -> Iterator[Piece]:
    """The images with the largest, the median and the smallest gain of one method."""
    others = main_methods(run.manifest.methods)
    if not others:
        return
    shown = [m for m in (BASELINE, *others) if m in run.manifest.methods]
    method = "nested" if "nested" in others else others[0]
    ordered = by_gain(image_scores(run, setting), method)
    for word, place in {"largest": 0, "median": len(ordered) // 2, "least": len(ordered) - 1}.items():
        image = ordered[place]
        text = f"{image.name}: {word} gain of {method_name(method)} over SegCertify, {image.gain(method):+.3f} CIG."
        draw = partial(visual.draw, folder, image.name, setting, methods=shown)
        yield Piece(f"visual-{word}-{setting}", f"The image with the {word} gain", text, draw=draw, maps=True)


def hierarchy_piece(folder: RunFolder) -> Piece:
    """The tree of classes, drawn."""
    tree = folder.manifest.tree
    text = f"{tree.name}: {tree.size}, in the colours of all label maps."
    return Piece("hierarchy", "Hierarchy", text, draw=partial(draw_tree, tree))
