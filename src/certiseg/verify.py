"""The independent checker: recomputes a certificate from its stored votes and settings, by other means.

This file restates design section 4 with scipy's distributions, exact integers and plain sorting, pixel by pixel in
meaning if not in loops. It imports nothing from `stats` or `certify`: an error there must not be able to hide here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import DamagedArchiveError, read_archive
from certiseg.errors import InputError

CERTIFICATE_VERSION = VOTES_VERSION = 1
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

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


class _Failed(Exception):
    """A check that makes the following ones meaningless."""


def verify(path: str | Path, *, model: Any = None, image: Any = None) -> Verification:
    """Check a certificate file; with a model and the image also redraw every vote from the seed.

    The checks run in order and stop at the first failure that leaves nothing to compare.
    """
    checks: list[Check] = []
    try:
        for check in _checks(Path(path), model, image):
            checks.append(check)
    except _Failed as failure:
        checks.append(Check(failure.args[0], False, failure.args[1]))
    return Verification(str(path), tuple(checks))


def _checks(path: Path, model: Any, image: Any) -> Iterator[Check]:
    meta, arrays, votes_meta, votes = _read(path)
    yield Check("file", True, "every byte matches its recorded SHA-256")
    with _odd_values_fail("votes"):
        yield _check_votes(votes_meta, votes)
    settings = meta["settings"]
    with _odd_values_fail("hierarchy"):
        tree = _read_tree(meta["hierarchy"], votes_meta["classes"], votes["counts"].shape[2])
    region = arrays.get("region", np.ones(votes["candidate"].shape, bool))
    if region.dtype != bool or region.shape != votes["candidate"].shape or not region.any():
        raise _Failed("region", "must be a mask of the image with at least one pixel")
    with _odd_values_fail("settings"):
        _check_method(settings, tree.num_levels, votes["ranking"].shape[2], int(region.sum()))
        yield _check_settings(settings, votes_meta, meta["radius"])
    expected = _recompute(settings, tree, votes_meta, votes, region)
    for name in ("critical", "vertex", "level", "set_size"):
        stored = meta["critical"] if name == "critical" else arrays[name]
        yield _compare(name, stored, expected[name])
    if model is not None:
        yield _check_redrawn(model, image, votes_meta, votes)


@contextlib.contextmanager
def _odd_values_fail(name: str) -> Iterator[None]:
    """Values of a type or kind that no certificate has are a failed check, not a crash."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise _Failed(name, f"holds what no certificate does ({type(error).__name__}: {error})") from None


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
        raise _Failed("file", str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _Failed("file", f"{path}: {error} is missing or odd") from None
    if recorded != archive.meta["votes_digest"]:
        raise _Failed("votes", "the votes are not those that the certificate was computed from (digest differs)")
    return archive.meta, arrays, votes_meta, votes


def _near(path: Path, votes_path: str) -> Path:
    """The file of votes that a certificate names: in its folder, below it, or next to its folder."""
    parts = Path(votes_path).parts
    if Path(votes_path).is_absolute() or ".." in parts[1:]:
        raise _Failed("file", f"{path}: `votes_path` must stay near the certificate, got {votes_path!r}")
    return path.parent / votes_path


def _prefix(meta: dict[str, Any], votes: dict[str, Any], n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The votes of the first n draws, where the file holds more."""
    if n == meta["n"]:
        return meta, votes
    return {**meta, "n": n}, {**votes, "counts": votes[f"counts_first_{n}"]}


def _votes_digest(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> str:
    import hashlib

    from certiseg.archive import digest

    numbers = (meta["n0"], meta["n"], float(meta["sigma"]), bool(meta["stopped"]))
    noise = meta.get("noise", "gaussian")
    hashed = hashlib.sha256(repr(numbers if noise == "gaussian" else (*numbers, noise)).encode())
    for name in ("candidate", "gap", "ranking", "counts"):
        hashed.update(digest(votes[name]).encode())
    return hashed.hexdigest()


def _check_votes(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> Check:
    counts, ranking, candidate, n = votes["counts"], votes["ranking"], votes["candidate"], meta["n"]
    height, width, num_classes = counts.shape
    whole = all(array.dtype.kind in "iu" and array.min() >= 0 for array in (counts, ranking, candidate))
    fits = candidate.shape == votes["gap"].shape == ranking.shape[:2] == (height, width)
    if not (whole and fits and ranking.max() < num_classes and votes["gap"].min() >= 0):
        raise _Failed("votes", "the arrays of the votes do not fit each other")
    if not (isinstance(n, int) and 1 <= n <= 65535 and meta["n0"] >= 1 and 0 < meta["sigma"] < float("inf")):
        raise _Failed("votes", f"n = {n}, n0 = {meta['n0']}, sigma = {meta['sigma']} are no numbers of draws or noise")
    if meta.get("noise", "gaussian") not in ("gaussian", "grid"):
        raise _Failed("votes", f"noise must be gaussian or grid, got {meta['noise']!r}")
    totals = counts.sum(axis=-1, dtype=np.int64)
    if (totals != n).any():
        row, column = np.argwhere(totals != n)[0]
        raise _Failed("votes", f"pixel ({row}, {column}) has {totals[row, column]} votes, not n = {n}")
    if (ranking[..., 0] != candidate).any() or (np.diff(np.sort(ranking, axis=-1).astype(int), axis=-1) == 0).any():
        raise _Failed("votes", "the ranking must begin with the candidate and name each class once")
    return Check("votes", True, f"{height}x{width} pixels, {num_classes} classes, n = {n} votes each")


def _check_method(settings: Mapping[str, Any], num_levels: int, ranked: int, tested: int) -> None:
    """Refuse settings that section 4 does not know, or for which it proves nothing."""
    method, correction = settings["method"], settings["correction"]
    if method not in _METHODS or correction not in _CORRECTIONS or settings["test"] not in ("fixed", "anytime"):
        raise _Failed("settings", f"unknown method, correction or test: {method}, {correction}, {settings['test']}")
    if method in ("nested", "sets") and correction not in ("bonferroni", "holm"):
        raise _Failed("settings", f"{correction} is not valid for {method}")
    if correction == "kfwer" and not (isinstance(settings["k"], int) and 1 <= settings["k"] <= tested):
        raise _Failed("settings", f"k = {settings['k']} must be in 1..{tested}, the pixels tested")
    if method == "sets" and not 1 <= settings["max_set"] <= ranked:
        raise _Failed("settings", f"max_set = {settings['max_set']} is more than the votes rank")
    if method == "level" and not (isinstance(settings["level"], int) and 0 <= settings["level"] < num_levels):
        raise _Failed("settings", f"level = {settings['level']} is not one of the hierarchy's {num_levels}")
    thresholds = list(settings["thresholds"]) if method == "adaptive" else []
    if sorted(thresholds) != thresholds or len(thresholds) >= num_levels or not all(0 <= t <= 1 for t in thresholds):
        raise _Failed("settings", f"thresholds {thresholds} must not decrease and be fewer than the levels")


def _check_settings(settings: Mapping[str, Any], votes_meta: Mapping[str, Any], radius: float) -> Check:
    from scipy.stats import norm

    tau, alpha = settings["tau"], settings["alpha"]
    if not (0.5 <= tau < 1 and 0 < alpha < 1):
        raise _Failed("settings", f"tau = {tau} and alpha = {alpha} must lie in [0.5, 1) and (0, 1)")
    if votes_meta["stopped"] and settings["test"] != "anytime":
        raise _Failed("settings", "votes that may have been stopped by looking at them need the anytime test")
    expected = votes_meta["sigma"] * norm.ppf(tau)
    if not np.isclose(radius, expected, rtol=1e-9, atol=1e-12):
        raise _Failed("radius", f"R must be sigma * Phi^-1(tau) = {expected:.6f}, got {radius:.6f}")
    return Check("settings", True, f"{settings['method']}, tau = {tau}, alpha = {alpha}, R = {expected:.4f}")


def _read_tree(document: Mapping[str, Any], model_classes: list[str] | None, num_classes: int) -> _Tree:
    """The stored hierarchy: a tree at all, and over the classes of the votes."""
    from certiseg.hierarchy import hierarchy_from_dict

    levels = {int(level): vertices for level, vertices in document["levels"].items()}
    try:
        checked = hierarchy_from_dict({**document, "levels": levels}, source="hierarchy")
        checked.require_classes(num_classes if model_classes is None else model_classes)
        checked.require_classes(num_classes)
    except InputError as error:
        raise _Failed("hierarchy", str(error)) from None
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
    counts, candidate = votes["counts"][region].astype(np.int64), votes["candidate"][region].astype(np.int64)
    ranking = votes["ranking"][region].astype(np.int64)
    paths = np.array(tree.paths)
    method, pixels = settings["method"], len(candidate)
    member = np.array([[y in tree.under[v] for y in range(len(tree.classes))] for v in tree.names])
    if method == "sets":
        chain = [np.take_along_axis(counts, ranking[:, :m], axis=1).sum(axis=1) for m in _upto(settings["max_set"])]
        levels = np.zeros((len(chain), pixels), np.int64)
    else:
        levels = _assigned_levels(settings, tree.num_levels, votes["gap"][region])
        chain = [(counts * member[paths[candidate, level]]).sum(axis=1) for level in levels]
    hits = np.stack(chain)
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
    return tail * level.denominator <= level.numerator * tau.denominator**n


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


def _behind_denoiser(segmenter: Any, sigma: float) -> Any:
    """The model behind the package's denoiser, unless it already is."""
    from certiseg.models.denoiser import DenoisedSegmenter, with_denoiser

    return segmenter if isinstance(segmenter, DenoisedSegmenter) else with_denoiser(segmenter, sigma=sigma)


def _check_redrawn(model: Any, image: Any, votes_meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> Check:
    """Draw the noise again from the seed and compare every vote."""
    import torch

    from certiseg.images import read_image
    from certiseg.models.backends import BACKENDS, with_backend
    from certiseg.models.segmenter import as_segmenter
    from certiseg.noise import image_key
    from certiseg.votes import sample

    if votes_meta["seed"] is None or image is None:
        raise _Failed("redraw", "redrawing needs the image and votes that were sampled with a seed")
    segmenter, recorded = as_segmenter(model), votes_meta["provenance"]
    missing = {"threads", "backend", "model_sha256", "model", "batch_size", "temperature"} - recorded.keys()
    if missing:
        raise _Failed("redraw", f"the votes do not say how they were drawn ({sorted(missing)[0]} is missing)")
    if image_key(read_image(image)) != votes_meta["image_key"]:
        raise _Failed("redraw", "the image is not the one that was certified (its pixels have another hash)")
    threads = torch.get_num_threads()
    torch.set_num_threads(int(recorded["threads"]))
    try:
        if recorded["backend"] in BACKENDS:
            segmenter = with_backend(segmenter, recorded["backend"])
        if recorded.get("denoiser_sigma") is not None:
            segmenter = _behind_denoiser(segmenter, float(recorded["denoiser_sigma"]))
        if segmenter.fingerprint() != recorded["model_sha256"]:
            message = f"the model, or how its input is prepared, is not that recorded as {recorded['model']!r}"
            raise _Failed("redraw", f"{message} (hash differs)")
        options = {name: recorded[name] for name in ("batch_size", "temperature")}
        numbers = {name: votes_meta[name] for name in ("sigma", "n0", "n", "seed")}
        numbers["noise"] = votes_meta.get("noise", "gaussian")
        again = sample(segmenter, image, **numbers, **options, max_set=votes["ranking"].shape[2])
    except InputError as error:
        raise _Failed("redraw", str(error)) from None
    finally:
        torch.set_num_threads(threads)
    for name in ("candidate", "gap", "ranking", "counts"):
        if getattr(again, name).shape != votes[name].shape:
            return Check("redraw", False, f"`{name}` has another shape; the model is not the one that was certified")
        differing = int((getattr(again, name) != votes[name]).sum())
        if differing:
            return Check(
                "redraw",
                False,
                f"`{name}` differs in {differing:,} of {votes[name].size:,} values; the model is not deterministic, or "
                "runs on another kind of device or library version",
            )
    return Check("redraw", True, f"all {votes_meta['n0']} + {votes_meta['n']} draws gave the same votes")
