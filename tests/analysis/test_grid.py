"""The grid in one pass: exactly what certifying with each threshold function gives."""

import warnings

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis.grid import PAPER_VALUES, make_grid, non_decreasing, sum_grid
from certiseg.certify import NothingCertifiable
from certiseg.scores import scores_of, sum_pixels
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test

COUNTS = ("pixels", "abstained", "right", "level_certified", "level_abstained", "level_wrong")
CORRECTIONS = ("bonferroni", "holm", "kfwer", "by")


def random_votes(rng, hierarchy, *, size=(12, 17), n=60):
    """Votes from unanimous to undecided, gaps on the grid's values among them, and labels with void."""
    pixels, classes = size[0] * size[1], hierarchy.num_classes
    ranking = np.argsort(rng.random((pixels, classes)), axis=1)[:, :3].astype(np.uint8)
    certainty = rng.beta(2, 0.3, pixels)
    first = rng.binomial(n, certainty)
    second = rng.binomial(n - first, 0.8)
    counts = np.zeros((pixels, classes), np.uint16)
    related = hierarchy.ancestors[ranking[:, 0], rng.integers(0, hierarchy.num_levels, pixels)]
    sibling = np.array([rng.choice(np.flatnonzero(hierarchy.members[v])) for v in related])
    np.add.at(counts, (np.arange(pixels), ranking[:, 0]), first.astype(np.uint16))
    np.add.at(counts, (np.arange(pixels), sibling), second.astype(np.uint16))
    np.add.at(counts, (np.arange(pixels), ranking[:, 2]), (n - first - second).astype(np.uint16))
    gap = np.where(rng.random(pixels) < 0.3, rng.choice(PAPER_VALUES, pixels), certainty)
    label = np.where(rng.random(pixels) < 0.6, ranking[:, 0], rng.integers(0, classes, pixels))
    label[rng.random(pixels) < 0.1] = 255
    votes = cs.Votes(
        candidate=ranking[:, 0].reshape(size),
        gap=gap.astype(rng.choice([np.float32, np.float64])).reshape(size),
        ranking=ranking.reshape(*size, 3),
        counts=counts.reshape(*size, classes),
        n0=10,
        n=n,
        sigma=0.25,
    )
    return votes, label.astype(np.uint8).reshape(size)


def assert_equal_to_certifying(votes, label, hierarchy, grid, found, **options):
    for index, thresholds in enumerate(grid.functions):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingCertifiable)
            certificate = cs.certify(votes, hierarchy, method="adaptive", thresholds=thresholds, **options)
        expected, ours = sum_pixels(certificate, label), found.of(index)
        for name in COUNTS:
            assert np.array_equal(getattr(ours, name), getattr(expected, name)), (thresholds, name)
        # The counts are equal; gains are sums of fractions, where only the order of adding can differ.
        assert np.allclose(ours.gain, expected.gain, rtol=1e-13, atol=0)
        assert scores_of(ours).ccig == pytest.approx(scores_of(expected).ccig, rel=1e-13)


def test_the_papers_grid_has_120_triples():
    triples = non_decreasing(PAPER_VALUES, 3)
    assert len(triples) == len(set(triples)) == 120
    assert all(a <= b <= c for a, b, c in triples)
    assert {(0, 0, 0.25), (0, 0.1, 0.4), (0, 0.05, 0.3), (0, 0.3, 0.7)} <= set(triples)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("preset", ["cityscapes", "pascal_context"])
def test_every_function_of_the_papers_grid_equals_certifying_with_it(preset, correction):
    hierarchy = cs.load_hierarchy(preset)
    grid = make_grid(non_decreasing(PAPER_VALUES, 3), hierarchy.num_levels)
    rng = np.random.default_rng(len(preset) + len(correction))
    votes, label = random_votes(rng, hierarchy)
    options = {"alpha": 0.2, "correction": correction, "k": 3}
    found = sum_grid(votes, hierarchy, label, grid, binomial_test(votes.n, 0.75), **options)
    assert_equal_to_certifying(votes, label, hierarchy, grid, found, tau=0.75, **options)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_odd_grids_tests_and_sizes_equal_certifying_too(correction):
    hierarchy = cs.load_hierarchy("camvid")
    functions = [(), (0.2,), (0.1, 0.33), (0, 0, 0), (1, 1, 1), (0.7, 0.7, 0.7), (0.123, 0.5, 0.987), (0.2,)]
    grid = make_grid(functions, hierarchy.num_levels)
    assert len(grid.functions) == 7
    for seed, (size, n, tau) in enumerate(
        [((1, 1), 30, 0.5), ((3, 5), 4, 0.9), ((9, 11), 100, 0.8), ((20, 30), 40, 0.6)]
    ):
        votes, label = random_votes(np.random.default_rng(seed), hierarchy, size=size, n=n)
        for make, test in ((binomial_test, "fixed"), (anytime_test, "anytime")):
            options = {"alpha": 0.05, "correction": correction, "k": 1}
            found = sum_grid(votes, hierarchy, label, grid, make(n, tau), **options)
            assert_equal_to_certifying(votes, label, hierarchy, grid, found, tau=tau, test=test, **options)


def test_corrections_give_the_functions_criticals_of_their_own():
    """The case is there at all: with holm some functions need other counts than others."""
    hierarchy = cs.load_hierarchy("cityscapes")
    grid = make_grid(non_decreasing(PAPER_VALUES, 3), hierarchy.num_levels)
    votes, _ = random_votes(np.random.default_rng(4), hierarchy)
    criticals = {
        cs.certify(votes, hierarchy, method="adaptive", thresholds=t, alpha=0.2, correction="holm").critical
        for t in grid.functions[::7]
    }
    assert len(criticals) > 1


def test_images_add_up_and_void_alone_leaves_no_nan_in_the_sum():
    hierarchy = cs.load_hierarchy("camvid")
    grid = make_grid([(0, 0.1, 0.4)], hierarchy.num_levels)
    test = binomial_test(60, 0.75)
    (votes, label), (other, _) = (random_votes(np.random.default_rng(s), hierarchy) for s in (0, 1))
    whole = sum_grid(votes, hierarchy, label, grid, test, alpha=0.05)
    empty = sum_grid(other, hierarchy, np.full(label.shape, 255), grid, test, alpha=0.05)
    assert scores_of((whole + empty).of(0)).ccig == scores_of(whole.of(0)).ccig
    assert scores_of((whole + whole).of(0)).cig == pytest.approx(scores_of(whole.of(0)).cig)
    assert np.isnan(scores_of(empty.of(0)).cig)
    with pytest.raises(cs.InputError, match="same grid"):
        _ = whole + sum_grid(votes, hierarchy, label, make_grid([(0.5,)], 4), test, alpha=0.05)


@pytest.mark.parametrize(
    "functions", [[], [(0.5, 0.1)], [(0, 0, 0, 0)], [(-0.1,)], [(float("nan"),)], [(i / 256,) for i in range(256)]]
)
def test_impossible_grids_are_refused(functions):
    with pytest.raises(cs.InputError):
        make_grid(functions, 4)
