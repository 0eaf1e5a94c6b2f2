"""Tallies: ranges of draws that add up, in any split and any order, and no draw twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certiseg as cs
from certiseg.models.synthetic import SyntheticSegmenter
from certiseg.partial_votes import FORMAT_VERSION, PartialVotes, load_partial_votes
from certiseg.sampling import draw, start, votes_of
from certiseg.settings import SamplingSettings

N0, N = 6, 23
MODEL = SyntheticSegmenter(np.random.default_rng(0).dirichlet(np.full(4, 0.5), (5, 6)))
PLAN = SamplingSettings(sigma=0.25, n0=N0, n=N, snapshots=(4, 11), batch_size=2)


def drawn(selection: list[int], estimation: list[int], plan: SamplingSettings = PLAN) -> PartialVotes:
    partial = start(MODEL, MODEL.image, plan)
    draw(MODEL, MODEL.image, partial, "selection", selection)
    draw(MODEL, MODEL.image, partial, "estimation", estimation)
    return partial


WHOLE = votes_of(drawn(list(range(N0)), list(range(N))), MODEL)


def assert_same(votes: cs.Votes) -> None:
    for name in ("candidate", "gap", "ranking", "counts"):
        np.testing.assert_array_equal(getattr(votes, name), getattr(WHOLE, name), err_msg=name)
    for k in (4, 11):
        np.testing.assert_array_equal(votes.snapshots[k], WHOLE.snapshots[k])


def test_the_whole_is_what_sample_gives() -> None:
    assert_same(cs.sample(MODEL, MODEL.image, sigma=0.25, n0=N0, n=N, snapshots=(4, 11), batch_size=2))


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 2), min_size=N0, max_size=N0),
    st.lists(st.integers(0, 2), min_size=N, max_size=N),
    st.permutations([0, 1, 2]),
    st.randoms(use_true_random=False),
)
def test_any_split_of_the_draws_added_in_any_order_gives_the_same_votes(
    of_selection: list[int], of_estimation: list[int], order: list[int], random: Any
) -> None:
    parts = []
    for worker in range(3):
        mine = [[i for i, owner in enumerate(owners) if owner == worker] for owners in (of_selection, of_estimation)]
        for draws in mine:
            random.shuffle(draws)
        parts.append(drawn(*mine))
    total = start(MODEL, MODEL.image, PLAN)
    for worker in order:
        total.add(parts[worker])
    assert_same(votes_of(total, MODEL))


def test_a_tally_survives_its_file(tmp_path: Path) -> None:
    half = drawn([0, 2, 5], [*range(9), 20])
    half.save(tmp_path / "t.npz")
    again = load_partial_votes(tmp_path / "t.npz")
    assert again.identity == half.identity
    assert again.model == half.model
    for name in ("sums", "counts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(half, name))
    for stage in ("selection", "estimation"):
        np.testing.assert_array_equal(again.done[stage], half.done[stage])
        draw(MODEL, MODEL.image, again, stage, again.missing(stage))
    assert_same(votes_of(again, MODEL))


def test_missing_draws_are_listed() -> None:
    half = drawn([0, 2], [1, 2, 22])
    assert half.missing("selection") == [1, 3, 4, 5]
    assert half.missing("estimation", upto=5) == [0, 3, 4]
    assert half.missing("estimation") == [0, *range(3, 22)]


def test_a_draw_is_never_counted_twice_and_a_refusal_changes_nothing() -> None:
    for overlapping in (drawn([0], [5]), drawn([1], [4]), drawn([0], [4])):
        half = drawn([0, 2], [3, 4])
        before = (half.sums.copy(), half.counts.copy(), {s: d.copy() for s, d in half.done.items()})
        with pytest.raises(cs.InputError, match="draws of one stage must be counted once"):
            half.add(overlapping)
        np.testing.assert_array_equal(half.sums, before[0])
        np.testing.assert_array_equal(half.counts, before[1])
        for stage, done in before[2].items():
            np.testing.assert_array_equal(half.done[stage], done)
    with pytest.raises(cs.InputError, match="must be counted once"):
        drawn([0, 0], [])
    with pytest.raises(cs.InputError, match="must be counted once"):
        draw(MODEL, MODEL.image, drawn([], [3]), "estimation", [3])


def test_tallies_of_other_images_models_or_plans_do_not_add() -> None:
    half = drawn([0], [0])
    other_plan = SamplingSettings(sigma=0.25, n0=N0, n=N, snapshots=(4, 11), batch_size=2, seed=1)
    other_model = SyntheticSegmenter(MODEL.shares[..., ::-1].copy())
    others = [
        drawn([1], [1], other_plan),
        start(MODEL, MODEL.image[::-1] * np.float32(0.5), PLAN),
        start(other_model, MODEL.image, PLAN),
    ]
    for other in others:
        with pytest.raises(cs.InputError, match="partial votes must be of the same image, model, threads and settings"):
            half.add(other)


def test_votes_need_all_selection_draws_and_exactly_the_first_estimation_draws() -> None:
    selection = list(range(N0))
    for incomplete, n in (
        (drawn(selection[1:], list(range(N))), None),
        (drawn(selection, list(range(N - 1))), None),
        (drawn(selection, [*range(5), 7]), 5),
        (drawn(selection, [0, 1, 2, 4]), 5),
    ):
        with pytest.raises(cs.InputError, match="partial votes must hold all 6 selection and exactly the first"):
            votes_of(incomplete, MODEL, n=n)
    five = votes_of(drawn(selection, list(range(5))), MODEL, n=5)
    assert (five.n, sorted(five.snapshots)) == (5, [4])
    np.testing.assert_array_equal(five.first(4).counts, WHOLE.first(4).counts)


def test_progress_reports_every_draw_once() -> None:
    seen: list[int] = []
    partial = start(MODEL, MODEL.image, PLAN)
    draw(MODEL, MODEL.image, partial, "estimation", list(range(7)), each=seen.append)
    assert seen == [2, 2, 2, 1]
    assert partial.counts.sum(dtype=int) == 7 * 30


def test_the_model_is_always_called_with_the_plans_batch_size() -> None:
    sizes: list[int] = []

    def model(images: Any) -> Any:
        sizes.append(len(images))
        return images

    cs.sample(cs.Segmenter(model, num_classes=3), MODEL.image, sigma=0.25, n0=5, n=7, batch_size=4)
    assert sizes == [4] * 6, "two of them look at the model before the first draw"


def test_the_unit_of_posteriors_fits_32_bits_for_every_n0() -> None:
    for n0 in (1, 2, 3, 10, 65_535):
        plan = SamplingSettings(sigma=1.0, n0=n0, n=1)
        assert n0 * plan.unit < 2**32
        assert plan.unit > 60_000


def test_files_that_are_no_partial_votes_are_refused(tmp_path: Path) -> None:
    from certiseg.archive import read_archive, write_archive

    drawn([0], [0]).save(tmp_path / "t.npz")
    stored = read_archive(tmp_path / "t.npz", kind="partial votes", version=FORMAT_VERSION)
    for meta, arrays in (
        ({}, stored.arrays),
        ({**stored.meta, "num_classes": 3}, stored.arrays),
        ({**stored.meta, "settings": {**stored.meta["settings"], "odd": 1}}, stored.arrays),
        ({**stored.meta, "settings": {**stored.meta["settings"], "sigma": -1}}, stored.arrays),
        (stored.meta, {k: v for k, v in stored.arrays.items() if k != "sums"}),
        (stored.meta, {**stored.arrays, "sums": stored.arrays["sums"].astype(np.float64)}),
        (stored.meta, {**stored.arrays, "counts_0": stored.arrays["counts_0"].astype(np.int64)}),
        (stored.meta, {**stored.arrays, "counts_0": stored.arrays["counts_0"] * 2}),
        (stored.meta, {**stored.arrays, "where_0": stored.arrays["where_0"][:5]}),
        ({**stored.meta, "ranges": [["estimation", 0, 1], ["estimation", 0, 1], ["selection", 0, 1]]}, stored.arrays),
        ({**stored.meta, "ranges": [["estimation", 0, 2], ["selection", 0, 1]]}, stored.arrays),
        ({**stored.meta, "ranges": [["estimation", -1, 0], ["selection", 0, 1]]}, stored.arrays),
    ):
        write_archive(tmp_path / "odd.npz", kind="partial votes", version=FORMAT_VERSION, meta=meta, arrays=arrays)
        with pytest.raises(cs.InputError):
            load_partial_votes(tmp_path / "odd.npz")
