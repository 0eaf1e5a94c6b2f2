"""The unit of work: ranges cover every draw once, parts carry their ranges, and no draw is counted twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.engines.work import Task, missing_draws, perform, split
from certiseg.images import read_image
from certiseg.runs.finish import plan_of
from certiseg.runs.folder import RunFolder
from certiseg.runs.parts import DrawRange, held_ranges, load_part, missing_ranges, save_part, still_missing
from certiseg.tally import SamplingPlan, Tally, draw, start_tally
from tests.engines.small import Images, build, hashes, manifest_of, plain_run


@given(st.integers(1, 40), st.integers(1, 200), st.integers(1, 9), st.integers(1, 300))
def test_split_covers_every_draw_once_and_cuts_between_batches(n0, n, batch, size):
    ranges = [DrawRange(0.25, "selection", 0, n0), DrawRange(0.25, "estimation", 0, n)]
    groups = split(ranges, size, batch)
    drawn = [(part.stage, index) for group in groups for part in group for index in part.draws]
    assert drawn == [("selection", i) for i in range(n0)] + [("estimation", i) for i in range(n)]
    assert all(part.first % batch == 0 for group in groups for part in group)
    assert all(sum(len(part) for part in group) <= max(size, batch) for group in groups)


@given(st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=12, max_size=12))
def test_held_and_missing_ranges_are_what_was_drawn_and_what_was_not(selection, estimation):
    tally = Tally(SamplingPlan(sigma=0.5, n0=3, n=12), key="", size=(1, 1), num_classes=2)
    tally.done["selection"][:], tally.done["estimation"][:] = selection, estimation
    for ranges, flag in ((held_ranges(tally), True), (missing_ranges(tally), False)):
        found = {(part.stage, index) for part in ranges for index in part.draws}
        assert found == {(s, int(i)) for s, done in tally.done.items() for i in np.flatnonzero(done == flag)}


def drawn(images, manifest, *ranges):
    """A tally of some draws of the first image."""
    segmenter, pixels = build(0), read_image(images[0].image)
    tally = start_tally(segmenter, pixels, plan_of(manifest, 0.1))
    for part in ranges:
        draw(segmenter, pixels, tally, part.stage, part.draws)
    return tally


def test_a_part_comes_back_as_it_was_and_says_what_it_holds(tmp_path):
    images = Images(1)
    manifest = manifest_of(images)
    tally = drawn(images, manifest, DrawRange(0.1, "selection", 1, 4), DrawRange(0.1, "estimation", 50, 90))
    path = save_part(tally, tmp_path / "image")
    again = load_part(path)
    assert again.identity == tally.identity
    for name, array in tally.arrays().items():
        assert np.array_equal(again.arrays()[name], array), name
    missing = still_missing(tally.plan, [path])
    assert [(part.stage, part.first, part.last) for part in missing] == [
        ("selection", 0, 1),
        ("selection", 4, 5),
        ("estimation", 0, 50),
        ("estimation", 90, 100),
    ]


def test_overlapping_parts_leave_the_image_out_instead_of_counting_twice(tmp_path):
    images = Images(1)
    manifest = manifest_of(images, sigmas=(0.1,))
    folder, name = RunFolder(tmp_path, manifest), images.names[0]
    folder.create()
    for first, last in ((0, 60), (40, 100)):
        tally = drawn(images, manifest, DrawRange(0.1, "estimation", first, last))
        save_part(tally, folder.partial_folder(name))
    save_part(drawn(images, manifest, DrawRange(0.1, "selection", 0, 5)), folder.partial_folder(name))
    sample = images[0]
    assert missing_draws(folder, name) == []
    answer = perform(Task(0, name, sample.image, sample.label, (), 9.0), build(0), folder)
    assert "counted once" in answer.refused
    assert not folder.rows_path(name).exists()


@pytest.mark.parametrize("damage", ["other seed", "other threads"])
def test_parts_of_another_plan_or_of_other_threads_are_refused(damage, tmp_path):
    images = Images(1)
    manifest = manifest_of(images, sigmas=(0.1,))
    tally = drawn(images, manifest, DrawRange(0.1, "selection", 0, 5))
    other = drawn(images, manifest, DrawRange(0.1, "estimation", 0, 100))
    if damage == "other threads":
        other.model["threads"] += 1
    else:
        other = drawn(images, manifest_of(images, sigmas=(0.1,), seed=7), DrawRange(0.1, "estimation", 0, 100))
    with pytest.raises(cs.InputError, match="same image, model, threads and sampling plan"):
        tally.add(load_part(save_part(other, tmp_path)))


def test_a_task_out_of_time_leaves_parts_and_the_rest_completes_to_the_same_bytes(tmp_path):
    images = Images(1)
    manifest = manifest_of(images)
    expected = plain_run(tmp_path / "plain", images, manifest)
    folder, name, sample = RunFolder(tmp_path / "slices", manifest), images.names[0], images[0]
    folder.create()
    manifest.save(folder.manifest_path)
    left, rounds = tuple(missing_draws(folder, name)), 0
    while left:
        answer = perform(Task(0, name, sample.image, sample.label, left, 0.005), build(0), folder)
        assert list(answer.left) == missing_draws(folder, name) or answer.sums is not None
        left, rounds = answer.left, rounds + 1
    assert rounds > 3
    assert answer.sums is not None
    folder.remove_parts(name)
    found = hashes(folder.path)
    assert found == {path: value for path, value in expected.items() if path != "table.parquet"}
