"""Certificates that are wrong on purpose. Each must break its promise on some scene, or the check has no teeth.

The first ones are what the published implementations do, or nearly (section 8 of docs/design.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

import certiseg as cs
from certiseg import drawing, noise
from certiseg.noise import NoiseStream, noise_stream
from certiseg.stats import nested
from certiseg.stats.anytime import AnytimeTest
from certiseg.stats.binomial import BinomialTest, CountTest, binomial_test
from certiseg.stats.nested import FinestLinks, finest_links

from .coupling import coupled_scenario, groups_for
from .end_to_end import sample_image
from .promises import CERTIFY, Cell, Certify, Outcome, Sampled, Scenario, measure
from .scenarios import LEAF, ONLY_LEAF, TEN_EQUAL, couplings
from .simulate import RAGGED, Scene, draw_counts, draw_labels, draw_selection, make_scene, make_votes, tight_draws
from .stopping import Stopped

ALPHA, TAU = 0.1, 0.75
STOPPED_BUT_FIXED = "fixed-n test on stopped votes"


@dataclass(frozen=True)
class Broken:
    """One wrong way of certifying, and the scene on which it shows."""

    name: str
    scenario: Scenario
    """With a single cell."""
    certify: Certify = cs.certify
    sampling: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext)
    """What is wrong while votes are drawn."""
    images: int = 300
    """So many images show it."""

    def measure(self, *, seed: int = 0, tick: Callable[[], Any] = lambda: None) -> Outcome:
        """How often it breaks its promise."""
        with self.sampling():
            (outcome,) = measure(self.scenario, images=self.images, seed=seed, certify=self.certify, tick=tick)
        return outcome


def broken_variants() -> list[Broken]:
    """All of them."""
    return [*_published(), *_wrong_levels(), *_wrong_corrections(), *_wrong_draws(), *_wrong_stops()]


def _scenario(name: str, cell: Cell, kinds: list[Any] | None = None, **other: Any) -> Scenario:
    kinds = [(100, LEAF)] if kinds is None else kinds
    tau, alpha = other.pop("tau", TAU), other.pop("alpha", ALPHA)
    scene = {"n": tight_draws(100, tau, alpha), **other.pop("scene", {})}
    return Scenario(f"broken: {name}", make_scene(RAGGED, kinds, tau=tau, **scene), alpha, (cell,), **other)


# -- what the published implementations do -----------------------------------------------------------------------


def _published() -> list[Broken]:
    name = "n - n0 trials in the test, hits over n"
    trials = Broken(name, _scenario(name, Cell("segcertify")), partial(_certify_with, count_test=_fewer_trials))
    name = "one noise for every 4 draws"
    noise = Broken(name, _scenario(name, Cell("segcertify"), draw=_same_noise))
    name = "one noise for every 4 draws, end to end"
    whole = Broken(name, _scenario(name, Cell("nested"), draw=sample_image), sampling=_shared_noise, images=80)
    name = "alpha instead of alpha / N"
    per_pixel = Broken(name, _scenario(name, Cell("segcertify")), partial(_certify_with, cutoff=_uncorrected))
    name = "K that is not monotone"
    vehicles = [(100, {"aeroplane": 0.5, "car": 0.5})]
    scene = make_scene(cs.load_hierarchy("pascal_context"), vehicles, tau=TAU, n=tight_draws(100, TAU, ALPHA))
    jumping = Broken(name, Scenario(f"broken: {name}", scene, ALPHA, (Cell("nested"),)), _certify_jumping)
    return [trials, noise, whole, per_pixel, jumping]


def _fewer_trials(votes: cs.Votes, settings: Any) -> CountTest:
    @dataclass(frozen=True)
    class FewerTrials(BinomialTest):
        def critical(self, level: float) -> int | None:
            return binomial_test(votes.n - votes.n0, self.tau).critical(level)

    return FewerTrials(votes.n, settings.tau)


def _same_noise(scene: Scene, rng: np.random.Generator) -> Sampled:
    return Sampled(make_votes(scene, draw_selection(scene, rng), draw_counts(scene, rng, batch=4)))


@contextmanager
def _shared_noise() -> Iterator[None]:
    own = noise.add_noise
    with patch.object(noise, "add_noise", lambda stream, draw, *images: own(stream, draw // 4, *images)):
        yield


def _uncorrected(histogram: NDArray[np.int64], test: CountTest, *, alpha: float, **_: Any) -> int | None:
    return test.critical(alpha)


def _certify_jumping(votes: cs.Votes, hierarchy: cs.Hierarchy, **settings: Any) -> cs.Certificate:
    """nested along "the ancestor at exactly this level, or the leaf itself where there is none"."""
    ancestors = hierarchy.ancestors.copy()
    leaves = np.arange(hierarchy.num_classes)
    for level in range(1, hierarchy.num_levels):
        at_level = np.array(hierarchy.level_of)[ancestors[:, level]] == level
        ancestors[:, level] = np.where(at_level, ancestors[:, level], leaves)
    path = ancestors[votes.candidate.reshape(-1)]
    counts = votes.counts.reshape(path.shape[0], -1)
    hits = np.stack([(counts * hierarchy.members[vertex]).sum(axis=1) for vertex in path.T]).astype(np.uint16)
    test = binomial_test(votes.n, settings["tau"])
    link = finest_links(hits, test, alpha=settings["alpha"], correction=settings["correction"]).link
    vertex = np.where(link < len(hits), np.take_along_axis(path, np.minimum(link, len(hits) - 1)[:, None], 1)[:, 0], -1)
    return replace(cs.certify(votes, hierarchy, **settings), vertex=vertex.reshape(votes.size))


# -- levels and counts -------------------------------------------------------------------------------------------


def _wrong_levels() -> list[Broken]:
    name = "critical count too small by one"
    rule = partial(_certify_with, cutoff=_one_less)
    by_one = Broken(name, _scenario(name, Cell("segcertify")), rule, images=1000)
    name = "alpha / N too large by half"
    half = _scenario(name, Cell("nested"), scene={"n": tight_draws(100, TAU, 1.5 * ALPHA)})
    generous = Broken(name, half, partial(_certify_with, cutoff=_generous), images=3000)
    name = "hits of the next coarser level"
    kinds = [(100, ONLY_LEAF)]
    coarser = Broken(name, _scenario(name, Cell("segcertify"), kinds), _certify_coarser)
    name = "holm that counts pixels rejected at any level"
    any_level = Broken(name, _scenario(name, Cell("nested", "holm"), kinds), _certify_any_level)
    return [by_one, generous, coarser, any_level]


_CUTOFF = nested.cutoff


def _one_less(histogram: NDArray[np.int64], test: CountTest, **settings: Any) -> int | None:
    critical = _CUTOFF(histogram, test, **settings)
    return None if critical is None else critical - 1


def _generous(histogram: NDArray[np.int64], test: CountTest, *, alpha: float, **settings: Any) -> int | None:
    return _CUTOFF(histogram, test, alpha=1.5 * alpha, **settings)


def _certify_coarser(votes: cs.Votes, hierarchy: cs.Hierarchy, **settings: Any) -> cs.Certificate:
    """Level 1 is tested, level 0 is claimed."""
    coarser = cs.certify(votes, hierarchy, **{**settings, "method": "level", "level": 1})
    return replace(coarser, vertex=np.where(coarser.abstained, cs.ABSTAIN, votes.candidate.astype(np.int32)))


def _certify_any_level(votes: cs.Votes, hierarchy: cs.Hierarchy, **settings: Any) -> cs.Certificate:
    def links(hits: NDArray[np.uint16], test: CountTest, *, alpha: float, **_: Any) -> FinestLinks:
        critical = _CUTOFF(np.bincount(hits[-1], minlength=test.n + 1), test, alpha=alpha, correction="holm")
        assert critical is not None
        return FinestLinks((len(hits) - (hits >= critical).sum(axis=0)).astype(np.uint8), critical)

    with patch.object(CERTIFY, "finest_links", links):
        return cs.certify(votes, hierarchy, **settings)


# -- corrections -------------------------------------------------------------------------------------------------


def _wrong_corrections() -> list[Broken]:
    by_name = {scenario.name: scenario for scenario in couplings()}
    never_stops = replace(by_name["worst joint law for holm"], cells=(Cell("segcertify", "holm"),))
    tested = never_stops.scene.tested
    rule = partial(_certify_with, cutoff=_step_up(lambda r, m: 1 / (m - r + 1)))
    hochberg = Broken("holm that ignores its stop", never_stops, rule, images=1000)
    sizes = groups_for(lambda r: r * ALPHA / tested, tested)
    cells = (Cell("segcertify", "by"),)
    no_harmonic = coupled_scenario("worst joint law for by without its sum", sizes, cells=cells, n=5000, alpha=ALPHA)
    hochberg_benjamini = Broken(
        "by without 1 + 1/2 + ... + 1/N", no_harmonic, partial(_certify_with, cutoff=_step_up(lambda r, m: r / m))
    )
    name = "kfwer at k alpha instead of k alpha / N"
    blocks = _scenario(name, Cell("segcertify", "kfwer", k=4), scene={"block": 4})
    whole = Broken(
        name, blocks, partial(_certify_with, cutoff=lambda h, test, *, alpha, k, **_: test.critical(k * alpha))
    )
    name = "region chosen by the estimation draws"
    region = Broken(name, _scenario(name, Cell("segcertify"), region=_strongest_pixels))
    return [hochberg, hochberg_benjamini, whole, region]


def _step_up(level: Callable[[int, int], float]) -> Callable[..., int | None]:
    """Certify down to the largest rank r with p <= level(r, N) alpha, whatever comes before it."""

    def cutoff(histogram: NDArray[np.int64], test: CountTest, *, alpha: float, **_: Any) -> int | None:
        tested = int(histogram.sum())
        reached = np.cumsum(histogram[::-1])[::-1]
        for hits in np.flatnonzero(histogram):
            if test.p_values[hits] <= alpha * level(int(reached[hits]), tested):
                return int(hits)
        return len(histogram)

    return cutoff


def _strongest_pixels(votes: cs.Votes) -> NDArray[np.bool_]:
    """The tenth of the image with the most votes for one class."""
    most = votes.counts.max(axis=-1)
    return most >= np.sort(most.reshape(-1))[-most.size // 10]


# -- draws -------------------------------------------------------------------------------------------------------


def _wrong_draws() -> list[Broken]:
    cell = Cell("sets", options=(("max_set", 5),))
    name = "selection and estimation share draws"
    reused = Broken(name, _scenario(name, cell, [(100, TEN_EQUAL)], tau=0.5, draw=_reused_draws, scene={"n0": 20}))
    name = "selection and estimation share noise, end to end"
    scenario = _scenario(name, cell, [(100, TEN_EQUAL)], tau=0.5, draw=sample_image, scene={"n0": 20})
    return [reused, Broken(name, scenario, sampling=_one_stage, images=80)]


def _reused_draws(scene: Scene, rng: np.random.Generator) -> Sampled:
    labels = draw_labels(scene, rng, scene.n)
    one_hot = np.eye(scene.hierarchy.num_classes, dtype=np.int64)[scene.active[labels]]
    return Sampled(make_votes(scene, one_hot[: scene.n0].sum(axis=0), one_hot.sum(axis=0)))


@contextmanager
def _one_stage() -> Iterator[None]:
    def stream(*, seed: int, image_key: str, stage: Any) -> NoiseStream:
        return noise_stream(seed=seed, image_key=image_key, stage="estimation")

    with patch.object(drawing, "noise_stream", stream):
        yield


# -- stopping ----------------------------------------------------------------------------------------------------


def _wrong_stops() -> list[Broken]:
    stop = partial(Stopped, alpha=ALPHA)
    name = STOPPED_BUT_FIXED
    fixed = Broken(name, _scenario(name, Cell("segcertify"), draw=stop, scene={"n": 400}), _certify_unmarked)
    name = "anytime evidence at the best p instead of its average"
    equal = [(100, {"a": 0.5, "f": 0.5})]
    best = _scenario(name, Cell("segcertify", test="anytime"), equal, tau=0.5, draw=stop, scene={"n": 400})
    return [fixed, Broken(name, best, partial(_certify_with, count_test=_best_evidence), images=500)]


def _certify_unmarked(votes: cs.Votes, hierarchy: cs.Hierarchy, **settings: Any) -> cs.Certificate:
    return cs.certify(replace(votes, stopped=False), hierarchy, **settings)


def _best_evidence(votes: cs.Votes, settings: Any) -> CountTest:
    @dataclass(frozen=True)
    class BestEvidence(AnytimeTest):
        @cached_property
        def log_evidence(self) -> NDArray[np.float64]:
            hits = np.arange(self.n + 1)
            share = np.maximum(hits / self.n, self.tau)
            return xlogy(hits, share / self.tau) + xlogy(self.n - hits, (1 - share) / (1 - self.tau))

    return BestEvidence(votes.n, settings.tau)


def _certify_with(
    votes: cs.Votes, hierarchy: cs.Hierarchy, *, cutoff: Any = None, count_test: Any = None, **settings: Any
) -> Any:
    """`cs.certify` with another rule for the critical count, or another test."""
    with (
        patch.object(nested, "cutoff", cutoff or nested.cutoff),
        patch.object(CERTIFY, "count_test", count_test or CERTIFY.count_test),
    ):
        return cs.certify(votes, hierarchy, **settings)
