"""Votes + hierarchy -> certificate. One short function per method, in the paper's order.

Every method turns the votes into chains of growing label sets per pixel and their hits (votes inside), and hands
those to one procedure, `stats.nested.finest_links`. With one link that is the paper's test of a fixed vertex.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg import hits as loops
from certiseg.certificate import METHODS, Certificate, Method, Settings, Test
from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy, check_thresholds, flat_hierarchy
from certiseg.kernels import over_pixels
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import CountTest, binomial_test
from certiseg.stats.correction import CORRECTIONS, Correction
from certiseg.stats.nested import finest_links
from certiseg.stats.radius import agree_with_test, radius, radius_table
from certiseg.votes import Votes

_MOST_LINKS = 255
"""Sizes of sets are kept in 8 bits."""


class NothingCertifiable(UserWarning):
    """n is too small: not even n of n votes would certify a pixel."""


@dataclass(frozen=True)
class Chains:
    """The label sets that a method tests at each pixel."""

    hits: NDArray[np.uint16]
    """(links, N): votes inside each label set, finest first."""
    level: NDArray[np.uint8]
    """Hierarchy level, by pixel (1, N) or by link (links + 1,), abstentions last."""


def certify(
    votes: Votes,
    hierarchy: Hierarchy | None = None,
    *,
    method: Method = "nested",
    tau: float = 0.75,
    alpha: float = 0.001,
    thresholds: Sequence[float] | None = None,
    level: int | None = None,
    max_set: int | None = None,
    correction: Correction = "bonferroni",
    k: int = 1,
    test: Test = "fixed",
    region: NDArray[np.bool_] | None = None,
) -> Certificate:
    """The finest label of each pixel that no perturbation of l2 size up to R = sigma * Phi^-1(tau) can change.

    With probability >= 1 - alpha over the noise, at every certified pixel at once: for all |delta|_2 <= R more than
    half of the noisy predictions f(x + delta + eps) lie under the certified vertex, or inside the certified set.
    (kfwer and by promise other things: see `Certificate.claim`.) Condition: the settings and the region were chosen
    without looking at the estimation draws.

    hierarchy: may be left out for segcertify and sets.
    thresholds: for adaptive, coarsest level first; by default those of the hierarchy's data set.
    level: for the method `level`. max_set: for sets, by default as many as the votes rank.
    region: (H, W) mask of the pixels tested together, chosen before the estimation draws; default: all.
    """
    hierarchy = _hierarchy_for(votes, hierarchy, method)
    region = None if region is None else np.array(region)
    settings = _check_settings(votes, hierarchy, method, tau, alpha, thresholds, level, max_set, correction, k, test)
    inside = _check_region(votes, region)
    tested = votes.candidate.size if inside is None else int(inside.sum())
    if settings.k > tested:
        raise InputError(f"k must be at most the {tested:,} pixels tested together, got {k}: nothing would be promised")
    counting = count_test(votes, settings)
    chains = chains_of(votes, hierarchy, settings, inside)
    found = finest_links(chains.hits, counting, alpha=alpha, correction=correction, k=k)
    if found.critical is None:
        warnings.warn(
            f"nothing can be certified: n = {votes.n} draws cannot reject at tau = {tau} and alpha = {alpha} for "
            f"{tested:,} pixels; see `certiseg plan`",
            NothingCertifiable,
            stacklevel=2,
        )
    return Certificate(
        **_maps(votes, hierarchy, settings, chains, found.link, inside),
        radius=radius(votes.sigma, tau),
        critical=found.critical,
        settings=settings,
        hierarchy=hierarchy,
        votes=votes,
        region=region,
    )


def count_test(votes: Votes, settings: Settings) -> CountTest:
    """The test of "share <= tau" that the settings ask for."""
    make = binomial_test if settings.test == "fixed" else anytime_test
    return make(votes.n, settings.tau)


# -- the methods -------------------------------------------------------------------------------------------------


def chains_of(votes: Votes, hierarchy: Hierarchy, settings: Settings, inside: NDArray[Any] | None) -> Chains:
    """The chains of a method and their hits, at the pixels of a flat mask or at all."""
    return _METHODS[settings.method](_Tested(votes, hierarchy, settings, inside))


@dataclass(frozen=True)
class _Tested:
    """The tested pixels of an image, one after the other, and what a method needs to know of them."""

    votes: Votes
    hierarchy: Hierarchy
    settings: Settings
    inside: NDArray[Any] | None

    def pick(self, name: str) -> NDArray[Any]:
        """An array of the votes at the tested pixels, as (N,) or (N, K)."""
        return _pick(getattr(self.votes, name), self.inside)

    def set_hits(self, longest: int) -> NDArray[np.uint16]:
        """(longest, N): votes for the one, two, ... best ranked classes."""
        flat = self.votes.set_hits.reshape(self.votes.max_set, -1)[:longest]
        return flat if self.inside is None else flat[:, self.inside]

    def level_hits(self, level: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """(N,): votes for the leaves under K(candidate, level)."""
        counts, ranking, ranked = self.pick("counts"), self.pick("ranking"), self.set_hits(self.votes.max_set)
        n, masks, hits = np.uint16(self.votes.n), _masks(self.hierarchy), np.empty(len(counts), np.uint16)
        loop = loops.level_hits(self.votes.max_set)
        over_pixels(loop, len(counts), counts, ranking, ranked, n, masks, level, hits)
        return hits

    def everywhere(self, level: int) -> NDArray[np.uint8]:
        """(N,): one level for all pixels."""
        return np.full(self.set_hits(1).shape[1], level, np.uint8)


def _segcertify(tested: _Tested) -> Chains:
    """Level 0 everywhere: the candidate class itself."""
    hits = tested.set_hits(1)
    return Chains(hits, np.zeros(hits.shape, np.uint8))


def _level(tested: _Tested) -> Chains:
    """Non-adaptive-H_l: the given level everywhere."""
    assert tested.settings.level is not None
    level = tested.everywhere(tested.settings.level)
    return Chains(tested.level_hits(level)[None], level[None])


def _adaptive(tested: _Tested) -> Chains:
    """The paper's AdaptiveCertify: the level is the number of thresholds t with gap <= t."""
    gap = tested.pick("gap")
    level = np.empty(len(gap), np.uint8)
    over_pixels(loops.levels_of_gaps, len(gap), gap, rounded_down(tested.settings.thresholds, gap.dtype), level)
    return Chains(tested.level_hits(level)[None], level[None])


def _nested(tested: _Tested) -> Chains:
    """Every level of the candidate's path to the root, finest first; abstentions count at the last level."""
    levels = tested.hierarchy.num_levels
    coarser = [tested.level_hits(tested.everywhere(level)) for level in range(1, levels)]
    return Chains(np.stack([*tested.set_hits(1), *coarser]), np.array([*range(levels), levels - 1], np.uint8))


def _sets(tested: _Tested) -> Chains:
    """The best ranked class, the two best, ... up to max_set; these sets have no level."""
    longest = tested.settings.max_set
    assert longest is not None
    return Chains(tested.set_hits(longest), np.zeros(longest + 1, np.uint8))


_METHODS: dict[Method, Callable[[_Tested], Chains]] = {
    "segcertify": _segcertify,
    "level": _level,
    "adaptive": _adaptive,
    "nested": _nested,
    "sets": _sets,
}


# -- from links to maps ------------------------------------------------------------------------------------------


def _maps(
    votes: Votes,
    hierarchy: Hierarchy,
    settings: Settings,
    chains: Chains,
    link: NDArray[np.uint8],
    inside: NDArray[Any] | None,
) -> dict[str, NDArray[Any]]:
    """vertex, level and set_size of every pixel of the image."""
    level = chains.level[link] if chains.level.ndim == 1 else chains.level[0]
    set_size = np.zeros(link.shape, np.uint8)
    if settings.method == "sets":
        set_size = (link + 1) * (link < len(chains.hits))
        vertex = np.empty(link.shape, np.int16)
        ranking = _pick(votes.ranking, inside)
        over_pixels(loops.covers, len(link), ranking, set_size, *_meeting(hierarchy), vertex)
    else:
        vertex = np.empty(link.shape, np.int16)
        candidate = _pick(votes.candidate, inside)
        table, links = np.ascontiguousarray(hierarchy.ancestors, np.int16), np.uint8(len(chains.hits))
        over_pixels(loops.vertices_at, len(link), candidate, level, link, links, table, vertex)
    return {
        "vertex": _place(vertex, votes.size, inside, ABSTAIN),
        "level": _place(level, votes.size, inside, 0),
        "set_size": _place(set_size, votes.size, inside, 0),
    }


def _place(values: NDArray[Any], size: tuple[int, int], inside: NDArray[Any] | None, outside: int) -> NDArray[Any]:
    """Values of the tested pixels back at their places in the image."""
    if inside is None:
        return values.reshape(size)
    image = np.full(size[0] * size[1], outside, values.dtype)
    image[inside] = values
    return image.reshape(size)


def _pick(array: NDArray[Any], inside: NDArray[Any] | None) -> NDArray[Any]:
    """The tested pixels of an (H, W) or (H, W, K) array, as (N,) or (N, K)."""
    flat = np.ascontiguousarray(array).reshape(array.shape[0] * array.shape[1], *array.shape[2:])
    return flat if inside is None else flat[inside]


def rounded_down(thresholds: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The largest numbers of a type that are not above the thresholds: "gap <= t" says the same, and runs faster."""
    exact = np.array(thresholds, np.float64)
    rounded = exact.astype(dtype)
    return np.where(rounded > exact, np.nextafter(rounded, dtype.type(-np.inf)), rounded)


@lru_cache(maxsize=16)
def _masks(hierarchy: Hierarchy) -> NDArray[np.uint16]:
    """(C, L, C and more): all ones at the leaves under K(y, l), zeros behind them up to whole vectors."""
    masks = hierarchy.members[hierarchy.ancestors].astype(np.uint16) * np.uint16(0xFFFF)
    return np.pad(masks, ((0, 0), (0, 0), (0, -hierarchy.num_classes % 16)))


@lru_cache(maxsize=16)
def _meeting(hierarchy: Hierarchy) -> tuple[NDArray[np.uint8], NDArray[np.int16]]:
    """(C, C): the first level at which K(y, l) holds another class, L for none; (C, L + 2): K(y, l), ROOT, ABSTAIN."""
    under = hierarchy.members[hierarchy.ancestors]
    first = np.where(under.any(axis=1), under.argmax(axis=1), hierarchy.num_levels)
    rest = np.broadcast_to(np.array([ROOT, ABSTAIN]), (hierarchy.num_classes, 2))
    return first.astype(np.uint8), np.hstack([hierarchy.ancestors, rest]).astype(np.int16)


# -- the radius map ----------------------------------------------------------------------------------------------


def radius_is_joint(certificate: Certificate) -> bool:
    """Whether the radius map says the same as the certificate: one label per pixel, and bonferroni."""
    return certificate.settings.method not in ("nested", "sets") and certificate.settings.correction == "bonferroni"


def radius_error(certificate: Certificate) -> float:
    """Error spent on each pixel's radius: alpha / N, or alpha / (N L) where L labels per pixel were tested."""
    settings = certificate.settings
    links = {"nested": certificate.hierarchy.num_levels, "sets": settings.max_set or 1}.get(settings.method, 1)
    return settings.alpha / (certificate.tested * links)


def radius_map(certificate: Certificate) -> NDArray[np.float64]:
    """R_i = sigma * Phi^-1(lower confidence bound of the share) of every pixel's certified or last tested label."""
    votes, settings = certificate.votes, certificate.settings
    inside = _check_region(votes, certificate.region)
    chains = chains_of(votes, certificate.hierarchy, settings, inside)
    links = len(chains.hits)
    last = np.zeros(chains.hits.shape[1], np.intp)
    if links > 1:
        passed = (
            np.zeros_like(last) if certificate.critical is None else (chains.hits >= certificate.critical).sum(axis=0)
        )
        last = np.minimum(links - passed, links - 1)
    hits = np.take_along_axis(chains.hits, last[None], axis=0)[0]
    table = radius_table(count_test(votes, settings), sigma=votes.sigma, error=radius_error(certificate))
    if radius_is_joint(certificate):
        table = agree_with_test(table, radius=certificate.radius, critical=certificate.critical)
    values = np.full(votes.size[0] * votes.size[1], np.nan)
    values[... if inside is None else inside] = table[hits]
    return values.reshape(votes.size)


# -- checks ------------------------------------------------------------------------------------------------------


def _hierarchy_for(votes: Votes, hierarchy: Hierarchy | None, method: str) -> Hierarchy:
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if hierarchy is not None:
        hierarchy.require_classes(votes.classes or votes.num_classes)
        return hierarchy
    if method not in ("segcertify", "sets"):
        raise InputError(f"hierarchy must be given for the method {method}; see cs.load_hierarchy")
    return flat_hierarchy(votes.classes or [f"class {index}" for index in range(votes.num_classes)])


def _check_settings(
    votes: Votes,
    hierarchy: Hierarchy,
    method: Method,
    tau: float,
    alpha: float,
    thresholds: Sequence[float] | None,
    level: int | None,
    max_set: int | None,
    correction: Correction,
    k: int,
    test: Test,
) -> Settings:
    """The settings that matter for a method, each within its rule."""
    if not 0.5 <= tau < 1:
        raise InputError(f"tau must lie in [0.5, 1), got {tau}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie in (0, 1), got {alpha}")
    if correction not in CORRECTIONS:
        raise InputError(f"correction must be one of {', '.join(CORRECTIONS)}, got {correction!r}")
    if method in ("nested", "sets") and correction not in ("bonferroni", "holm"):
        raise InputError(
            f"correction must be bonferroni or holm for {method}, got {correction!r}: the proof for chains of labels "
            "covers no other"
        )
    if correction == "kfwer" and not (isinstance(k, int | np.integer) and k >= 1):
        raise InputError(f"k must be a whole number >= 1, got {k}")
    if test not in get_args(Test):
        raise InputError(f"test must be fixed or anytime, got {test!r}")
    if votes.stopped and test == "fixed":
        raise InputError("test must be 'anytime' for votes that were stopped by looking at them, got 'fixed'")
    if method == "level" and not (isinstance(level, int | np.integer) and 0 <= level < hierarchy.num_levels):
        raise InputError(f"level must be in 0..{hierarchy.num_levels - 1} for this hierarchy, got {level}")
    return Settings(
        method=method,
        tau=float(tau),
        alpha=float(alpha),
        correction=correction,
        k=int(k) if correction == "kfwer" else 1,
        test=test,
        thresholds=_thresholds_for(hierarchy, thresholds) if method == "adaptive" else None,
        level=int(level) if method == "level" and level is not None else None,
        max_set=_max_set_for(votes, max_set) if method == "sets" else None,
    )


def _thresholds_for(hierarchy: Hierarchy, thresholds: Sequence[float] | None) -> tuple[float, ...]:
    if thresholds is None:
        thresholds = hierarchy.thresholds
    if thresholds is None:
        raise InputError(f"thresholds must be given for adaptive: nobody has chosen any for {hierarchy.name}")
    return check_thresholds(list(thresholds), hierarchy.num_levels)


def _max_set_for(votes: Votes, max_set: int | None) -> int:
    most = min(votes.max_set, _MOST_LINKS)
    longest = most if max_set is None else max_set
    if not (isinstance(longest, int | np.integer) and 1 <= longest <= most):
        raise InputError(f"max_set must be in 1..{most}, as many as the votes rank, got {max_set}")
    return int(longest)


def _check_region(votes: Votes, region: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """The region as a flat mask, None for the whole image."""
    if region is None:
        return None
    if region.dtype != bool or region.shape != votes.size:
        raise InputError(f"region must be a boolean mask of shape {votes.size}, got {region.dtype} {region.shape}")
    if not region.any():
        raise InputError("region must hold at least one pixel")
    return region.reshape(-1)
