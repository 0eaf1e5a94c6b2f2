"""The scenes on which promises are judged: pixels exactly at tau wherever a method can be wrong.

n is chosen so that discreteness leaves little of alpha unspent: an error of a factor 1.5 in any level would show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import certiseg as cs

from .coupling import coupled_scenario, groups_for
from .promises import Cell, Sampled, Scenario
from .simulate import RAGGED, draw_predictions, make_scene, tight_draws
from .stopping import Stopped

K = 4
"""kfwer promises fewer than this many false certifications."""
CORRECTIONS = ("bonferroni", "holm", "kfwer", "by")
CHAIN_CORRECTIONS = ("bonferroni", "holm")

LEAF = {"a": 0.75, "f": 0.25}
"""At tau at every level: the other votes are outside the tree."""
LEVEL_1 = {"a": 0.5, "b": 0.25, "f": 0.25}
LEVEL_2 = {"a": 0.375, "b": 0.125, "c": 0.25, "f": 0.25}
ONLY_LEAF = {"a": 0.75, "b": 0.25}
"""At tau at level 0, and certain from level 1 on."""
ONLY_LEVEL_1 = {"a": 0.5, "b": 0.25, "c": 0.25}
ONLY_LEVEL_2 = {"a": 0.375, "b": 0.125, "c": 0.25, "e": 0.25}
CERTAIN = {"a": 1.0}
SET_1 = {"a": 0.75, "f": 0.125, "g": 0.125}
SET_2 = {"a": 0.5, "f": 0.25, "g": 0.0625, "h": 0.0625, "i": 0.0625, "j": 0.0625}
SET_3 = {"a": 0.25, "c": 0.25, "f": 0.25, "g": 0.0625, "h": 0.0625, "i": 0.0625, "j": 0.0625}


def cells(*methods: str, corrections: tuple[str, ...] = CORRECTIONS, test: str = "fixed", **options: Any) -> list[Cell]:
    """Every allowed correction of the methods; `level`, `thresholds` and `max_set` go to the method that has them."""
    own: Mapping[str, tuple[str, ...]] = {"level": ("level",), "adaptive": ("thresholds",), "sets": ("max_set",)}
    return [
        Cell(
            method,
            correction,
            test,
            K if correction == "kfwer" else 1,
            tuple((name, options[name]) for name in own.get(method, ()) if name in options),
        )
        for method in methods
        for correction in corrections
        if correction in CHAIN_CORRECTIONS or method not in ("nested", "sets")
    ]


def radii(*methods: str, test: str = "fixed", **options: Any) -> list[Cell]:
    """The radius maps of the methods."""
    made = cells(*methods, corrections=("bonferroni",), test=test, **options)
    return [Cell(c.method, c.correction, c.test, c.k, c.options, radii=True) for c in made]


ALL = ("segcertify", "level", "adaptive", "nested", "sets")
GAPS = (0.2, 0.4, 0.6)
"""Thresholds on the gap that send pixels to all levels."""
TEN_EQUAL = {name: 0.1 for name in "abcdefghij"}
LEVELS = (ONLY_LEAF, ONLY_LEVEL_1, ONLY_LEVEL_2)
NONE_FALSE = ("bonferroni", "holm")

Kinds = Sequence[tuple[int, Mapping[str, float]]]


def every(*methods: str, **options: Any) -> tuple[Cell, ...]:
    """All corrections of the methods, by default of all methods."""
    return tuple(cells(*(methods or ALL), **{"level": 1, "thresholds": GAPS, **options}))


def scenario(
    name: str,
    kinds: Kinds,
    judged: tuple[Cell, ...],
    *,
    tau: float = 0.75,
    alpha: float = 0.1,
    n: int | None = None,
    hierarchy: cs.Hierarchy = RAGGED,
    n0: int = 10,
    block: int = 1,
    max_set: int = 5,
    **other: Any,
) -> Scenario:
    """A scenario; n is by default the one that N tests come closest to spending alpha with."""
    n = tight_draws(sum(count for count, _ in kinds), tau, alpha) if n is None else n
    scene = make_scene(hierarchy, kinds, tau=tau, n=n, n0=n0, block=block, max_set=max_set)
    return Scenario(name, scene, alpha, judged, **other)


def fixed_scenarios() -> list[Scenario]:
    """n fixed beforehand."""
    return [*_all_null(), *_mixed(), *_selected(), *_sets(), *_presets(), *_dependent(), *couplings(), *_large()]


def _all_null() -> list[Scenario]:
    maps = radii("segcertify", "adaptive", "nested", "sets", thresholds=GAPS)
    level_1 = every("level", "adaptive", "nested", level=1, thresholds=(0, 0, 1))
    level_2 = every("level", "adaptive", "nested", level=2, thresholds=(0, 1, 1))
    one_each = [(33, kind) for kind in LEVELS]
    chains = (*every("nested", "adaptive", "segcertify"), *radii("nested"))
    return [
        scenario("leaf at tau", [(100, LEAF)], (*every(), *maps), spends=NONE_FALSE),
        scenario("level 1 at tau", [(100, LEVEL_1)], level_1, spends=NONE_FALSE),
        scenario("level 2 at tau", [(100, LEVEL_2)], level_2, spends=NONE_FALSE),
        scenario("a different level at tau per pixel", one_each, chains, spends=NONE_FALSE),
        scenario(
            "two equal classes at tau",
            [(100, {"a": 0.5, "f": 0.5})],
            every("segcertify", "nested"),
            tau=0.5,
            alpha=0.05,
            n0=9,
            spends=NONE_FALSE,
        ),
    ]


def _mixed() -> list[Scenario]:
    """Clearly true labels among the null ones, so that holm, kfwer and by step far."""
    true_above = [(200, CERTAIN), (200, ONLY_LEAF), (100, LEAF)]
    return [
        scenario(
            "80 % certain, 20 % leaf at tau",
            [(400, CERTAIN), (100, LEAF)],
            every(),
            n=tight_draws(100, 0.75, 0.1),
            spends=("holm",),
        ),
        scenario(
            "40 % certain, 40 % certain above a leaf at tau, 20 % leaf at tau",
            true_above,
            every(),
            n=tight_draws(300, 0.75, 0.1),
            spends=("holm",),
        ),
    ]


def _selected() -> list[Scenario]:
    """Other ways to select, and a region."""
    kinds = [(100, LEAF), (100, ONLY_LEAF), (100, CERTAIN)]
    return [
        scenario(
            "selection by posteriors",
            [(50, LEAF), (50, LEVEL_1)],
            every("level", "adaptive", "nested", "sets"),
            n0=5,
            draw=lambda scene, rng: Sampled(draw_predictions(scene, rng)),
            weight=0.4,
            spends=NONE_FALSE,
        ),
        scenario(
            "region chosen by the selection draws",
            kinds,
            every(),
            n=tight_draws(200, 0.75, 0.1),
            n0=20,
            region=unsure_region,
            spends=NONE_FALSE,
        ),
    ]


def unsure_region(votes: cs.Votes) -> NDArray[np.bool_]:
    """Pixels whose selection draws did not all agree: a rule that has not seen the estimation draws."""
    return votes.gap < 1.0


def _sets() -> list[Scenario]:
    three, five = every("sets", "segcertify", max_set=3), every("sets", max_set=5)
    return [
        scenario(
            "sets of 1, 2, 3 classes at tau",
            [(34, SET_1), (33, SET_2), (33, SET_3)],
            (*three, *radii("sets", max_set=3)),
            n0=40,
            spends=NONE_FALSE,
        ),
        scenario(
            "ten equal classes: every set of five at tau",
            [(100, TEN_EQUAL)],
            (*five, *radii("sets", max_set=5)),
            tau=0.5,
            alpha=0.05,
            spends=NONE_FALSE,
        ),
    ]


def _presets() -> list[Scenario]:
    """Levels skipped in the trees that ship: vehicle has no parent at level 2, person none at level 1, Sky none."""
    trees: dict[str, Kinds] = {
        "pascal_context": [
            (34, {"aeroplane": 0.5, "car": 0.25, "grass": 0.25}),
            (33, {"person": 0.5, "dog": 0.25, "cup": 0.25}),
            (33, {"person": 0.375, "cat": 0.375, "road": 0.25}),
        ],
        "camvid": [
            (34, {"CartLuggagePram": 0.5, "Car": 0.25, "Tree": 0.25}),
            (33, {"Sky": 0.75, "Tree": 0.25}),
            (33, {"Pedestrian": 0.5, "Child": 0.25, "Road": 0.25}),
        ],
    }
    judged = (*every("level", "adaptive", "nested", "sets", level=2, max_set=3), *radii("nested"))
    return [
        scenario(
            f"{name}: skipped levels at tau",
            kinds,
            judged,
            hierarchy=cs.load_hierarchy(name),
            n0=20,
            spends=NONE_FALSE,
        )
        for name, kinds in trees.items()
    ]


def _dependent() -> list[Scenario]:
    """Pixels that share their draws."""
    whole, left = tight_draws(100 / K, 0.75, 0.1), tight_draws((100 + K - 1) / K, 0.75, 0.1)
    flat = every("segcertify", "level", "adaptive")
    mixed = [(300, CERTAIN), (100, LEAF)]
    return [
        scenario(f"blocks of {K} pixels share draws", [(100, LEAF)], every(), n=whole, block=K, spends=("kfwer",)),
        scenario(f"blocks of {K}, 75 % certain", mixed, flat, n=left, block=K, spends=("kfwer",)),
        scenario("all pixels share their draws", [(100, LEAF)], every("segcertify", "nested"), block=100),
    ]


def couplings() -> list[Scenario]:
    """The joint law that each correction finds hardest; for holm, the one that breaks its step-up cousin."""
    tested, alpha, n = 100, 0.1, 5000
    harmonic = float(np.sum(1 / np.arange(1, tested + 1)))
    laws = {
        "bonferroni": groups_for(lambda r: np.full(len(r), alpha / tested), tested),
        "holm": groups_for(lambda r: alpha / (tested - r + 1), tested),
        "kfwer": groups_for(lambda r: np.full(len(r), K * alpha / tested), tested, least=K),
        "by": groups_for(lambda r: r * alpha / (tested * harmonic), tested),
    }
    judged = every("segcertify")
    return [
        coupled_scenario(f"worst joint law for {name}", sizes, cells=judged, n=n, alpha=alpha, spends=(name,))
        for name, sizes in laws.items()
    ]


def _large() -> list[Scenario]:
    """Images of 1,000 to 100,000 pixels."""
    mixed = [(90_000, CERTAIN), (5_000, ONLY_LEAF), (5_000, LEAF)]
    for_mixed = {"n": tight_draws(10_000, 0.75, 0.1), "weight": 0.15, "spends": ("holm",)}
    nine = {"a": 0.9, "f": 0.1}
    return [
        scenario("1,000 pixels, leaf at tau", [(1000, nine)], every(), tau=0.9, spends=NONE_FALSE),
        scenario("10,000 pixels, leaf at tau", [(10_000, LEAF)], every(), alpha=0.05, weight=0.3, spends=NONE_FALSE),
        scenario("100,000 pixels, leaf at tau", [(100_000, LEAF)], every(), weight=0.15, spends=NONE_FALSE),
        scenario("100,000 pixels, 90 % certain", mixed, every(), **for_mixed),
    ]


# -- early stopping ----------------------------------------------------------------------------------------------


def anytime_scenarios() -> list[Scenario]:
    """Stopped by an adversary that sees every draw and the truth; n is the longest it can wait."""
    maps = tuple(radii("segcertify", "nested", "sets", test="anytime"))
    half = [(100, CERTAIN), (100, LEAF)]
    large = [(1500, CERTAIN), (250, LEAF), (250, ONLY_LEVEL_1)]
    return [
        _stopped("leaf at tau", [(100, LEAF)], ALL, spends=NONE_FALSE),
        _stopped("half certain", half, ALL, spends=("holm",)),
        _stopped(
            "a different level at tau per pixel", [(33, kind) for kind in LEVELS], ("nested", "adaptive", "level")
        ),
        _stopped(f"blocks of {K}, half certain", half, ("segcertify", "level", "adaptive"), block=K, spends=("kfwer",)),
        _stopped(
            "sets of 1, 2, 3 classes at tau", [(34, SET_1), (33, SET_2), (33, SET_3)], ("sets",), n0=40, max_set=3
        ),
        _stopped("ten equal classes", [(100, TEN_EQUAL)], ("sets",), n=400, tau=0.5, alpha=0.05),
        _stopped("2,000 pixels, 75 % certain", large, ("adaptive", "nested"), n=400, weight=0.1),
        _stopped("radius map, leaf at tau", [(100, LEAF)], (), judged=maps, n=150, weight=0.1),
    ]


def _stopped(name: str, kinds: Kinds, methods: tuple[str, ...], **other: Any) -> Scenario:
    judged = other.pop("judged", None) or every(*methods, test="anytime")
    settings = {"n": 600, "alpha": 0.1, "weight": 0.4, **other}
    draw = partial(Stopped, alpha=settings["alpha"])
    return scenario(f"stopped: {name}", kinds, judged, draw=draw, **settings)
