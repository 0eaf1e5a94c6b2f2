"""Measures: the kernel gives what the definition says, draws are united and never counted twice, bounds are checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg import measures, threats
from certiseg.archive import read_archive, write_archive
from certiseg.certify import NothingCertifiable
from certiseg.measures.questions import Scene, resolve
from certiseg.measures.record import empty_record
from certiseg.models.synthetic import SyntheticSegmenter
from certiseg.partial_votes import PartialVotes, load_partial_votes
from certiseg.sampling import ask, draw, start, votes_of
from certiseg.settings import SamplingSettings
from certiseg.stats.order import order_bounds
from tests.threats.small import picture
from tests.threats.test_sampling import model as foggy

TREE = cs.flat_hierarchy(list("abcd"))
RANDOM = np.random.default_rng(0)
MODEL = SyntheticSegmenter(RANDOM.dirichlet(np.full(4, 0.3), (7, 9)), class_names=tuple("abcd"))
HALF = np.arange(63).reshape(7, 9) < 30
TRUTH = RANDOM.integers(0, 4, (7, 9))
TRUTH[0, 0] = 255
ASKED: list[Any] = [
    measures.share(HALF, "a"),
    measures.free(HALF, ["a", "b"]),
    measures.overlap(HALF, "c", margin=2),
    measures.overlap(HALF, "c", margin=0),
    measures.kept(),
    measures.area("d"),
    measures.steady("a"),
    measures.accuracy(TRUTH),
    measures.dice(TRUTH, "b"),
    measures.objects("a", "c", least=2),
]
N0, N = 4, 40
PLAN = SamplingSettings(sigma=0.25, n0=N0, n=N, batch_size=3)


def sampled(**options: Any) -> cs.Votes:
    return cs.sample(MODEL, MODEL.image, sigma=0.25, n0=N0, n=N, measures=ASKED, **options)


@given(st.integers(0, 2**32 - 1))
def test_the_kernel_gives_the_value_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    scene = Scene(random.integers(0, 4, (7, 9)), TREE)
    found = resolve(ASKED, scene)
    labels = random.integers(0, 4, (3, 7, 9)).astype(np.uint8)
    record = empty_record(found, (7, 9, 4), 3, keep_maps=True)
    record.add(range(3), labels)
    for d in range(3):
        np.testing.assert_array_equal(record.label_map(d), labels[d])
        for index, measure in enumerate(found):
            expected = measure.value(labels[d])
            assert (record.numerators[d, index], record.denominators[d, index]) == expected


def test_values_are_those_of_the_table_of_measures() -> None:
    labels = RANDOM.integers(0, 4, (7, 9))
    candidate = RANDOM.integers(0, 4, (7, 9))
    share, free, overlap, narrow, kept, area, steady, accuracy, dice, *_ = resolve(ASKED, Scene(candidate, TREE))
    assert share.value(labels) == ((labels[HALF] == 0).sum(), 30)
    assert free.value(labels) == (np.isin(labels[HALF], [2, 3]).sum(), 30)
    wide = np.arange(63).reshape(7, 9) < 50  # three rows and three pixels; two rows and columns more are the margin
    np.testing.assert_array_equal(overlap.outer.mask, wide & ~HALF)
    near = (labels == 2) & wide
    assert overlap.value(labels) == ((near & HALF).sum(), (near | HALF).sum())
    assert narrow.value(labels) == (((labels == 2) & HALF).sum(), 30)
    assert kept.value(labels) == ((labels == candidate).sum(), 63)
    assert area.value(labels) == ((labels == 3).sum(), 63)
    assert steady.value(labels) == (63 - abs((labels == 0).sum() - (candidate == 0).sum()), 63)
    assert accuracy.value(labels) == ((labels == TRUTH)[TRUTH != 255].sum(), 62)
    under, true = (labels == 1) & (TRUTH != 255), TRUTH == 1
    assert dice.value(labels) == (2 * (under & true).sum(), under.sum() + true.sum())


def test_dice_of_two_empty_sets_is_one() -> None:
    truth, labels = np.full((7, 9), 2), np.full((7, 9), 3)
    (dice,) = resolve([measures.dice(truth, "b")], Scene(labels, TREE))
    assert dice.value(labels) == (1, 1)


def test_objects_are_the_connected_parts_with_eight_neighbours() -> None:
    candidate = np.full((7, 9), 3)
    candidate[0, 0] = candidate[1, 1] = 0
    candidate[5, 5:9] = 0
    candidate[3, 3] = 0
    found = resolve([measures.objects("a", least=2)], Scene(candidate, TREE))
    assert [(m.name, m.kind, m.inside.area) for m in found] == [
        ("a 1", "share", 2),
        ("a 1", "overlap", 2),
        ("a 2", "share", 4),
        ("a 2", "overlap", 4),
    ]


@given(st.integers(1, 60), st.floats(0.5, 0.95), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_the_bound_is_the_largest_level_whose_null_is_rejected(n: int, tau: float, count: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 8, (n, count)) / 8
    critical = cs.critical_count(n, tau, 0.05 / count)
    expected = [
        max([t for t in column if critical is not None and (column >= t).sum() >= critical], default=0.0)
        for column in values.T
    ]
    np.testing.assert_array_equal(order_bounds(values, critical), expected)


# -- drawing -----------------------------------------------------------------------------------------------------


def drawn(selection: list[int], estimation: list[int]) -> PartialVotes:
    """A part whose measures are settled by the selection draws, which it makes again where it does not hold them."""
    whole = start(MODEL, MODEL.image, PLAN)
    draw(MODEL, MODEL.image, whole, "selection", list(range(N0)))
    ask(whole, MODEL, ASKED)
    assert whole.record is not None
    partial = start(MODEL, MODEL.image, PLAN)
    draw(MODEL, MODEL.image, partial, "selection", selection)
    partial.ask(whole.record.measures)
    draw(MODEL, MODEL.image, partial, "estimation", estimation)
    return partial


def test_batches_and_splits_give_the_same_values_bit_for_bit(tmp_path: Path) -> None:
    whole = sampled()
    assert sampled(batch_size=7).digest() == whole.digest()
    first, second = drawn([0, 1, 2, 3], list(range(0, N, 2))), drawn([], list(range(1, N, 2)))
    second.save(tmp_path / "part.npz")
    first.add(load_partial_votes(tmp_path / "part.npz"))
    assert votes_of(first, MODEL).record.digest() == whole.record.digest()  # type: ignore[union-attr]


def test_an_interrupted_sampling_goes_on_with_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    drawn([0, 1, 2, 3], [0, 1, 5, 6, 7]).save(path)
    assert sampled(checkpoint=path, batch_size=3).record.digest() == sampled().record.digest()  # type: ignore[union-attr]
    drawn([0, 1, 2, 3], [0, 1]).save(path)
    with pytest.raises(cs.InputError, match="measures must be the same for all estimation draws"):
        cs.sample(MODEL, MODEL.image, sigma=0.25, n0=N0, n=N, batch_size=3, measures=ASKED[:2], checkpoint=path)


def test_a_draw_twice_or_of_other_measures_is_refused() -> None:
    with pytest.raises(cs.InputError, match="counted once"):
        drawn([], [1, 2]).add(drawn([], [2]))
    record = drawn([], [1, 2]).record
    assert record is not None
    with pytest.raises(cs.InputError, match="entered once"):
        record.add([2], np.zeros((1, 7, 9), np.uint8))
    plain = start(MODEL, MODEL.image, PLAN)
    draw(MODEL, MODEL.image, plain, "estimation", [5])
    with pytest.raises(cs.InputError, match="same measures"):
        drawn([], [1, 2]).add(plain)


def test_a_missing_value_is_noticed() -> None:
    votes = sampled()
    assert votes.record is not None
    votes.record.denominators[3, 0] = 0
    votes.record.numerators[3, 0] = 0
    with pytest.raises(cs.InputError, match="just the draws that were made"):
        votes.record.require_draws(np.ones(N, bool))


def test_first_cuts_the_values() -> None:
    votes = sampled(snapshots=(11,))
    np.testing.assert_array_equal(votes.first(11).values, votes.values[:11])
    assert votes.first(11).digest() == cs.sample(MODEL, MODEL.image, sigma=0.25, n0=N0, n=11, measures=ASKED).digest()


def test_kept_maps_can_be_asked_later_as_exploration() -> None:
    votes = sampled(keep_maps=True)
    again = votes.ask(*ASKED, hierarchy=TREE)
    np.testing.assert_array_equal(again.values, votes.values)
    assert cs.bound(again).claim().startswith("Exploration, not a promise")
    assert not cs.bound(votes).claim().startswith("Exploration")
    with pytest.raises(cs.InputError, match="keep_maps=True"):
        sampled().ask(measures.kept())


# -- bounds and their file ---------------------------------------------------------------------------------------


def test_bounds_are_stored_read_and_verified_with_redrawn_maps(tmp_path: Path) -> None:
    votes, path = sampled(keep_maps=True), tmp_path / "bounds.npz"
    bounds = cs.bound(votes)
    bounds.save(path)
    np.testing.assert_array_equal(cs.load_bounds(path).lower, bounds.lower)
    checked = cs.verify(path, model=MODEL, image=MODEL.image)
    assert checked.passed, checked.checks
    assert {check.name for check in checked.checks} >= {"values", "critical", "lower", "radii", "regions", "redraw"}
    assert "more than half of the model's predictions" in bounds.claim()


@pytest.mark.parametrize("broken", ["lower", "critical", "numerators", "alpha"])
def test_a_changed_file_of_bounds_fails(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "bounds.npz"
    cs.bound(sampled(keep_maps=True)).save(path)
    archive = read_archive(path, kind="bounds", version=2)
    meta, arrays = archive.meta, {name: array.copy() for name, array in archive.arrays.items()}
    if broken == "lower":
        arrays["lower"][0] += 0.01
    elif broken == "numerators":
        arrays["numerators"][0, 0] += 1 if arrays["numerators"][0, 0] < 30 else -1
    elif broken == "critical":
        meta["critical"] -= 1
    else:
        meta["settings"]["alpha"] = 0.1
    write_archive(path, kind="bounds", version=2, meta=meta, arrays=arrays)
    assert not cs.verify(path).passed


@pytest.mark.parametrize("broken", ["radii", "object left out", "margin", "kept", "reference", "label"])
def test_forged_radii_and_regions_fail_when_the_draws_are_made_again(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "bounds.npz"
    votes = sampled()
    assert votes.record is not None
    found = list(votes.measures)
    kinds = [measure.kind for measure in found]
    if broken == "object left out":
        found = [measure for measure in found if measure.name != "a 1"]
    elif broken == "margin":
        found[kinds.index("overlap")] = replace(found[kinds.index("overlap")], margin=3)
    elif broken == "kept":
        kept = found[kinds.index("kept")]
        assert kept.targets is not None
        found[kinds.index("kept")] = replace(kept, targets=np.roll(kept.targets, 1))
    elif broken == "reference":
        found[kinds.index("steady")] = replace(found[kinds.index("steady")], reference=1)
    elif broken == "label":
        found[0] = replace(found[0], label="b")
    forged = cs.bound(cs.sample(MODEL, MODEL.image, sigma=0.25, n0=N0, n=N, measures=found))
    if broken == "radii":
        forged.radii[0, 0] += 0.01
    forged.save(path)
    outcome = cs.verify(path, model=MODEL, image=MODEL.image)
    assert [check.name for check in outcome.checks if not check.passed] == ["radii" if broken == "radii" else "regions"]


def test_a_damaged_file_of_bounds_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bounds.npz"
    cs.bound(sampled()).save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(cs.InputError, match=str(path)):
        cs.load_bounds(path)
    failed = [check for check in cs.verify(path).checks if not check.passed]
    assert [check.name for check in failed] == ["file"]
    assert str(path) in failed[0].detail


@pytest.mark.parametrize("test", ["fixed", "anytime"])
def test_radii_are_those_of_the_checker(tmp_path: Path, test: Any) -> None:
    path = tmp_path / "bounds.npz"
    bounds = cs.bound(sampled(), alpha=0.5, test=test)
    assert (bounds.radii > 0).any()
    bounds.save(path)
    assert cs.verify(path).passed


def test_claims_name_the_noise_and_bounds_of_zero() -> None:
    grey = np.full((7, 9, 3), 128, np.uint8)
    grid = cs.bound(cs.sample(MODEL, grey, sigma=0.25, n=N, noise="grid", measures=ASKED), alpha=0.5).claim()
    assert "rounded to whole grey levels" in grid
    assert "table of 128 bits" in grid
    with pytest.warns(NothingCertifiable, match="plan --measures"):
        nothing = cs.bound(sampled(), alpha=1e-9).claim()
    assert nothing.startswith("Nothing is proven")
    assert "at least 0 %" not in nothing
    assert "share of the region (a): nothing is proven" in nothing


# -- along a threat ----------------------------------------------------------------------------------------------


def test_a_bound_along_a_threat_is_the_least_of_its_anchors(tmp_path: Path) -> None:
    path, image = tmp_path / "bounds.npz", picture()
    asked: dict[str, Any] = {"threat": threats.fog(0.5), "up_to": 0.6, "sigma": 0.1, "radius": 0.02, "n0": 4, "n": 40}
    votes = cs.sample(foggy(), image, measures=[measures.kept(), *map(measures.area, (0, 1, 2))], **asked)
    bounds, anchors = cs.bound(votes, alpha=0.2, radius=0.02), len(votes.anchors)
    assert anchors > 1
    critical = cs.critical_count(40, 0.75, 0.2 / len(bounds.lower))
    assert critical is not None
    each = [np.sort(votes.values[anchor::anchors], axis=0)[40 - critical] for anchor in range(anchors)]
    np.testing.assert_array_equal(bounds.lower, np.minimum.reduce(each))
    assert (bounds.lower < each[0]).any()
    assert "fog of density up to" in bounds.claim()
    bounds.save(path)
    assert cs.load_bounds(path).claim() == bounds.claim()
    checked = cs.verify(path, model=foggy(), image=image)
    assert checked.passed, checked.checks
    forged = replace(bounds, lower=each[0])
    forged.save(path)
    assert not cs.verify(path).passed


def test_a_certificate_of_votes_with_measures_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "certificate.npz"
    cs.certify(sampled(), TREE, method="segcertify", alpha=0.9).save(path)
    assert cs.verify(path).passed


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (measures.share(np.zeros((7, 9), bool), "a"), "at least one pixel"),
        (measures.share(np.ones((7, 8), bool), "a"), "the size of the image"),
        (measures.share(np.ones((7, 9)), "a"), "mask of True and False"),
        (measures.area("vehicle"), "vertices need hierarchy="),
        (measures.kept(3), "level must be in 0..0"),
        (measures.accuracy(np.full((7, 9), 255)), "truth must hold classes"),
        ("kept", "must be those of certiseg.measures"),
    ],
)
def test_bad_questions_are_one_sentence(question: Any, message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        cs.sample(MODEL, MODEL.image, sigma=0.25, n0=2, n=2, measures=[question])


def test_more_than_ten_thousand_objects_are_refused() -> None:
    dots = np.zeros((400, 400), int)
    dots[::2, ::2] = 1
    with pytest.raises(cs.InputError, match="at most 10,000"):
        resolve([measures.objects("b", least=1)], Scene(dots, TREE))


def test_values_that_were_stopped_by_looking_at_them_need_the_anytime_test() -> None:
    asked: dict[str, Any] = {"measures": [measures.kept()], "hierarchy": TREE, "stop": lambda _: True, "stop_every": 40}
    votes = cs.sample(MODEL, MODEL.image, sigma=0.2, n0=4, n=80, **asked)
    with pytest.raises(cs.InputError, match="test must be 'anytime' for votes that were stopped"):
        cs.bound(votes)
    found = cs.bound(votes, test="anytime")
    assert found.draws.n == 40
    assert found.lower[0] == np.sort(votes.values[:, 0])[::-1][(found.critical or 0) - 1]


def test_votes_without_measures_have_no_bounds() -> None:
    with pytest.raises(cs.InputError, match="votes must hold measures"):
        cs.bound(cs.sample(MODEL, MODEL.image, sigma=0.25, n0=2, n=2))
