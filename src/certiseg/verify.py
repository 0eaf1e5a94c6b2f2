"""The independent checker: recomputes a certificate from its stored votes and settings, by other means.

This file restates section 4 of docs/design.md with SciPy's distributions, exact integers and plain sorting. It imports
nothing from `stats` or `certify`: an error there must not be able to hide here.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import DamagedArchiveError, digest, read_archive
from certiseg.errors import InputError
from certiseg.hierarchy import PRESETS, Hierarchy, hierarchy_from_json, load_hierarchy
from certiseg.images import read_image
from certiseg.verify_measures import (
    bounds_from,
    first_values,
    hits_at,
    kept_maps,
    odd_regions,
    odd_totals,
    problem_of_values,
    record_identity,
    value_of,
    values_at,
)
from certiseg.verify_ranges import (
    anchors_of,
    counts_of,
    covered,
    deviation,
    first_counts,
    identity,
    in_words,
    odd_range,
    odd_threat,
    threat_of,
)

if TYPE_CHECKING:
    from certiseg.images import ImageLike
    from certiseg.models.segmenter import ModelLike, Segmenter
    from certiseg.votes import Votes

CERTIFICATE_VERSION = VOTES_VERSION = 1
BOUNDS_VERSION = 2
_LEVELS = (0.5, 0.8, 0.95)
_ABSTAIN, _ROOT = -1, -2
_METHODS = ("segcertify", "level", "adaptive", "nested", "sets")
_CORRECTIONS = ("bonferroni", "holm", "kfwer", "by")
_NEAR = 1e-9
"""Relative distance from a level within which floating point does not decide."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks of one certificate."""

    path: str
    checks: tuple[Check, ...]
    redrawn: bool
    """Whether the votes were drawn again; otherwise they are taken as they are stored."""
    notes: tuple[str, ...] = ()
    """What was not checked, in a sentence each."""
    believed: str = ""
    """What the outcome rests on and no check can tell, to follow "as far as"."""

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return all(check.passed for check in self.checks)


class _CheckError(Exception):
    """A check that makes the following ones meaningless."""


def verify(
    path: str | Path,
    *,
    model: ModelLike | None = None,
    image: ImageLike | None = None,
    hierarchy: str | Hierarchy | None = None,
) -> Verification:
    """Check a file of a certificate or of bounds; with a model and the image also redraw every vote from the seed.

    hierarchy: the one that the certificate must be over; by default the model's own, or the preset of that name.
    The checks run in order and stop at the first failure that leaves nothing to compare.
    """
    checks: list[Check] = []
    notes = [] if model is not None else ["the votes were not redrawn: give the model and the image to do that"]
    segmenter = None if model is None else _segmenter(model)
    try:
        for check in _checks(Path(path), segmenter, image, hierarchy, notes):
            checks.append(check)
    except _CheckError as failure:
        checks.append(Check(failure.args[0], False, failure.args[1]))
    believed = "" if model is not None else "what it stores is what was drawn"
    return Verification(str(path), tuple(checks), model is not None, tuple(notes), believed)


def _checks(
    path: Path,
    segmenter: Segmenter | None,
    image: ImageLike | None,
    hierarchy: str | Hierarchy | None,
    notes: list[str],
) -> Iterator[Check]:
    if (bounds := _read_bounds(path)) is not None:
        yield Check("file", True, "every byte matches its recorded SHA-256")
        yield from _bounds_checks(*bounds, segmenter, image, hierarchy, notes)
        return
    meta, arrays, votes_meta, votes = _read(path)
    yield Check("file", True, "every byte matches its recorded SHA-256")
    with _odd_values_fail("votes"):
        yield _check_votes(votes_meta, votes)
    settings = meta["settings"]
    with _odd_values_fail("hierarchy"):
        tree = _read_tree(meta["hierarchy"], votes_meta["classes"], votes["counts"].shape[2])
        yield _check_names(meta["hierarchy"], votes_meta["classes"], segmenter, hierarchy, notes)
    region = arrays.get("region", np.ones(votes["candidate"].shape, bool))
    if region.dtype != bool or region.shape != votes["candidate"].shape or not region.any():
        raise _CheckError("region", "must be a mask of the image with at least one pixel")
    with _odd_values_fail("settings"):
        _check_method(settings, tree.num_levels, votes["ranking"].shape[2], int(region.sum()))
        yield _check_settings(settings, votes_meta, meta["radius"], meta.get("range"))
    expected = _recompute(settings, tree, votes_meta, votes, region)
    for name in ("critical", "vertex", "level", "set_size"):
        stored = meta["critical"] if name == "critical" else arrays[name]
        yield _compare(name, stored, expected[name])
    if segmenter is not None:
        yield _check_redrawn(segmenter, image, votes_meta, votes)


@contextlib.contextmanager
def _odd_values_fail(name: str) -> Iterator[None]:
    """Values of a type or kind that no certificate has are a failed check, not a crash."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise _CheckError(name, f"holds what no certificate does ({type(error).__name__}: {error})") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Settings and maps of the certificate, metadata and arrays of its votes."""
    try:
        archive = read_archive(path, kind="certificate", version=CERTIFICATE_VERSION)
        arrays = {name: array for name, array in archive.arrays.items() if not name.startswith("votes.")}
        if archive.meta["votes_path"] is None:
            votes_meta = archive.meta["votes"]
            votes = {n.removeprefix("votes."): a for n, a in archive.arrays.items() if n.startswith("votes.")}
        else:
            beside = read_archive(_near(path, archive.meta["votes_path"]), kind="votes", version=VOTES_VERSION)
            votes_meta, votes = _prefix(beside.meta, beside.arrays, archive.meta["votes_n"])
        for name in ("settings", "hierarchy", "radius", "critical", "votes_digest"):
            archive.meta[name]
        for name in ("vertex", "level", "set_size"):
            arrays[name]
        recorded = _votes_digest(votes_meta, votes)
    except DamagedArchiveError as error:
        raise _CheckError("file", str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _CheckError("file", f"{path}: cannot be read: {error}") from None
    if recorded != archive.meta["votes_digest"]:
        raise _CheckError("votes", "the votes are not those that the certificate was computed from (digest differs)")
    return archive.meta, arrays, votes_meta, votes


def _near(path: Path, votes_path: str) -> Path:
    """The file of votes that a certificate names: in its folder, below it, or next to its folder."""
    parts = Path(votes_path).parts
    if Path(votes_path).is_absolute() or ".." in parts[1:]:
        raise _CheckError("file", f"{path}: `votes_path` must stay near the certificate, got {votes_path!r}")
    return path.parent / votes_path


def _prefix(meta: dict[str, Any], votes: dict[str, Any], n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The votes of the first n draws, where the file holds more."""
    if n == meta["n"]:
        return meta, votes
    values = first_values(meta, votes, n * len(anchors_of(meta)))
    return {**meta, "n": n}, {**votes, **first_counts(meta, votes, n), **values}


def _votes_digest(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> str:
    numbers = (meta["n0"], meta["n"], float(meta["sigma"]), bool(meta["stopped"]))
    noise = meta.get("noise", "gaussian")
    hashed = hashlib.sha256(repr(numbers if noise == "gaussian" else (*numbers, noise)).encode())
    for name in ("candidate", "gap", "ranking", "counts", *(["prediction"] if "prediction" in votes else [])):
        hashed.update(digest(votes[name]).encode())
    hashed.update(identity(meta))
    for counts in counts_of(meta, votes)[1:]:
        hashed.update(digest(counts).encode())
    hashed.update(record_identity(meta, votes))
    channels, ranges = meta["provenance"].get("channels", 3), meta["provenance"].get("values", [[0, 255]])
    ranges = tuple((float(low), float(high)) for low, high in ranges)
    if channels != 3 or ranges != ((0.0, 255.0),):
        hashed.update(repr((int(channels), ranges)).encode())
    return hashed.hexdigest()


def _check_votes(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> Check:
    counts, ranking, candidate, n = votes["counts"], votes["ranking"], votes["candidate"], meta["n"]
    height, width, num_classes = counts.shape
    whole = all(array.dtype.kind in "iu" and array.min() >= 0 for array in (counts, ranking, candidate))
    fits = candidate.shape == votes["gap"].shape == ranking.shape[:2] == (height, width)
    if not (whole and fits and ranking.max() < num_classes and votes["gap"].min() >= 0):
        raise _CheckError("votes", "the arrays of the votes do not fit each other")
    if not all(isinstance(draws, int) and 1 <= draws <= 65535 for draws in (n, meta["n0"])):
        raise _CheckError("votes", f"n = {n}, n0 = {meta['n0']} are no numbers of draws")
    if meta.get("noise", "gaussian") not in ("gaussian", "grid"):
        raise _CheckError("votes", f"noise must be gaussian or grid, got {meta['noise']!r}")
    if wrong := odd_threat(meta, votes):
        raise _CheckError("votes", wrong)
    if "stop" in meta["provenance"] and not meta["stopped"]:
        raise _CheckError("votes", "the votes are not marked as stopped, but a rule of stopping is recorded with them")
    for of_anchor in counts_of(meta, votes):
        _check_counts(of_anchor, counts.shape, n)
    if (ranking[..., 0] != candidate).any() or (np.diff(np.sort(ranking, axis=-1).astype(int), axis=-1) == 0).any():
        raise _CheckError("votes", "the ranking must begin with the candidate and name each class once")
    if "record" in meta and (wrong := odd_totals(meta, votes, counts_of(meta, votes))):
        raise _CheckError("votes", wrong)
    return Check("votes", True, f"{height}x{width} pixels, {num_classes} classes, n = {n} votes each")


def _check_counts(counts: NDArray[Any], shape: tuple[int, ...], n: int) -> None:
    """The counts at one anchor: n votes at every pixel."""
    if counts.shape != shape or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise _CheckError("votes", "the counts of the anchors do not fit each other")
    if counts.max() > n:
        raise _CheckError("votes", f"a class has {counts.max()} votes at a pixel, more than n = {n}")
    totals = counts.sum(axis=-1, dtype=np.int64)
    if (totals != n).any():
        row, column = np.argwhere(totals != n)[0]
        raise _CheckError("votes", f"pixel ({row}, {column}) has {totals[row, column]} votes, not n = {n}")


def _check_method(settings: Mapping[str, Any], num_levels: int, ranked: int, tested: int) -> None:
    """Refuse settings that section 4 does not know, or for which it proves nothing."""
    method, correction = settings["method"], settings["correction"]
    if method not in _METHODS or correction not in _CORRECTIONS or settings["test"] not in ("fixed", "anytime"):
        raise _CheckError("settings", f"unknown method, correction or test: {method}, {correction}, {settings['test']}")
    if method in ("nested", "sets") and correction not in ("bonferroni", "holm"):
        raise _CheckError("settings", f"{correction} is not valid for {method}")
    if correction == "kfwer" and not (isinstance(settings["k"], int) and 1 <= settings["k"] <= tested):
        raise _CheckError("settings", f"k = {settings['k']} must be in 1..{tested}, the pixels tested")
    if method == "sets" and not 1 <= settings["max_set"] <= ranked:
        raise _CheckError("settings", f"max_set = {settings['max_set']} is more than the votes rank")
    if method == "level" and not (isinstance(settings["level"], int) and 0 <= settings["level"] < num_levels):
        raise _CheckError("settings", f"level = {settings['level']} is not one of the hierarchy's {num_levels}")
    thresholds = list(settings["thresholds"]) if method == "adaptive" else []
    if sorted(thresholds) != thresholds or len(thresholds) >= num_levels or not all(0 <= t <= 1 for t in thresholds):
        raise _CheckError("settings", f"thresholds {thresholds} must not decrease and be fewer than the levels")


def _check_settings(settings: Mapping[str, Any], votes_meta: Mapping[str, Any], radius: float, range_: Any) -> Check:
    tau, alpha = settings["tau"], settings["alpha"]
    if not (0.5 <= tau < 1 and 0 < alpha < 1):
        raise _CheckError("settings", f"tau = {tau} and alpha = {alpha} must lie in [0.5, 1) and (0, 1)")
    if votes_meta["stopped"] and settings["test"] != "anytime":
        raise _CheckError("settings", "votes that may have been stopped by looking at them need the anytime test")
    if wrong := odd_range(votes_meta, settings, radius, range_):
        raise _CheckError("radius", wrong)
    detail = f"{settings['method']}, tau = {tau}, alpha = {alpha}, {in_words(votes_meta, settings)}"
    return Check("settings", True, detail)


def _check_names(
    document: Mapping[str, Any],
    of_votes: list[str] | None,
    segmenter: Segmenter | None,
    hierarchy: str | Hierarchy | None,
    notes: list[str],
) -> Check:
    """Names are what people read: classes must be the model's, inner vertices those of a hierarchy known elsewhere."""
    known = None if segmenter is None else segmenter.class_names
    if segmenter is not None and known != (None if of_votes is None else tuple(of_votes)):
        raise _CheckError("names", "the classes of the votes are not those that the model names, in its order")
    expected: Hierarchy | None
    if hierarchy is not None:
        expected = load_hierarchy(hierarchy) if isinstance(hierarchy, str) else hierarchy
    elif segmenter is not None and segmenter.hierarchy is not None:
        expected = load_hierarchy(segmenter.hierarchy)
    else:
        expected = load_hierarchy(document["name"]) if document["name"] in PRESETS else None
    if expected is None:
        notes.append("the names of the hierarchy are the certificate's own: give the hierarchy to compare them")
        return Check("names", True, "the classes are those of the model" if known else "not compared")
    stored = hierarchy_from_json(document, source="hierarchy")
    if (stored.vertices, stored.as_dict()["levels"]) != (expected.vertices, expected.as_dict()["levels"]):
        raise _CheckError("names", f"the hierarchy is not {expected.name}; if it was meant to be another, name it")
    return Check("names", True, f"classes and vertices are those of {expected.name}")


def _segmenter(model: ModelLike) -> Segmenter:
    from certiseg.models.segmenter import as_segmenter

    return as_segmenter(model)


def _read_tree(document: Mapping[str, Any], model_classes: list[str] | None, num_classes: int) -> _Tree:
    """The stored hierarchy: a tree at all, and over the classes of the votes."""
    try:
        checked = hierarchy_from_json(document, source="hierarchy")
        checked.require_classes(num_classes if model_classes is None else model_classes)
        checked.require_classes(num_classes)
    except InputError as error:
        raise _CheckError("hierarchy", str(error)) from None
    return _Tree(document)


class _Tree:
    """The hierarchy read afresh: for each class the list of label sets K(y, 0), K(y, 1), ... as sets of classes."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.classes = list(document["classes"])
        levels = {int(level): vertices for level, vertices in document["levels"].items()}
        self.names = [*self.classes, *(name for level in sorted(levels) for name in levels[level])]
        level_of = {name: 0 for name in self.classes} | {name: k for k, vs in levels.items() for name in vs}
        parent = {child: name for vs in levels.values() for name, children in vs.items() for child in children}
        self.num_levels = max([0, *levels]) + 1
        self.paths: list[list[int]] = []
        for leaf in self.classes:
            upward = [leaf]
            while upward[-1] in parent:
                upward.append(parent[upward[-1]])
            reached = [[v for v in upward if level_of[v] <= level][-1] for level in range(self.num_levels)]
            self.paths.append([self.names.index(name) for name in reached])
        self.under = {
            v: {y for y, leaf in enumerate(self.classes) if self._is_under(leaf, v, parent)} for v in self.names
        }

    @staticmethod
    def _is_under(leaf: str, vertex: str, parent: Mapping[str, str]) -> bool:
        while leaf != vertex and leaf in parent:
            leaf = parent[leaf]
        return leaf == vertex

    def cover(self, classes: frozenset[int]) -> int:
        """The id of the smallest vertex over all of the classes, -2 for the root."""
        over = [v for v in self.names if classes <= self.under[v]]
        return self.names.index(min(over, key=lambda v: (len(self.under[v]), self.names.index(v)))) if over else _ROOT


def _recompute(
    settings: Mapping[str, Any],
    tree: _Tree,
    votes_meta: Mapping[str, Any],
    votes: Mapping[str, NDArray[Any]],
    region: NDArray[np.bool_],
) -> dict[str, Any]:
    """critical, vertex, level and set_size as section 4 defines them."""
    candidate = votes["candidate"][region].astype(np.int64)
    anchors = covered(votes_meta, settings["tau"], settings.get("radius") or 0.0)[2]
    by_anchor = [counts_of(votes_meta, votes)[k][region].astype(np.int64) for k in anchors]
    ranking = votes["ranking"][region].astype(np.int64)
    paths = np.array(tree.paths)
    method, pixels = settings["method"], len(candidate)
    member = np.array([[y in tree.under[v] for y in range(len(tree.classes))] for v in tree.names])
    if method == "sets":
        levels = np.zeros((settings["max_set"], pixels), np.int64)
        sums = [
            [np.take_along_axis(counts, ranking[:, :m], axis=1).sum(axis=1) for m in _upto(settings["max_set"])]
            for counts in by_anchor
        ]
    else:
        levels = _assigned_levels(settings, tree.num_levels, votes["gap"][region])
        sums = [[(counts * member[paths[candidate, level]]).sum(axis=1) for level in levels] for counts in by_anchor]
    hits = np.array(sums).min(axis=0)  # every anchor must reject
    needed = _needed(settings, votes_meta["n"], hits[0])
    passed = np.zeros(hits.shape, bool) if needed is None else hits >= needed
    certified, finest = passed.any(axis=0), passed.argmax(axis=0)
    level = np.where(certified, levels[finest, np.arange(pixels)], levels[-1])
    size = np.where(certified, finest + 1, 0) if method == "sets" else np.zeros(pixels, np.int64)
    if method == "sets":
        cache: dict[frozenset[int], int] = {}
        sets = (frozenset(r[:s].tolist()) for r, s in zip(ranking, size, strict=True))
        vertex = np.array(
            [cache[s] if s in cache else cache.setdefault(s, tree.cover(s) if s else _ABSTAIN) for s in sets]
        )
    else:
        vertex = np.where(certified, paths[candidate, level], _ABSTAIN)
    whole = {}
    for name, values, outside in (("vertex", vertex, _ABSTAIN), ("level", level, 0), ("set_size", size, 0)):
        whole[name] = np.full(region.shape, outside)
        whole[name][region] = values
    return {**whole, "critical": needed}


def _upto(longest: int) -> range:
    return range(1, longest + 1)


def _assigned_levels(settings: Mapping[str, Any], num_levels: int, gap: NDArray[Any]) -> NDArray[np.int64]:
    """(links, pixels): the levels that are tested at each pixel, finest first."""
    pixels = len(gap)
    if settings["method"] == "nested":
        return np.repeat(np.arange(num_levels)[:, None], pixels, axis=1)
    if settings["method"] == "adaptive":
        levels = np.zeros((1, pixels), np.int64)
        for threshold in settings["thresholds"]:
            levels += gap.astype(float) <= threshold
        return levels
    level = 0 if settings["method"] == "segcertify" else settings["level"]
    return np.full((1, pixels), level)


def _needed(settings: Mapping[str, Any], n: int, hits: NDArray[np.int64]) -> int | None:
    """Votes needed, from the p-values of all pixels, sorted, as the text books state each procedure."""
    alpha, correction, total = settings["alpha"], settings["correction"], len(hits)
    test = _Test(settings["test"], n, settings["tau"])
    ordered, rank = np.sort(hits)[::-1], np.arange(1, total + 1)  # most hits, smallest p-value
    if correction == "bonferroni":
        level = alpha / total
    elif correction in ("holm", "kfwer"):
        k = settings["k"] if correction == "kfwer" else 1
        levels = k * alpha / (total + k - np.maximum(rank, k))
        failed = np.flatnonzero(~test.rejects(ordered, levels))
        level = levels[failed[0]] if failed.size else levels[-1]
    else:
        levels = rank * alpha / (total * (1 / rank).sum())
        below = np.flatnonzero(test.rejects(ordered, levels))
        level = levels[below[-1]] if below.size else levels[0]
    enough = np.flatnonzero(test.rejects(np.arange(n + 1), np.full(n + 1, level)))
    return int(enough[0]) if enough.size else None


class _Test:
    """The test of "share <= tau" by hits out of n: the binomial tail, or E integrated numerically."""

    def __init__(self, kind: str, n: int, tau: float) -> None:
        self.kind, self.n, self.tau = kind, n, tau
        if kind == "fixed":
            from scipy.stats import binom

            self.p = np.asarray(binom.sf(np.arange(-1, n), n, tau))
        else:
            self.log_e = np.full(n + 1, -np.inf)  # up to n tau hits no p > tau is likelier than tau, so E <= 1
            above = np.arange(int(n * tau), n + 1)
            self.log_e[above] = _log_mixture(above, n, tau)

    def rejects(self, hits: NDArray[np.int64], levels: NDArray[np.float64]) -> NDArray[np.bool_]:
        """p(hits) <= level, decided by exact integers where floats are too close; E may not fall on its bound."""
        if self.kind == "anytime":
            return np.asarray(self.log_e[hits] >= -np.log(levels) + _NEAR)
        decided = self.p[hits] <= levels
        for i in np.flatnonzero(np.abs(self.p[hits] - levels) <= _NEAR * levels):
            decided[i] = _tail_at_most(self.n, int(hits[i]), Fraction(self.tau), Fraction(float(levels[i])))
        return decided


def _log_mixture(hits: NDArray[np.int64], n: int, tau: float) -> NDArray[np.float64]:
    """log of the mean over p uniform on (tau, 1) of the likelihood ratio, by Gauss-Legendre quadrature in pieces."""
    from scipy.special import logsumexp

    nodes, weights = np.polynomial.legendre.leggauss(64)
    edges = np.linspace(tau, 1, 65)
    width = np.diff(edges)
    p = (edges[:-1, None] + width[:, None] * (nodes + 1) / 2).ravel()
    mass = np.log((width[:, None] * weights / 2).ravel() / (1 - tau))
    ratios = np.log(p / tau), np.log1p(-p) - np.log1p(-tau)
    return np.array([logsumexp(k * ratios[0] + (n - k) * ratios[1] + mass) for k in hits])


@lru_cache(maxsize=1024)
def _tail_at_most(n: int, k: int, tau: Fraction, level: Fraction) -> bool:
    """P(Bin(n, tau) >= k) <= level, with every term of the sum an exact integer over denominator^n."""
    yes, no = tau.numerator, tau.denominator - tau.numerator
    tail = term = comb(n, k) * yes**k * no ** (n - k)
    for j in range(k, n):
        term = term * (n - j) * yes // ((j + 1) * no)
        tail += term
    return bool(tail * level.denominator <= level.numerator * tau.denominator**n)


def _compare(name: str, stored: Any, expected: Any) -> Check:
    if np.shape(stored) != np.shape(expected):
        return Check(name, False, f"shape {np.shape(stored)} stored, {np.shape(expected)} recomputed")
    if stored is None or expected is None or np.ndim(stored) == 0:
        same = stored == expected
        return Check(name, same, f"{expected} votes needed" if same else f"{stored} stored, {expected} recomputed")
    differing = np.argwhere(np.asarray(stored) != expected)
    if not len(differing):
        return Check(name, True, f"all {np.size(expected):,} pixels agree")
    row, column = differing[0]
    return Check(
        name,
        False,
        f"{len(differing):,} pixels differ, first ({row}, {column}): {stored[row, column]} stored, "
        f"{expected[row, column]} recomputed",
    )


def _redraw(
    segmenter: Segmenter,
    image: ImageLike | None,
    votes_meta: Mapping[str, Any],
    votes: Mapping[str, NDArray[Any]],
    **options: Any,
) -> Votes:
    """Draw the noise again from the seed, as the votes say they were drawn."""
    from certiseg.models.backends import BACKENDS, with_backend
    from certiseg.noise import image_key
    from certiseg.sampling import sample
    from certiseg.threats import unpack

    if votes_meta["seed"] is None or image is None:
        raise _CheckError("redraw", "redrawing needs the image and votes that were sampled with a seed")
    recorded = votes_meta["provenance"]
    needed = {"threads", "backend", "model_sha256", "model", "batch_size", "temperature"}
    missing = needed - {name for name, value in recorded.items() if value is not None}
    if missing:
        raise _CheckError("redraw", f"the votes do not say how they were drawn ({sorted(missing)[0]} is missing)")
    values, channels = recorded.get("values"), recorded.get("channels", 3)
    if image_key(read_image(image, values=values, channels=channels)) != votes_meta["image_key"]:
        raise _CheckError("redraw", "the image is not the one that was certified (its pixels have another hash)")
    try:
        if recorded["backend"] in BACKENDS:
            segmenter = with_backend(segmenter, recorded["backend"])
        if recorded.get("denoiser_sigma") is not None and segmenter.denoising is None:
            segmenter = segmenter.denoised(sigma=float(recorded["denoiser_sigma"]))
        if segmenter.fingerprint() != recorded["model_sha256"]:
            message = f"the model, or how its input is prepared, is not that recorded as {recorded['model']!r}"
            raise _CheckError("redraw", f"{message} (hash differs)")
        if recorded.get("arithmetic") != segmenter.arithmetic:
            drawn = recorded.get("arithmetic") or "32 bits"
            raise _CheckError("redraw", f"the votes were drawn with {drawn}, this model has {segmenter.arithmetic}")
        options |= {name: recorded[name] for name in ("batch_size", "temperature", "threads")}
        numbers = {name: votes_meta[name] for name in ("sigma", "n0", "n", "seed")}
        numbers["noise"] = votes_meta.get("noise", "gaussian")
        numbers["threat"], numbers["anchors"] = unpack(threat_of(votes_meta), votes), tuple(anchors_of(votes_meta))
        return sample(segmenter, image, **numbers, values=values, **options)
    except InputError as error:
        raise _CheckError("redraw", str(error)) from None


def _check_redrawn(
    segmenter: Segmenter,
    image: ImageLike | None,
    votes_meta: Mapping[str, Any],
    votes: Mapping[str, NDArray[Any]],
) -> Check:
    """Compare every vote with a redrawn one."""
    measured = {"keep_maps": True} if "record" in votes_meta else {}
    again = _redraw(segmenter, image, votes_meta, votes, max_set=votes["ranking"].shape[2], **measured)
    redrawn = {name: getattr(again, name) for name in ("candidate", "gap", "ranking", "counts")}
    if again.prediction is not None:
        redrawn["prediction"] = again.prediction
        if "prediction" not in votes:
            return Check("redraw", False, "`prediction`, what the model says without noise, is missing")
    redrawn |= {f"counts_anchor_{place}": of_anchor.counts for place, of_anchor in enumerate(again.further, 1)}
    for name, values in redrawn.items():
        if values.shape != votes[name].shape:
            return Check("redraw", False, f"`{name}` has another shape; the model is not the one that was certified")
        differing = int((values != votes[name]).sum())
        if differing:
            return Check(
                "redraw",
                False,
                f"`{name}` differs in {differing:,} of {votes[name].size:,} values; the model is not deterministic, or "
                "runs on another kind of device or library version",
            )
    if again.record is not None and (odd := _odd_record(votes_meta["record"], votes, again.record.pack()[1])):
        return odd
    each = " at each anchor" if again.further else ""
    return Check("redraw", True, f"all {votes_meta['n0']} + {votes_meta['n']} draws{each} gave the same votes")


def _odd_record(
    record: Mapping[str, Any], votes: Mapping[str, NDArray[Any]], again: Mapping[str, NDArray[Any]]
) -> Check | None:
    """The check that values and kept maps of measures fail, given those drawn again; None where they are the same."""
    maps, kept = kept_maps(record, again), kept_maps(record, votes)
    assert maps is not None
    if not all(np.array_equal(*pair) for pair in zip(maps, kept or maps, strict=False)):
        return Check("redraw", False, "a kept label map differs from the one that was drawn again")
    values = _check_values("redraw", record, votes, maps)
    return None if values.passed else values


# -- bounds of measures ------------------------------------------------------------------------------------------


def _read_bounds(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """A file of bounds, None where it is another file."""
    try:
        archive = read_archive(path, kind="bounds", version=BOUNDS_VERSION)
        for name in ("draws", "record", "settings", "radius", "critical"):
            archive.meta[name]
        for name in ("lower", "radii", "numerators", "denominators"):
            archive.arrays[name]
    except DamagedArchiveError as error:
        raise _CheckError("file", str(error)) from None
    except InputError:
        return None
    except KeyError as error:
        raise _CheckError("file", f"{path}: cannot be read: {error} is missing") from None
    return archive.meta, archive.arrays


def _bounds_checks(
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    segmenter: Segmenter | None,
    image: ImageLike | None,
    hierarchy: str | Hierarchy | None,
    notes: list[str],
) -> Iterator[Check]:
    with _odd_values_fail("values"):
        draws, record, settings = meta["draws"], meta["record"], {**meta["settings"], "correction": "bonferroni"}
        anchors = anchors_of(draws)
        if problem := problem_of_values(record, arrays, draws["n"] * len(anchors)):
            raise _CheckError("values", problem)
        if wrong := odd_threat(draws, {**arrays, "candidate": np.zeros(record["shape"][:2], bool)}):
            raise _CheckError("values", wrong)
        if "stop" in draws["provenance"] and not draws["stopped"]:
            raise _CheckError("values", "the draws are not marked as stopped, but a rule of stopping is recorded")
        if draws["deviation"] != deviation(draws):
            raise _CheckError("values", f"the noise has the deviation {deviation(draws)}, not {draws['deviation']}")
        if segmenter is not None and segmenter.class_names not in (None, tuple(draws["classes"] or ())):
            raise _CheckError("names", "the classes are not those that the model names, in its order")
        yield Check("values", True, f"{len(record['measures'])} measures in each of {draws['n']} draws")
    with _odd_values_fail("settings"):
        if settings["test"] not in ("fixed", "anytime"):
            raise _CheckError("settings", f"unknown test: {settings['test']}")
        yield _check_settings({**settings, "method": "bounds"}, draws, meta["radius"], meta.get("range"))
        used = covered(draws, settings["tau"], settings.get("radius") or 0.0)[2]
    with _odd_values_fail("lower"):
        measures, values = len(record["measures"]), values_at(arrays, len(anchors), used)
        needed = _needed(settings, draws["n"], np.full(measures, draws["n"]))
        yield _compare("critical", meta["critical"], needed)
        same = arrays["lower"] == bounds_from(values, needed)
        yield Check("lower", bool(same.all()), f"{same.sum()} of {measures} bounds agree")
        yield _check_radii(settings, draws, arrays["radii"], values, [anchors[k] for k in used])
    if record["explored"]:
        notes.append("exploration: the measures were asked after the label maps were drawn")
    with _odd_values_fail("maps"):
        maps, name = kept_maps(record, arrays), "kept maps"
        if segmenter is not None:
            again = _redraw(segmenter, image, draws, arrays, keep_maps=True)
            assert again.record is not None
            maps, name = kept_maps(record, again.record.pack()[1]), "redraw"
            tree = _known_tree(segmenter, hierarchy)
            names = segmenter.class_names or draws["classes"] or ()
            under = {name: {index} for index, name in enumerate(names)} if tree is None else tree.under
            paths = None if tree is None else [[tree.under[tree.names[v]] for v in path] for path in tree.paths]
            wrong = odd_regions(record, arrays, again.candidate, under, paths, notes)
            yield Check("regions", wrong is None, wrong or "objects and what is kept are those of the selection draws")
        else:
            notes.append("the regions of the measures are taken as they are stored")
        if maps is not None:
            yield _check_values(name, record, arrays, maps)


def _known_tree(segmenter: Segmenter, hierarchy: str | Hierarchy | None) -> _Tree | None:
    """The hierarchy that labels are read by: the one given, or the model's own."""
    known = hierarchy if hierarchy is not None else segmenter.hierarchy
    return None if known is None else _Tree((load_hierarchy(known) if isinstance(known, str) else known).as_dict())


def _check_radii(
    settings: Mapping[str, Any],
    draws: Mapping[str, Any],
    stored: NDArray[Any],
    values: list[NDArray[np.float64]],
    anchors: list[float],
) -> Check:
    """How far each measure is proven to reach each level, from the least share that its hits allow."""
    measures = values[0].shape[1]
    if stored.shape != (measures, len(_LEVELS)):
        return Check("radii", False, f"shape {stored.shape} stored, {(measures, len(_LEVELS))} recomputed")
    error = settings["alpha"] / (measures * len(_LEVELS))
    hits = np.stack([hits_at(values, level) for level in _LEVELS], axis=1)
    reached = {
        k: _reach(_least_share(settings["test"], k, draws["n"], error), settings, draws, anchors)
        for k in np.unique(hits).tolist()
    }
    expected = np.array([[reached[k] for k in row] for row in hits.tolist()])
    wrong = int((~np.isclose(stored, expected, rtol=1e-6, atol=1e-9)).sum())
    return Check("radii", not wrong, f"{expected.size - wrong} of {expected.size} radii agree")


def _least_share(test: str, hits: int, n: int, error: float) -> float:
    """The largest share, from 1/2 on, that so many hits reject; 0 where none."""
    if test == "fixed":
        from scipy.stats import beta

        return float(beta.ppf(error, hits, n - hits + 1)) if hits else 0.0
    low, high = 0.5, 1 - 1e-12
    count = np.array([hits])
    if hits <= n * low or _log_mixture(count, n, low)[0] < -np.log(error) + _NEAR:
        return 0.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        rejected = hits > n * middle and _log_mixture(count, n, middle)[0] >= -np.log(error) + _NEAR
        low, high = (middle, high) if rejected else (low, middle)
    return low


def _reach(share: float, settings: Mapping[str, Any], draws: Mapping[str, Any], anchors: list[float]) -> float:
    """The end of the range in which more than half stay if a share is exceeded; for l2, the radius."""
    if share <= 0.5:
        share = 0.5
    return max(covered({**draws, "anchors": anchors}, share, settings.get("radius") or 0.0)[1], 0.0)


def _check_values(
    name: str, record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], maps: list[NDArray[np.int64]]
) -> Check:
    """Compare every stored value with the one that its label map gives."""
    for draw, label_map in enumerate(maps):
        for index in range(len(record["measures"])):
            found = value_of(record, arrays, index, label_map)
            stored = int(arrays["numerators"][draw, index]), int(arrays["denominators"][draw, index])
            if found != stored:
                told = f"measure {index} of draw {draw} is {stored[0]}/{stored[1]}, its map gives {found[0]}/{found[1]}"
                return Check(name, False, told)
    return Check(name, len(maps) == len(arrays["numerators"]), f"the values of all {len(maps)} draws agree")
