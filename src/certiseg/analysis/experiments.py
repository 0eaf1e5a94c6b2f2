"""Every experiment of the paper over one run folder, as pieces of a document: a heading, what to look at, a table
and a figure. None of them calls the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from certiseg.analysis import (
    boundaries,
    contest,
    fluctuations,
    levels,
    per_class,
    set_sizes,
    tables,
    thresholds,
    tradeoff,
    trees,
    visual,
)
from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Table
from certiseg.analysis.images import by_gain, image_scores
from certiseg.analysis.pooling import Pools
from certiseg.analysis.tables import BASELINE, describe
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import MethodChoice, Setting

MAIN = ("adaptive", "nested", "sets")
"""The methods that are set against segcertify, in the order in which they are shown."""


@dataclass(frozen=True)
class Piece:
    """A table, a figure, or both."""

    stem: str
    """Name of its files, without ending."""
    title: str
    text: str
    table: Table | None = None
    draw: Callable[[], Any] | None = None
    """Draws the figure when asked: drawing takes longer than counting."""
    maps: bool = False
    """Whether the figure shows label maps, which are better kept as pixels than as shapes."""


def all_pieces(folder: RunFolder, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Every experiment that the run has the methods, the images and the draws for."""
    pools = Pools(folder)
    yield from score_pieces(folder, draws=draws)
    yield from tuned_pieces(folder, pools, setting, draws=draws)
    yield from class_pieces(pools, setting)
    yield from level_pieces(folder, pools, setting)
    yield from boundary_pieces(folder, pools, setting, draws=draws)
    yield from vote_pieces(folder, setting)
    yield from tradeoff_pieces(folder, setting)
    yield from visual_pieces(folder, pools, setting)
    yield hierarchy_piece(folder)


def main_methods(methods: tuple[str, ...]) -> list[str]:
    """The first of each of adaptive, nested and sets that a run has."""
    kinds = {MethodChoice(m).options["method"]: m for m in reversed(methods)}
    return [kinds[kind] for kind in MAIN if kind in kinds]


def score_pieces(
    folder: RunFolder, *, settings: tuple[Setting, ...] | None = None, draws: int = 1000, stem: str = ""
) -> Iterator[Piece]:
    """Scores, and changes against segcertify."""
    text = "CIG is 1 if every pixel is certified as its class; coarser labels count less, wrong ones and none nothing."
    yield Piece(f"scores{stem}", "Scores", text, tables.score_table(folder, draws=draws, settings=settings))
    methods = folder.manifest.methods
    if BASELINE in methods and len(methods) > 1:
        text = "Relative to SegCertify at the same setting; fewer abstentions are better."
        table = tables.gain_table(folder, draws=draws, settings=settings)
        yield Piece(f"gains{stem}", "Change against SegCertify", text, table)


def tuned_pieces(folder: RunFolder, pools: Pools, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Thresholds chosen on some images against the methods that need none, on the others; the grid over n."""
    if folder.manifest.tree.num_levels < 2 or len(pools.images) < 2:
        return
    searches = thresholds.search_over_n(folder, sigma=setting.sigma, tau=setting.tau)
    for search in searches:
        if search.setting == setting:
            text = "Every image is certified with thresholds that were chosen on images it is not among."
            table = contest.to_table(contest.contest(pools, search), draws=draws)
            yield Piece(f"tuned-{setting}", "Against tuned thresholds", text, table)
    if searches:
        stem = f"thresholds-sigma{setting.sigma:g}-tau{setting.tau:g}"
        text = "Every threshold function of the grid over the number of draws, on the images that had no part in it."
        title = "Threshold functions over n"
        table = thresholds.to_table(searches[-1], promise=folder.manifest.promise(), most=10, draws=draws)
        yield Piece(stem, title, text, table, partial(thresholds.draw, searches))


def class_pieces(pools: Pools, setting: Setting) -> Iterator[Piece]:
    """Per-class differences of each main method."""
    if BASELINE not in pools.manifest.methods:
        return
    for method in main_methods(pools.manifest.methods):
        deltas = per_class.class_deltas(pools, method, setting)
        text = "Right: more pixels certified than by SegCertify. Up: more information. Top right wins twice."
        title = f"{method_name(method)} by class"
        stem = f"classes-{setting}-{method.partition(':')[0]}"
        yield Piece(stem, title, text, per_class.to_table(deltas), partial(per_class.draw, deltas))


def level_pieces(folder: RunFolder, pools: Pools, setting: Setting) -> Iterator[Piece]:
    """Shares per level, and per set size."""
    with_levels = [m for m in pools.manifest.methods if m not in set_sizes.set_methods(pools.manifest.methods)]
    if with_levels:
        found = levels.level_shares(pools, setting)
        text = "How coarse the labels are: share of pixels at each level of the hierarchy."
        yield Piece(f"levels-{setting}", "Per level", text, levels.to_table(found), partial(levels.draw, found))
    for method in set_sizes.set_methods(pools.manifest.methods):
        sizes = set_sizes.set_sizes(folder, method, setting)
        text = "How many classes a certified set holds; it is right when the true class is among them."
        table = set_sizes.to_table(sizes, note=describe(pools))
        stem = f"{method.replace(':', '')}-sizes-{setting}"
        yield Piece(stem, "By set size", text, table, partial(set_sizes.draw, sizes))


def boundary_pieces(folder: RunFolder, pools: Pools, setting: Setting, *, draws: int = 1000) -> Iterator[Piece]:
    """Boundary against other pixels, and one image in six panels."""
    table = boundaries.boundary_table(folder, setting, draws=draws)
    text = "Where labels meet, models waver: pixels within 10 of another label against the rest."
    yield Piece(f"boundaries-{setting}", "Boundaries", text, table)
    others = main_methods(pools.manifest.methods)
    if BASELINE not in pools.manifest.methods or not others:
        return
    method = others[0]
    ordered = by_gain(image_scores(pools, setting), method)
    name = ordered[len(ordered) // 2].name
    text = f"{name}, the image with the median gain: where SegCertify and {method_name(method)} abstain."
    yield Piece(
        f"boundary-example-{setting}",
        "Boundaries in one image",
        text,
        draw=partial(boundaries.draw_example, folder, name, setting, method=method),
        maps=True,
    )


def vote_pieces(folder: RunFolder, setting: Setting, *, first: int = 40) -> Iterator[Piece]:
    """Sets of classes between which the votes of abstained pixels are parted."""
    found = fluctuations.fluctuations(folder, setting, first=first)
    text = "Between which classes the votes are parted where SegCertify abstains, and which vertex would cover them."
    table = fluctuations.to_table(found, most=12)
    title = "Fluctuations in abstained pixels"
    yield Piece(f"fluctuations-{setting}", title, text, table, partial(fluctuations.draw, found))


def tradeoff_pieces(folder: RunFolder, setting: Setting) -> Iterator[Piece]:
    """CIG and certified rate over n, where the run kept several n."""
    if len(tradeoff.certifiable_draws(folder, setting.tau)) < 2:
        return
    found = tradeoff.tradeoff(folder, sigma=setting.sigma, tau=setting.tau)
    text = "More draws certify more; coarse levels certify most and say least."
    stem = f"tradeoff-sigma{setting.sigma:g}-tau{setting.tau:g}"
    yield Piece(stem, "Over the number of draws", text, tradeoff.to_table(found), partial(tradeoff.draw, found))


def visual_pieces(folder: RunFolder, pools: Pools, setting: Setting) -> Iterator[Piece]:
    """The images with the largest, the median and the least gain of one method."""
    others = main_methods(pools.manifest.methods)
    shown = [m for m in (BASELINE, *others) if m in pools.manifest.methods]
    if not others:
        return
    method = "nested" if "nested" in others else others[0]
    ordered = by_gain(image_scores(pools, setting), method)
    places = {"largest": 0, "median": len(ordered) // 2, "least": len(ordered) - 1}
    for word, place in places.items():
        image = ordered[place]
        text = f"{image.name}: {word} gain of {method_name(method)} over SegCertify, {image.gain(method):+.3f} CIG."
        yield Piece(
            f"visual-{word}-{setting}",
            f"The image with the {word} gain",
            text,
            draw=partial(visual.draw, folder, image.name, setting, methods=shown),
            maps=True,
        )


def hierarchy_piece(folder: RunFolder) -> Piece:
    tree = folder.manifest.tree
    text = f"{tree.name}: {tree.num_classes} classes in {tree.num_levels} levels, in the colours of all label maps."
    return Piece("hierarchy", "Hierarchy", text, draw=partial(trees.draw, tree))
