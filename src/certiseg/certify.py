"""Votes + hierarchy -> certificate.

Every method turns the votes into chains of growing label sets per pixel and their hits (votes inside): see chains.py.
All of them go through one procedure, `stats.nested.finest_links`. With one link that is the paper's test of a fixed
vertex.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.certificate import Certificate, flat_mask
from certiseg.chains import Chains, chains_of, count_test, pick
from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy, check_thresholds, flat_hierarchy, load_hierarchy
from certiseg.kernels.hits import covers, vertices_at
from certiseg.kernels.threads import over_pixels
from certiseg.settings import FLAT_METHODS, CertificateSettings, is_whole, takes
from certiseg.stats.nested import finest_links
from certiseg.stats.radius import radius

if TYPE_CHECKING:
    from certiseg.votes import Votes

_MOST_LINKS = 255
"""Sizes of sets are kept in 8 bits."""


class NothingCertifiable(UserWarning):
    """n is too small: not even n of n votes would certify a pixel."""


@takes(CertificateSettings)
def certify(
    votes: Votes,
    hierarchy: Hierarchy | str | None = None,
    *,
    region: NDArray[np.bool_] | None = None,
    **settings: Any,
) -> Certificate:
    """The finest label of each pixel that no perturbation of l2 size up to R = sigma * Phi^-1(tau) can change.

    With probability >= 1 - alpha over the noise, at every certified pixel at once: for all |delta|_2 <= R more than
    half of the noisy predictions f(x + delta + eps) lie under the certified vertex, or inside the certified set.
    (kfwer and by promise other things: see `Certificate.claim`.) Condition: the settings and the region were chosen
    without looking at the estimation draws.

    For votes along a threat the same holds for all T_t x with t in `Certificate.range`, and with pixel noise for
    perturbations up to `radius` beside it.

    hierarchy: a tree, or the name or path of one; may be left out for segcertify and sets.
    region: (H, W) mask of the pixels tested together, chosen before the estimation draws; default: all.
    Further keyword arguments are the fields of `settings.CertificateSettings`: method (segcertify, level, adaptive,
    nested, sets), tau, alpha, correction (bonferroni, holm, kfwer, by), k (for kfwer), test (fixed, anytime),
    thresholds (for adaptive, coarsest level first; by default those of the hierarchy's data set), level (for the
    method `level`), max_set (for sets; by default as many classes as the votes rank), radius (with a threat and pixel
    noise: the point of the trade-off between range and l2 radius; default: 0).
    """
    made = make_certificate(votes, hierarchy, CertificateSettings(**settings), region)
    if made.critical is None:
        tested = votes.candidate.size if made.region is None else int(made.region.sum())
        warnings.warn(
            f"nothing can be certified: n = {votes.n} draws cannot reject at tau = {made.settings.tau} and alpha = "
            f"{made.settings.alpha} for {tested:,} pixels; see `certiseg plan`",
            NothingCertifiable,
            stacklevel=2,
        )
    return made


def make_certificate(
    votes: Votes,
    hierarchy: Hierarchy | str | None,
    asked: CertificateSettings,
    region: NDArray[np.bool_] | None = None,
) -> Certificate:
    """What `certify` returns, without its warning: for threads, and for callers who tell in their own words."""
    tree = _hierarchy_for(votes, hierarchy, asked)
    used = settle(asked, votes, tree)
    region = None if region is None else np.array(region)
    inside = flat_mask(region, votes.size)
    tested = votes.candidate.size if inside is None else int(inside.sum())
    if used.k > tested:
        raise InputError(
            f"k must be at most the {tested:,} pixels tested together, got {used.k}: nothing would be promised"
        )
    chains = chains_of(votes, tree, used, inside)
    found = finest_links(chains.hits, count_test(votes, used), alpha=used.alpha, correction=used.correction, k=used.k)
    return Certificate(
        **_maps(votes, tree, used, chains, found.link, inside),
        radius=radius(votes.deviation, used.tau) if used.radius is None else used.radius,
        critical=found.critical,
        settings=used,
        hierarchy=tree,
        votes=votes,
        region=region,
    )


# -- from links to maps ------------------------------------------------------------------------------------------


def _maps(
    votes: Votes,
    hierarchy: Hierarchy,
    settings: CertificateSettings,
    chains: Chains,
    link: NDArray[np.uint8],
    inside: NDArray[np.bool_] | None,
) -> dict[str, NDArray[Any]]:
    """vertex, level and set_size of every pixel of the image."""
    level = chains.level[link] if chains.level.ndim == 1 else chains.level[0]
    set_size = np.zeros(link.shape, np.uint8)
    if settings.method == "sets":
        set_size = (link + 1) * (link < len(chains.hits))
        vertex = np.empty(link.shape, np.int16)
        ranking = pick(votes.ranking, inside)
        over_pixels(covers, len(link), ranking, set_size, *_meeting(hierarchy), vertex)
    else:
        vertex = np.empty(link.shape, np.int16)
        candidate = pick(votes.candidate, inside)
        table, links = np.ascontiguousarray(hierarchy.ancestors, np.int16), np.uint8(len(chains.hits))
        over_pixels(vertices_at, len(link), candidate, level, link, links, table, vertex)
    return {
        "vertex": _place(vertex, votes.size, inside, ABSTAIN),
        "level": _place(level, votes.size, inside, 0),
        "set_size": _place(set_size, votes.size, inside, 0),
    }


def _place(values: NDArray[Any], size: tuple[int, int], inside: NDArray[np.bool_] | None, outside: int) -> NDArray[Any]:
    """Values of the tested pixels back at their places in the image."""
    if inside is None:
        return values.reshape(size)
    image = np.full(size[0] * size[1], outside, values.dtype)
    image[inside] = values
    return image.reshape(size)


@lru_cache(maxsize=16)
def _meeting(hierarchy: Hierarchy) -> tuple[NDArray[np.uint8], NDArray[np.int16]]:
    """(C, C): the agreement table; (C, L + 2): K(y, l), then ROOT and ABSTAIN."""
    rest = np.broadcast_to(np.array([ROOT, ABSTAIN]), (hierarchy.num_classes, 2))
    return hierarchy.agreement, np.hstack([hierarchy.ancestors, rest]).astype(np.int16)


# -- settings that depend on votes and hierarchy -----------------------------------------------------------------


def _hierarchy_for(votes: Votes, hierarchy: Hierarchy | str | None, settings: CertificateSettings) -> Hierarchy:
    if isinstance(hierarchy, str):
        hierarchy = load_hierarchy(hierarchy)
    if hierarchy is not None:
        hierarchy.require_classes(votes.classes or votes.num_classes)
        return hierarchy
    if settings.method not in FLAT_METHODS:
        raise InputError(
            f"hierarchy must be given for the method {settings.method}, got none; name one (cs.load_hierarchy), write "
            "one with `certiseg hierarchy new`, or take method='sets', which needs none"
        )
    return flat_hierarchy(votes.classes or [f"class {index}" for index in range(votes.num_classes)])


def settle(asked: CertificateSettings, votes: Votes, hierarchy: Hierarchy) -> CertificateSettings:
    """The settings that matter for the method, with what the votes and the hierarchy say about them."""
    if votes.stopped and asked.test == "fixed":
        raise InputError("test must be 'anytime' for votes that were stopped by looking at them, got 'fixed'")
    moved = votes.threat.law != "none"
    if asked.radius is not None and not moved:
        raise InputError(f"radius must come with a threat, got {asked.radius}; for l2 it follows from sigma and tau")
    levels = hierarchy.num_levels
    if asked.method == "level" and not (is_whole(asked.level) and 0 <= (asked.level or 0) < levels):
        raise InputError(f"level must be in 0..{levels - 1} for this hierarchy, got {asked.level}")
    return replace(
        asked,
        k=asked.k if asked.correction == "kfwer" else 1,
        thresholds=_thresholds_for(asked, hierarchy) if asked.method == "adaptive" else None,
        level=asked.level if asked.method == "level" else None,
        max_set=_max_set_for(asked, votes) if asked.method == "sets" else None,
        radius=float(asked.radius or 0.0) if moved else None,
    )


def _thresholds_for(asked: CertificateSettings, hierarchy: Hierarchy) -> tuple[float, ...]:
    thresholds = hierarchy.thresholds if asked.thresholds is None else asked.thresholds
    if thresholds is None:
        raise InputError(f"thresholds must be given for adaptive: nobody has chosen any for {hierarchy.name}")
    return check_thresholds(list(thresholds), hierarchy.num_levels)


def _max_set_for(asked: CertificateSettings, votes: Votes) -> int:
    most = min(votes.max_set, _MOST_LINKS)
    longest = most if asked.max_set is None else asked.max_set
    if not (is_whole(longest) and 1 <= longest <= most):
        raise InputError(f"max_set must be in 1..{most}, as many as the votes rank, got {asked.max_set}")
    return longest
