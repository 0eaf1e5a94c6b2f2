"""The unit of work: ranges cover every draw once, parts carry their ranges, and no draw is counted twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.images import read_image
from certiseg.partial_votes import DrawRange, PartialVotes, load_partial_votes
from certiseg.runs.folder import RunFolder
from certiseg.runs.task import Task, split
from certiseg.runs.worker import perform
from certiseg.sampling import draw, start
from certiseg.settings import SamplingSettings
from tests.runs.small import Images, build, hashes, manifest_of, plain_run


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
    partial = PartialVotes(SamplingSettings(sigma=0.5, n0=3, n=12), key="", size=(1, 1), num_classes=2)
    partial.done["selection"][:], partial.done["estimation"][:] = selection, estimation
    for ranges, flag in ((partial.held_ranges(), True), (partial.missing_ranges(), False)):
        found = {(part.stage, index) for part in ranges for index in part.draws}
        assert found == {(s, int(i)) for s, done in partial.done.items() for i in np.flatnonzero(done == flag)}


def missing_draws(folder, name):
    """What is still to be drawn of an image."""
    return [part for sigma in folder.manifest.sigmas for part in folder.missing_draws(name, sigma)]


def drawn(images, manifest, *ranges):
    """A partial of some draws of the first image."""
    segmenter, pixels = build(0), read_image(images[0].image)
    partial = start(segmenter, pixels, manifest.sampling(0.1))
    for part in ranges:
        draw(segmenter, pixels, partial, part.stage, part.draws)
    return partial


def test_a_part_comes_back_as_it_was_and_says_what_it_holds(tmp_path):
    images = Images(1)
    manifest = manifest_of(images)
    partial = drawn(images, manifest, DrawRange(0.1, "selection", 1, 4), DrawRange(0.1, "estimation", 50, 90))
    folder, name = RunFolder(tmp_path, manifest), images.names[0]
    folder.create()
    again = load_partial_votes(folder.save_part(name, partial))
    assert again.identity == partial.identity
    for array in ("sums", "counts"):
        assert np.array_equal(getattr(again, array), getattr(partial, array)), array
    assert all(np.array_equal(again.done[stage], done) for stage, done in partial.done.items())
    missing = folder.missing_draws(name, 0.1)
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
        partial = drawn(images, manifest, DrawRange(0.1, "estimation", first, last))
        folder.save_part(name, partial)
    folder.save_part(name, drawn(images, manifest, DrawRange(0.1, "selection", 0, 5)))
    sample = images[0]
    assert missing_draws(folder, name) == []
    answer = perform(Task(0, name, sample.image, sample.label, (), 9.0), build(0), folder)
    assert "counted once" in answer.refused
    assert not folder.rows_path(name).exists()


@pytest.mark.parametrize("damage", ["other seed", "other threads"])
def test_parts_of_another_plan_or_of_other_threads_are_refused(damage, tmp_path):
    images = Images(1)
    manifest = manifest_of(images, sigmas=(0.1,))
    partial = drawn(images, manifest, DrawRange(0.1, "selection", 0, 5))
    other = drawn(images, manifest, DrawRange(0.1, "estimation", 0, 100))
    if damage == "other threads":
        other.model["threads"] += 1
    else:
        other = drawn(images, manifest_of(images, sigmas=(0.1,), seed=7), DrawRange(0.1, "estimation", 0, 100))
    other.save(tmp_path / "other.npz")
    with pytest.raises(cs.InputError, match="same image, model, threads and settings"):
        partial.add(load_partial_votes(tmp_path / "other.npz"))


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
