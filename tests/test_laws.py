"""Laws between methods, corrections and tests that hold for all votes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certiseg as cs
from certiseg.certify import NothingCertifiable
from certiseg.hierarchy import Hierarchy, flat_hierarchy, hierarchy_from_dict
from tests.conftest import random_votes, tree_documents


def certify(*arguments: Any, **options: Any) -> cs.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingCertifiable)
        return cs.certify(*arguments, **options)


@st.composite
def trees_and_votes(draw: st.DrawFn) -> tuple[Hierarchy, cs.Votes, dict[str, Any], np.random.Generator]:
    tree = hierarchy_from_dict(draw(tree_documents()), source="random")
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    votes = random_votes(seed, num_classes=tree.num_classes, n=draw(st.sampled_from([10, 30, 100])), size=(4, 5))
    options = {
        "tau": draw(st.sampled_from([0.5, 0.75])),
        "alpha": draw(st.sampled_from([0.5, 0.05, 0.001])),
        "test": draw(st.sampled_from(["fixed", "anytime"])),
    }
    return tree, votes, options, rng


def thresholds_for(tree: Hierarchy, rng: np.random.Generator) -> tuple[float, ...]:
    return tuple(sorted(rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], int(rng.integers(0, tree.num_levels)))))


def same_maps(first: cs.Certificate, second: cs.Certificate) -> None:
    np.testing.assert_array_equal(first.vertex, second.vertex)
    np.testing.assert_array_equal(first.abstained, second.abstained)


@given(trees_and_votes())
def test_adaptive_abstains_nowhere_that_segcertify_certifies(case: Any) -> None:
    tree, votes, options, rng = case
    flat = certify(votes, tree, method="segcertify", **options)
    for _ in range(3):
        adaptive = certify(votes, tree, method="adaptive", thresholds=thresholds_for(tree, rng), **options)
        assert not (adaptive.abstained & ~flat.abstained).any()


@given(trees_and_votes())
def test_nested_certifies_all_that_single_levels_do_at_the_same_or_a_finer_level(case: Any) -> None:
    tree, votes, options, rng = case
    nested = certify(votes, tree, method="nested", **options)
    others = [certify(votes, tree, method="segcertify", **options)]
    others += [certify(votes, tree, method="level", level=level, **options) for level in range(tree.num_levels)]
    others += [certify(votes, tree, method="adaptive", thresholds=thresholds_for(tree, rng), **options)]
    for other in others:
        certified = ~other.abstained
        assert not (nested.abstained & certified).any()
        assert (nested.level[certified] <= other.level[certified]).all()
        assert (tree.members[nested.vertex[certified]] <= tree.members[other.vertex[certified]]).all()


@given(trees_and_votes())
def test_nested_gives_the_finest_of_all_levels(case: Any) -> None:
    tree, votes, options, _ = case
    nested = certify(votes, tree, method="nested", **options)
    by_level = [certify(votes, tree, method="level", level=level, **options) for level in range(tree.num_levels)]
    expected = np.full(votes.size, cs.ABSTAIN)
    for single in reversed(by_level):
        expected = np.where(single.vertex >= 0, single.vertex, expected)
    np.testing.assert_array_equal(nested.vertex, expected)
    for coarser, finer in zip(by_level[1:], by_level[:-1], strict=True):
        assert (coarser.vertex[finer.vertex >= 0] >= 0).all(), "what holds at a level holds at all coarser ones"


@st.composite
def caterpillars(draw: st.DrawFn) -> tuple[Hierarchy, cs.Votes]:
    """A tree whose paths are chains of one class more each, and votes whose ranking is that same chain."""
    order = draw(st.permutations(range(draw(st.integers(3, 6)))))
    classes = [f"c{i}" for i in range(len(order))]
    levels, below = {}, classes[order[0]]
    for level in range(1, len(order)):
        levels[level] = {f"v{level}": [below, classes[order[level]]]}
        below = f"v{level}"
    tree = hierarchy_from_dict({"classes": classes, "levels": levels}, source="caterpillar")
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, size = 30, (4, 5)
    weights = np.array([0.5**position for position in range(len(order))])[np.argsort(order)]
    counts = np.array([rng.multinomial(n, rng.dirichlet(3 * weights), 5) for _ in range(4)], np.uint16)
    ranking = np.tile(np.array(order, np.uint8), (*size, 1))
    swapped = rng.random(size) < 0.5
    ranking[swapped, :2] = ranking[swapped, 1::-1]
    return tree, cs.Votes(ranking[..., 0].copy(), np.zeros(size), ranking, counts, n0=1, n=n, sigma=0.25)


@given(
    caterpillars(),
    st.sampled_from([0.5, 0.75]),
    st.sampled_from([0.5, 0.05]),
    st.sampled_from(["bonferroni", "holm"]),
    st.sampled_from(["fixed", "anytime"]),
)
def test_fed_the_same_chain_sets_and_nested_give_the_same_answer(
    case: Any, tau: float, alpha: float, correction: str, test: str
) -> None:
    tree, votes = case
    options = {"tau": tau, "alpha": alpha, "correction": correction, "test": test}
    nested, sets = certify(votes, tree, method="nested", **options), certify(votes, tree, method="sets", **options)
    assert nested.critical == sets.critical
    same_maps(nested, sets)
    np.testing.assert_array_equal(np.where(nested.abstained, 0, nested.level + 1), sets.set_size)
    np.testing.assert_array_equal(nested.radius_map, sets.radius_map)
    for row, column in np.ndindex(votes.size):
        if nested.vertex[row, column] >= 0:
            names = {tree.vertices[leaf] for leaf in tree.leaves(int(nested.vertex[row, column]))}
            assert set(sets.labels_at(row, column)) == names


@given(st.integers(0, 2**32), st.sampled_from(["bonferroni", "holm"]), st.sampled_from(["fixed", "anytime"]))
def test_a_flat_hierarchy_makes_all_methods_equal(seed: int, correction: str, test: str) -> None:
    votes = random_votes(seed, num_classes=4, n=30, size=(4, 5))
    options = {"tau": 0.6, "alpha": 0.1, "correction": correction, "test": test}
    flat = flat_hierarchy(list("abcd"))
    reference = certify(votes, flat, method="segcertify", **options)
    for method, more in (
        ("level", {"level": 0}),
        ("adaptive", {"thresholds": ()}),
        ("nested", {}),
        ("sets", {"max_set": 1}),
    ):
        other = certify(votes, flat, method=method, **more, **options)
        same_maps(reference, other)
        assert other.critical == reference.critical
        assert not other.level.any()
    same_maps(reference, certify(votes, method="segcertify", **options))
    np.testing.assert_array_equal(
        certify(votes, flat, method="sets", max_set=1, **options).set_size, (reference.vertex >= 0).astype(int)
    )


@given(trees_and_votes())
def test_holm_certifies_all_that_bonferroni_does_at_the_same_or_a_finer_level(case: Any) -> None:
    tree, votes, options, rng = case
    chosen = thresholds_for(tree, rng)
    for method in ("segcertify", "level", "adaptive", "nested", "sets"):
        more = {"method": method, "level": tree.num_levels - 1, "thresholds": chosen, **options}
        bonferroni = certify(votes, tree, correction="bonferroni", **more)
        holm = certify(votes, tree, correction="holm", **more)
        certified = ~bonferroni.abstained
        assert not (holm.abstained & certified).any()
        assert (holm.level[certified] <= bonferroni.level[certified]).all()
        assert (holm.set_size[certified] <= bonferroni.set_size[certified]).all()


@given(trees_and_votes())
def test_longer_sets_add_certificates_and_change_none(case: Any) -> None:
    tree, votes, options, _ = case
    for longer in range(2, votes.max_set + 1):
        short = certify(votes, tree, method="sets", max_set=longer - 1, **options)
        long = certify(votes, tree, method="sets", max_set=longer, **options)
        certified = short.set_size > 0
        np.testing.assert_array_equal(long.set_size[certified], short.set_size[certified])
        assert (np.isin(long.set_size[~certified], (0, longer))).all()


@settings(max_examples=30)
@given(trees_and_votes())
def test_more_error_or_a_lower_share_certifies_no_less(case: Any) -> None:
    tree, votes, options, _ = case
    for method in ("segcertify", "nested", "sets"):
        for correction in ("bonferroni", "holm"):
            base = {"method": method, "correction": correction, "test": options["test"]}
            strict = certify(votes, tree, tau=0.75, alpha=0.01, **base)
            for loose in (
                certify(votes, tree, tau=0.75, alpha=0.2, **base),
                certify(votes, tree, tau=0.6, alpha=0.01, **base),
            ):
                assert not (loose.abstained & ~strict.abstained).any()


@given(trees_and_votes())
def test_the_fixed_test_certifies_all_that_the_anytime_test_does(case: Any) -> None:
    tree, votes, options, _ = case
    for method in ("segcertify", "nested", "sets"):
        for correction in ("bonferroni", "holm"):
            more = {**options, "method": method, "correction": correction}
            anytime = certify(votes, tree, **{**more, "test": "anytime"})
            fixed = certify(votes, tree, **{**more, "test": "fixed"})
            assert not (fixed.abstained & ~anytime.abstained).any()


@given(trees_and_votes())
def test_where_a_pixel_lies_does_not_matter(case: Any) -> None:
    tree, votes, options, rng = case
    order = rng.permutation(20)
    arrays = {
        name: (array := getattr(votes, name)).reshape(20, *array.shape[2:])[order].reshape(array.shape)
        for name in ("candidate", "gap", "ranking", "counts")
    }
    moved = cs.Votes(**arrays, n0=votes.n0, n=votes.n, sigma=votes.sigma)
    for method in ("adaptive", "nested", "sets"):
        more = {"method": method, "correction": "holm", "thresholds": (0.25,)[: tree.num_levels - 1], **options}
        original, shuffled = certify(votes, tree, **more), certify(moved, tree, **more)
        np.testing.assert_array_equal(shuffled.vertex.ravel(), original.vertex.ravel()[order])


@given(trees_and_votes())
def test_excluded_and_within_follow_from_the_label_of_each_pixel(case: Any) -> None:
    tree, votes, options, _ = case
    for method in ("nested", "sets"):
        cert = certify(votes, tree, method=method, **options)
        for vertex, name in enumerate(tree.vertices):
            under = set(tree.leaves(vertex))
            within, excludes = cert.within(name), cert.excludes(vertex)
            assert not (within & excludes).any()
            for row, column in np.ndindex(votes.size):
                names = cert.labels_at(row, column)
                held = {leaf for label in names for leaf in tree.leaves(label)}
                assert within[row, column] == (bool(held) and held <= under)
                assert excludes[row, column] == (bool(held) and not held & under)


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_prefixes_are_certified_like_votes_of_their_own(method: str) -> None:
    from certiseg.models.synthetic import synthetic_scene

    model = synthetic_scene(height=24, width=32)
    tree = cs.load_hierarchy("camvid")
    long = cs.sample(model, model.image, sigma=0.25, n0=5, n=60, snapshots=(40,))
    short = cs.sample(model, model.image, sigma=0.25, n0=5, n=40)
    same_maps(
        cs.certify(long.first(40), tree, method=method, alpha=0.1), cs.certify(short, tree, method=method, alpha=0.1)
    )
