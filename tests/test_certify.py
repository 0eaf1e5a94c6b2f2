"""certify against a statement of the design, pixel by pixel, that shares no code with it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import certiseg as cs
from certiseg.certify import NothingCertifiable
from certiseg.hierarchy import hierarchy_from_dict
from tests.conftest import random_votes, tree_documents

SINGLE, CHAINS = ("segcertify", "level", "adaptive"), ("nested", "sets")
ALLOWED = [
    (method, correction)
    for method in SINGLE + CHAINS
    for correction in ("bonferroni", "holm", "kfwer", "by")
    if method in SINGLE or correction in ("bonferroni", "holm")
]


def certify(*arguments: Any, **options: Any) -> cs.Certificate:
    """cs.certify where too few draws are part of the game."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        return cs.certify(*arguments, **options)


# -- docs/design.md, sections 2 and 4, by plain loops ------------------------------------------------------------


class PlainTree:
    """The tree of a file: for each class its path of (vertex id, level, classes under it)."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.names = list(document["classes"])
        self.levels = 1 + len(document["levels"])
        above: dict[str, str] = {}
        level_of = dict.fromkeys(document["classes"], 0)
        for level, vertices in document["levels"].items():
            for name, children in vertices.items():
                self.names.append(name)
                level_of[name] = level
                above.update(dict.fromkeys(children, name))
        self.paths = []
        for leaf in document["classes"]:
            path = [leaf]
            while path[-1] in above:
                path.append(above[path[-1]])
            self.paths.append(path)
        self.under = {name: {y for y, path in enumerate(self.paths) if name in path} for name in self.names}
        self.level_of = level_of

    def stand_in(self, leaf: int, level: int) -> str:
        """K(y, l)."""
        return [name for name in self.paths[leaf] if self.level_of[name] <= level][-1]

    def cover(self, classes: set[int]) -> int:
        for name in self.paths[min(classes)]:
            if classes <= self.under[name]:
                return self.names.index(name)
        return cs.ROOT


@cache
def p_values(n: int, tau: float, test: str) -> list[Fraction]:
    """The p-value of 0..n hits, exactly."""
    t = Fraction(tau)
    if test == "fixed":
        terms = [comb(n, k) * t**k * (1 - t) ** (n - k) for k in range(n + 1)]
        return [sum(terms[k:], Fraction(0)) for k in range(n + 1)]
    found = []
    for k in range(n + 1):
        integral = sum(
            Fraction((-1) ** j * comb(n - k, j), k + j + 1) * (1 - t ** (k + j + 1)) for j in range(n - k + 1)
        )
        evidence = integral / ((1 - t) * t**k * (1 - t) ** (n - k))
        found.append(min(Fraction(1), 1 / evidence))
    return found


def rejected(p: list[Fraction], alpha: float, correction: str, k: int) -> list[bool]:
    """The textbook procedures for one p-value per pixel."""
    total, a = len(p), Fraction(alpha)
    order = sorted(range(total), key=lambda i: p[i])
    count = 0
    if correction == "by":
        harmonic = sum(Fraction(1, i) for i in range(1, total + 1))
        passing = [r for r in range(1, total + 1) if p[order[r - 1]] <= r * a / (total * harmonic)]
        count = passing[-1] if passing else 0
    else:
        for rank in range(1, total + 1):
            level = {
                "bonferroni": a / total,
                "holm": a / (total - rank + 1),
                "kfwer": k * a / total if rank <= k else k * a / (total + k - rank),
            }[correction]
            if p[order[rank - 1]] > level:
                break
            count += 1
    return [i in order[:count] for i in range(total)]


def passing_level(first_p: list[Fraction], alpha: float, correction: str) -> Fraction:
    """For chains: a = alpha / N; with holm a = alpha / (N - m), m the pixels rejected at the finest link."""
    total, m = len(first_p), 0
    while correction == "holm" and m < total:
        again = sum(p <= Fraction(alpha) / (total - m) for p in first_p)
        if again == m:
            break
        m = again
    return Fraction(alpha) / (total - min(m, total - 1))


def state(
    votes: cs.Votes, tree: PlainTree, options: dict[str, Any], region: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """vertex, level and set_size of every pixel, as section 4 defines them."""
    method, height, width = options["method"], *votes.counts.shape[:2]
    where = [(i, j) for i in range(height) for j in range(width) if region is None or region[i, j]]
    chains: list[list[set[int]]] = []
    levels: list[list[int]] = []
    for i, j in where:
        candidate = int(votes.candidate[i, j])
        if method == "sets":
            ranking = [int(c) for c in votes.ranking[i, j]]
            chains.append([set(ranking[:m]) for m in range(1, options["max_set"] + 1)])
            levels.append([0] * options["max_set"])
            continue
        if method == "nested":
            at = list(range(tree.levels))
        elif method == "adaptive":
            at = [sum(bool(votes.gap[i, j] <= t) for t in options["thresholds"])]
        else:
            at = [options.get("level", 0)]
        chains.append([tree.under[tree.stand_in(candidate, level)] for level in at])
        levels.append(at)
    table = p_values(votes.n, options["tau"], options["test"])
    p = [
        [table[sum(int(votes.counts[i, j, y]) for y in members)] for members in chain]
        for (i, j), chain in zip(where, chains, strict=True)
    ]
    if method in CHAINS:
        bound = passing_level([chain[0] for chain in p], options["alpha"], options["correction"])
        finest = [next((link for link, value in enumerate(chain) if value <= bound), None) for chain in p]
    else:
        decisions = rejected([chain[0] for chain in p], options["alpha"], options["correction"], options.get("k", 1))
        finest = [0 if decision else None for decision in decisions]
    vertex = np.full((height, width), cs.ABSTAIN)
    level, set_size = np.zeros((height, width), int), np.zeros((height, width), int)
    for (i, j), link, chain, at in zip(where, finest, chains, levels, strict=True):
        level[i, j] = at[-1] if link is None else at[link]
        if link is None:
            continue
        if method == "sets":
            set_size[i, j], vertex[i, j] = len(chain[link]), tree.cover(chain[link])
        else:
            vertex[i, j] = tree.names.index(tree.stand_in(int(votes.candidate[i, j]), at[link]))
    return vertex, level, set_size


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], cs.Votes, np.ndarray | None, dict[str, Any]]:
    """A ragged tree, votes over its classes, a region or none, and settings for every method."""
    document = draw(tree_documents())
    seed, n = draw(st.integers(0, 2**32)), draw(st.sampled_from([1, 4, 9, 20, 24]))
    rng = np.random.default_rng(seed)
    size = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    votes = random_votes(seed, num_classes=len(document["classes"]), n=n, size=size)
    region = None
    if draw(st.booleans()):
        region = rng.random(size) < rng.choice([0.1, 0.6])
        region[int(rng.integers(size[0])), int(rng.integers(size[1]))] = True
    tested = votes.candidate.size if region is None else int(region.sum())
    options = {
        "tau": draw(st.sampled_from([0.5, 0.6, 0.75])),
        "alpha": draw(st.sampled_from([0.5, 0.25, 0.3, 0.05])),
        "thresholds": sorted(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], int(rng.integers(0, len(document["levels"]) + 1)))),
        "level": int(rng.integers(0, len(document["levels"]) + 1)),
        "max_set": int(rng.integers(1, votes.max_set + 1)),
        "k": int(rng.integers(1, tested + 1)),
    }
    return document, votes, region, options


@settings(max_examples=150)
@given(cases())
def test_certify_is_section_4_for_every_method_correction_and_test(case: Any) -> None:
    document, votes, region, every_option = case
    tree, hierarchy = PlainTree(document), hierarchy_from_dict(document, source="random")
    used = {"level": ["level"], "adaptive": ["thresholds"], "sets": ["max_set"]}
    for method, correction in ALLOWED:
        for test in ("fixed", "anytime"):
            names = ["tau", "alpha", *used.get(method, []), *(["k"] if correction == "kfwer" else [])]
            options = {name: every_option[name] for name in names}
            options |= {"method": method, "correction": correction, "test": test}
            found = certify(votes, hierarchy, region=region, **options)
            expected = state(votes, tree, options, region)
            for name, array in zip(("vertex", "level", "set_size"), expected, strict=True):
                np.testing.assert_array_equal(getattr(found, name), array, err_msg=f"{name} of {options}")


def test_these_cases_certify_and_abstain_at_every_level_and_cover_vertices_and_the_root() -> None:
    """The cases above would prove little if they never certified; this counts what such votes give."""
    document = {
        "name": "ragged",
        "classes": ["a", "b", "c", "d", "e"],
        "levels": {1: {"ab": ["b", "a"]}, 2: {"x": ["c"]}, 3: {"top": ["ab", "d"]}},
    }
    hierarchy = hierarchy_from_dict(document, source="ragged")
    seen: dict[str, set[int]] = {"nested": set(), "adaptive": set(), "sets": set()}
    covers, levels = set(), set()
    for seed in range(40):
        votes = random_votes(seed, num_classes=5, n=20, size=(4, 4))
        for method, vertices in seen.items():
            options = {"thresholds": (0, 0.1, 0.5)} if method == "adaptive" else {}
            cert = certify(votes, hierarchy, method=method, tau=0.5, alpha=0.3, **options)
            vertices |= set(np.unique(cert.vertex).tolist())
            if method == "sets":
                covers |= {hierarchy.vertices[v] for v in np.unique(cert.vertex) if v >= 0}
            if method == "nested":
                levels |= set(np.unique(cert.level[cert.vertex >= 0]).tolist())
    assert cs.ROOT in seen["sets"]
    assert {"ab", "top", "a"} <= covers
    assert cs.ABSTAIN in seen["nested"]
    assert levels == {0, 1, 3}, "no vertex of level 2 adds a class, so nested never needs that level"
    assert {hierarchy.id("ab"), hierarchy.id("top"), hierarchy.id("e")} <= seen["adaptive"]


def test_counts_of_65535_draws_do_not_wrap() -> None:
    counts = np.zeros((1, 3, 4), np.uint16)
    counts[0, 0], counts[0, 1], counts[0, 2] = [65_535, 0, 0, 0], [32_768, 32_767, 0, 0], [20_000, 20_000, 25_535, 0]
    ranking = np.tile(np.arange(4, dtype=np.uint8), (1, 3, 1))
    votes = cs.Votes(np.zeros((1, 3), np.uint8), np.zeros((1, 3)), ranking, counts, n0=1, n=65_535, sigma=0.25)
    document = {"classes": ["a", "b", "c", "d"], "levels": {1: {"ab": ["a", "b"]}, 2: {"abc": ["ab", "c"]}}}
    hierarchy = hierarchy_from_dict(document, source="x")
    for test in ("fixed", "anytime"):
        nested = cs.certify(votes, hierarchy, method="nested", tau=0.75, test=test)
        assert [hierarchy.vertices[v] for v in nested.vertex[0]] == ["a", "ab", "abc"]
        assert cs.certify(votes, method="sets", tau=0.75, test=test).set_size.tolist() == [[1, 2, 3]]


def test_votes_of_more_than_256_classes_are_certified_by_their_right_names() -> None:
    classes = [f"class {i}" for i in range(300)]
    counts = np.zeros((1, 2, 300), np.uint16)
    counts[0, 0, 299], counts[0, 1, [256, 299]] = 100, 50
    ranking = np.array([[[299, 256, 0], [256, 299, 0]]], np.uint16)
    votes = cs.Votes(ranking[..., 0].copy(), np.zeros((1, 2)), ranking, counts, n0=1, n=100, sigma=0.25)
    tree = hierarchy_from_dict({"classes": classes, "levels": {1: {"v": ["class 256", "class 299"]}}}, source="x")
    assert cs.certify(votes, tree, method="nested", alpha=0.1).vertex.tolist() == [[299, 300]]
    found = cs.certify(votes, tree, method="sets", alpha=0.1)
    assert found.set_size.tolist() == [[1, 2]]
    assert found.vertex.tolist() == [[299, 300]]


def test_one_pixel_that_abstains_is_an_ordinary_certificate() -> None:
    votes = random_votes(1, num_classes=3, n=5, size=(1, 1))
    tree = hierarchy_from_dict({"classes": ["a", "b", "c"], "levels": {1: {"ab": ["a", "b"]}}}, source="x")
    for method, options in (("adaptive", {"thresholds": (1,)}), ("level", {"level": 1}), ("nested", {}), ("sets", {})):
        cert = certify(votes, tree, method=method, alpha=0.001, **options)
        assert cert.vertex.tolist() == [[cs.ABSTAIN]]
        assert cert.level.tolist() == [[0 if method == "sets" else 1]]


@pytest.mark.parametrize("length", [255, 256, 300])
def test_sets_longer_than_a_byte_are_refused(length: int) -> None:
    counts = np.zeros((1, 1, 300), np.uint16)
    counts[..., :] = 2
    ranking = np.arange(300, dtype=np.uint16).reshape(1, 1, 300)[..., :length].copy()
    votes = cs.Votes(ranking[..., 0].copy(), np.zeros((1, 1)), ranking, counts, n0=1, n=600, sigma=0.25)
    if length > 255:
        with pytest.raises(cs.InputError, match=r"max_set must be in 1\.\.255"):
            cs.certify(votes, method="sets", max_set=length, alpha=0.1)
    size = cs.certify(votes, method="sets", alpha=0.1, tau=0.5).set_size.item()
    assert size == stats.binom.isf(0.1, 600, 0.5) // 2 + 1


@pytest.mark.parametrize("method", SINGLE + CHAINS)
def test_memory_order_type_and_origin_of_the_arrays_do_not_matter(method: str, tmp_path: Path) -> None:
    votes = random_votes(4, num_classes=3, n=40, size=(4, 5))
    names = ("candidate", "gap", "ranking", "counts")
    rest = {name: getattr(votes, name) for name in ("n0", "n", "sigma")}
    turned = {name: np.asfortranarray(getattr(votes, name)) for name in names}
    wide = {name: getattr(votes, name).astype(np.int64) for name in ("candidate", "ranking")}
    strided = {name: np.repeat(getattr(votes, name), 2, axis=0)[::2] for name in names}
    votes.save(tmp_path / "votes.npz")
    options = {"method": method, "tau": 0.6, "alpha": 0.2, "level": 1, "thresholds": (0.1, 0.5)}
    expected = cs.certify(votes, TREE, **options)
    everywhere = cs.certify(votes, TREE, region=np.ones((4, 5), bool), **options)
    others = [cs.Votes(**turned, **rest), cs.Votes(**{**turned, **wide}, **rest), cs.Votes(**strided, **rest)]
    others += [cs.load_votes(tmp_path / "votes.npz")]
    for found in [everywhere, *(cs.certify(other, TREE, **options) for other in others)]:
        for name in ("vertex", "level", "set_size", "radius_map"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


# -- regions -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_a_region_is_the_certificate_of_its_pixels_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes = random_votes(seed, num_classes=4, n=20, size=(3, 4))
    region = rng.random((3, 4)) < 0.5
    region[0, 0] = True
    alone = cs.Votes(
        **{name: getattr(votes, name)[region][None] for name in ("candidate", "gap", "ranking", "counts")},
        n0=votes.n0,
        n=votes.n,
        sigma=votes.sigma,
    )
    tree = hierarchy_from_dict(
        {"classes": list("abcd"), "levels": {1: {"ab": ["a", "b"]}, 2: {"v": ["ab"]}}}, source="x"
    )
    for method, correction in ALLOWED:
        options = {
            "method": method,
            "correction": correction,
            "tau": 0.6,
            "alpha": 0.3,
            "level": 1,
            "thresholds": (0.3,),
        }
        whole, part = certify(votes, tree, region=region, **options), certify(alone, tree, **options)
        for name in ("vertex", "level", "set_size", "radius_map"):
            np.testing.assert_array_equal(getattr(whole, name)[region], getattr(part, name)[0])
        assert (whole.vertex[~region] == cs.ABSTAIN).all()
        assert np.isnan(whole.radius_map[~region]).all()
        assert not whole.abstained[~region].any()
        assert (whole.critical, whole.tested, whole.abstain_rate) == (part.critical, part.tested, part.abstain_rate)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (np.zeros((3, 4), bool), "region must hold at least one pixel"),
        (np.ones((4, 3), bool), r"region must be a boolean mask of shape \(3, 4\)"),
        (np.ones((3, 4), int), "region must be a boolean mask"),
        ([[1] * 4] * 3, "region must be a boolean mask"),
    ],
)
def test_masks_that_are_no_region_are_refused(region: Any, words: str) -> None:
    votes = random_votes(0, num_classes=3, n=20, size=(3, 4))
    with pytest.raises(cs.InputError, match=words):
        cs.certify(votes, method="sets", alpha=0.5, region=region)


def test_a_certificate_keeps_its_own_region() -> None:
    votes = random_votes(0, num_classes=3, n=20, size=(3, 4))
    region = np.ones((3, 4), bool)
    cert = certify(votes, method="sets", alpha=0.5, region=region)
    region[:] = False
    assert cert.tested == 12


# -- what is refused, and what is warned of ----------------------------------------------------------------------

TREE = hierarchy_from_dict(
    {"name": "t", "classes": ["a", "b", "c"], "levels": {1: {"ab": ["a", "b"]}, 2: {"abc": ["ab", "c"]}}}, source="t"
)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method must be one of segcertify, level, adaptive, nested, sets, got 'magic'"),
        ({"tau": 0.49}, r"tau must lie in \[0\.5, 1\), got 0\.49"),
        ({"tau": 1.0}, "tau must lie in"),
        ({"tau": float("nan")}, "tau must lie in"),
        ({"alpha": 0.0}, r"alpha must lie in \(0, 1\), got 0\.0"),
        ({"alpha": 1.0}, "alpha must lie in"),
        ({"alpha": float("nan")}, "alpha must lie in"),
        ({"correction": "sidak"}, "correction must be one of bonferroni, holm, kfwer, by, got 'sidak'"),
        ({"method": "nested", "correction": "kfwer", "k": 2}, "correction must be bonferroni or holm for nested"),
        ({"method": "sets", "correction": "by"}, "correction must be bonferroni or holm for sets"),
        ({"method": "segcertify", "correction": "kfwer", "k": 0}, "k must be a whole number"),
        ({"method": "segcertify", "correction": "kfwer", "k": 1.5}, "k must be a whole number"),
        ({"method": "segcertify", "correction": "kfwer", "k": 13}, "k must be .*at most the 12 pixels"),
        ({"test": "sometimes"}, "test must be one of fixed, anytime, got 'sometimes'"),
        ({"method": "level"}, r"level must be given for the method level, got none"),
        ({"method": "level", "level": 3}, r"level must be in 0\.\.2"),
        ({"method": "level", "level": -1}, r"level must be in 0\.\.2"),
        ({"method": "adaptive"}, "thresholds must be given for adaptive"),
        ({"method": "adaptive", "thresholds": (0.5, 0.1)}, "thresholds must not decrease"),
        (
            {"method": "adaptive", "thresholds": (0, 0, 0.25)},
            "thresholds must be at most 2, one fewer than levels, got 3",
        ),
        ({"method": "adaptive", "thresholds": (-1,)}, r"thresholds must lie in \[0, 1\]"),
        ({"method": "sets", "max_set": 0}, r"max_set must be in 1\.\.3"),
        ({"method": "sets", "max_set": 4}, r"max_set must be in 1\.\.3, as many as the votes rank, got 4"),
    ],
)
def test_bad_settings_are_one_sentence(options: dict[str, Any], words: str) -> None:
    counts = np.zeros((3, 4, 3), np.uint16)
    counts[..., 0] = 50
    ranking = np.tile(np.arange(3, dtype=np.uint8), (3, 4, 1))
    votes = cs.Votes(np.zeros((3, 4), np.uint8), np.zeros((3, 4)), ranking, counts, n0=1, n=50, sigma=0.25)
    with pytest.raises(cs.InputError, match=words) as caught:
        cs.certify(votes, TREE, **options)
    assert "\n" not in str(caught.value)


def test_other_class_counts_and_permuted_names_are_refused() -> None:
    unnamed = random_votes(0, num_classes=4, n=20, size=(2, 2))
    with pytest.raises(cs.InputError, match="hierarchy must have the model's 4 classes, got 3"):
        cs.certify(unnamed, TREE)
    permuted = random_votes(0, num_classes=3, n=20, size=(2, 2), classes=("b", "a", "c"))
    with pytest.raises(cs.InputError, match="hierarchy must list the model's classes in the model's order"):
        cs.certify(permuted, TREE)
    certify(random_votes(0, num_classes=3, n=20, size=(2, 2), classes=("a", "b", "c")), TREE)


def test_a_hierarchy_is_needed_for_all_but_segcertify_and_sets() -> None:
    votes = random_votes(0, num_classes=3, n=20, size=(2, 2), classes=("x", "y", "z"))
    for method in ("level", "adaptive", "nested"):
        with pytest.raises(cs.InputError, match=f"hierarchy must be given for the method {method}"):
            cs.certify(votes, method=method, level=0 if method == "level" else None)
    for method in ("segcertify", "sets"):
        assert certify(votes, method=method).hierarchy.classes == ("x", "y", "z")


def test_too_few_draws_warn_and_abstain_everywhere() -> None:
    counts = np.zeros((10, 10, 3), np.uint16)
    counts[..., 0] = 5
    ranking = np.tile(np.arange(3, dtype=np.uint8), (10, 10, 1))
    votes = cs.Votes(np.zeros((10, 10), np.uint8), np.zeros((10, 10)), ranking, counts, n0=1, n=5, sigma=0.25)
    for method, correction in ALLOWED:
        for test in ("fixed", "anytime"):
            if correction == "by":
                continue  # all pixels together may pass where a single one could not
            with pytest.warns(NothingCertifiable, match="nothing can be certified: n = 5 draws"):
                cert = cs.certify(
                    votes, TREE, method=method, correction=correction, test=test, level=1, thresholds=(0,), alpha=0.001
                )
            assert cert.critical is None
            assert cert.abstained.all()
            assert cert.abstain_rate == 1
            assert (cert.radius_map < cert.radius).all()
            assert cert.claim().startswith("Nothing is certified")


def test_warnings_name_the_line_that_called(tmp_path: Path) -> None:
    votes = random_votes(0, num_classes=3, n=5, size=(9, 9))
    with pytest.warns(NothingCertifiable) as caught:
        cs.certify(votes, method="sets")
    assert caught[0].filename == __file__


# -- the radius map ----------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.sampled_from([0.6, 0.75]), st.sampled_from(["fixed", "anytime"]))
def test_a_joint_radius_map_reaches_r_exactly_where_certified(seed: int, tau: float, test: str) -> None:
    votes = random_votes(seed, num_classes=3, n=40, size=(3, 3))
    for method in SINGLE:
        cert = certify(votes, TREE, method=method, tau=tau, alpha=0.1, test=test, level=1, thresholds=(0.1, 0.5))
        np.testing.assert_array_equal(cert.radius_map >= cert.radius, cert.vertex >= 0)
        assert "both hold together" in cert.radius_map_statement


@given(st.integers(0, 2**32))
def test_radius_maps_are_sigma_times_the_quantile_of_a_lower_bound(seed: int) -> None:
    votes = random_votes(seed, num_classes=3, n=40, size=(3, 3))
    for method, correction, links in (
        ("segcertify", "holm", 1),
        ("segcertify", "by", 1),
        ("nested", "bonferroni", 3),
        ("nested", "holm", 3),
        ("sets", "holm", votes.max_set),
    ):
        cert = certify(votes, TREE, method=method, correction=correction, tau=0.6, alpha=0.1)
        assert "statement of its own" in cert.radius_map_statement
        for i, j in np.ndindex(3, 3):
            if method == "sets":
                members = votes.ranking[i, j, : cert.set_size[i, j] or votes.max_set]
            else:
                leaf = int(votes.candidate[i, j])
                vertex = TREE.ancestor(leaf, int(cert.level[i, j])) if cert.vertex[i, j] < 0 else cert.vertex[i, j]
                members = TREE.leaves(int(vertex))
            hits = int(votes.counts[i, j, list(members)].sum())
            bound = stats.beta.ppf(0.1 / (9 * links), hits, 40 - hits + 1) if hits else 0
            expected = 0.25 * stats.norm.ppf(bound) if bound > 0.5 else 0
            assert cert.radius_map[i, j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.3, 0.7])
def test_a_threshold_is_compared_with_the_gap_as_an_exact_number(threshold):
    votes, tree = random_votes(3, num_classes=19, n=60, size=(1, 3)), cs.load_hierarchy("cityscapes")
    near = np.float32(threshold)
    gap = np.array([[np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(1))]])
    found = certify(replace(votes, gap=gap), tree, method="adaptive", thresholds=(threshold,), tau=0.5, alpha=0.5)
    assert found.level.tolist() == [[int(float(value) <= threshold) for value in gap[0]]]


def test_k_is_compared_with_the_region_and_not_with_the_whole_image() -> None:
    tree = hierarchy_from_dict({"name": "two", "classes": ["a", "b"]}, source="two")
    votes = random_votes(0, num_classes=2, n=20, size=(3, 4))
    region = np.zeros((3, 4), bool)
    region[0, :2] = True
    options: dict[str, Any] = {"method": "segcertify", "correction": "kfwer", "region": region}
    assert certify(votes, tree, **options, k=2).tested == 2
    with pytest.raises(cs.InputError, match="k must be at most the 2 pixels tested together, got 3"):
        certify(votes, tree, **options, k=3)
