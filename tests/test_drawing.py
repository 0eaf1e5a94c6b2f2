"""Noise and counts made beside the model, or in parts on several threads, are the same to the bit."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg import drawing
from certiseg.errors import InputError
from certiseg.kernels import threads
from certiseg.kernels.noise import CHUNK
from certiseg.kernels.scores import _labels_of_scores, interpolation, labels_of_scores
from certiseg.models.compact import Compact
from certiseg.noise import NoiseStream
from certiseg.noise.gaussian import add_noise, standard_normal
from certiseg.runs.worker import SLICE_SECONDS, _Pace
from certiseg.threats import fog
from tests.models.tiny import TinyNet, picture

STREAM = NoiseStream(17, 4)
CASES: dict[str, dict[str, Any]] = {
    "gaussian": {"sigma": 0.2},
    "batches": {"sigma": 0.2, "batch_size": 4, "snapshots": (5, 9)},
    "grid": {"sigma": 0.2, "noise": "grid"},
    "threat": {"sigma": 0.1, "threat": fog(scale=0.4)},
    "maps": {"sigma": 0.2, "keep_maps": True},
}


def echo(images: torch.Tensor) -> torch.Tensor:
    """Scores that share their memory with the image, and take their time."""
    time.sleep(0.002)
    return images


class SameMemory:
    """Scores that lie in the same memory after every call, as those of some runtimes do."""

    def __init__(self) -> None:
        self.scores: torch.Tensor | None = None

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        if self.scores is None or self.scores.shape != images.shape:
            self.scores = torch.empty_like(images)
        self.scores.copy_(images)
        time.sleep(0.002)
        return self.scores


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", [echo, SameMemory(), None], ids=["echo", "same memory", "network"])
def test_votes_do_not_depend_on_who_makes_noise_and_counts(
    monkeypatch: pytest.MonkeyPatch, model: Any, case: str
) -> None:
    made_by = set()

    def noted(batch: list[int]) -> None:
        made_by.add(threading.current_thread())

    found = []
    for free in (False, True):
        monkeypatch.setattr(drawing, "core_is_free", lambda used, free=free: free)
        monkeypatch.setattr(threads, "_cores", lambda free=free: 3 if free else 1)
        inputs = drawing._inputs

        def spied(*arguments: Any, inputs: Any = inputs, **options: Any) -> Any:
            make = inputs(*arguments, **options)
            return lambda batch: (noted(batch), make(batch))[1]

        with monkeypatch.context() as patch:
            patch.setattr(drawing, "_inputs", spied)
            segmenter = cs.Segmenter(model) if model else cs.Segmenter(TinyNet())
            found.append(cs.sample(segmenter, picture(), n0=4, n=37, **CASES[case]))
        assert (made_by == {threading.main_thread()}) is not free
    here, beside = found
    for name in ("counts", "ranking", "gap"):
        np.testing.assert_array_equal(getattr(here, name), getattr(beside, name))
    if here.record is not None:
        assert beside.record is not None
        assert beside.record.maps == here.record.maps


def test_noise_is_made_ahead_only_of_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "core_is_free", lambda used: True)
    buffers = []
    inputs = drawing._inputs

    def spied(*arguments: Any, **options: Any) -> Any:
        buffers.append(options["buffers"])
        return inputs(*arguments, **options)

    monkeypatch.setattr(drawing, "_inputs", spied)
    cs.sample(cs.Segmenter(TinyNet()), picture(), sigma=0.2, n0=1, n=1)
    monkeypatch.setattr(drawing, "_MOST_BESIDE", 100)
    cs.sample(cs.Segmenter(TinyNet()), picture(), sigma=0.2, n0=1, n=1)
    assert buffers == [2, 2, 1, 1]


def test_items_are_made_one_ahead_in_their_order() -> None:
    made = []

    def items() -> Any:
        for k in range(5):
            made.append(k)
            yield k

    for item in threads.ahead(items()):
        time.sleep(0.02)
        assert made == list(range(min(item + 2, 5)))


def test_errors_of_another_thread_are_raised_here() -> None:
    def fails(*arguments: Any) -> Any:
        raise InputError("sigma must be there")

    with pytest.raises(InputError, match="sigma must be there"):
        list(threads.ahead(map(fails, [1, 2])))
    with pytest.raises(InputError, match="sigma must be there"), threads.aside() as run:
        run(fails)


def test_a_core_is_free_when_there_are_more_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    assert threads.core_is_free(1)
    assert not threads.core_is_free(2)


@given(st.integers(1, 9 * CHUNK), st.sampled_from([0.05, 0.25, 1.0]), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_noise_added_in_one_pass_has_the_bits_of_two(size: int, sigma: float, parts: int, draw: int) -> None:
    image = np.random.default_rng(size).random(size, np.float32)
    wanted = standard_normal(STREAM, draw, (size,)) * np.float32(sigma) + image
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_cores", lambda: parts)
        patch.setattr(threads, "_PIXELS_PER_THREAD", 1)
        out = np.empty_like(image)
        add_noise(STREAM, draw, image, sigma, out)
        np.testing.assert_array_equal(out.view(np.uint32), wanted.view(np.uint32))
        add_noise(STREAM, draw, image, sigma, image)
    np.testing.assert_array_equal(image, wanted)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(1, 5),
    st.booleans(),
)
def test_labels_in_parts_are_those_of_the_whole(
    source: tuple[int, int], full: tuple[int, int], parts: int, align: bool
) -> None:
    scores = np.random.default_rng(parts).standard_normal((*source, 6)).astype(np.float32)
    places = interpolation(source, full, full, align_corners=align)
    whole, found = np.empty(full, np.uint8), np.empty(full, np.uint8)
    _labels_of_scores(0, full[0], scores, places, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_cores", lambda: parts)
        patch.setattr(threads, "_PIXELS_PER_THREAD", 1)
        labels_of_scores(scores, places, found)
    np.testing.assert_array_equal(found, whole)


class Reentrant:
    """A model that several threads may ask at once; it notes who did, and on how many threads."""

    reentrant = True

    def __init__(self) -> None:
        self.network = TinyNet().eval()
        self.asked: list[tuple[threading.Thread, int]] = []

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        self.asked.append((threading.current_thread(), torch.get_num_threads()))
        time.sleep(0.003)
        return self.network(images)


@pytest.fixture
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("case", CASES)
def test_votes_do_not_depend_on_lanes(case: str) -> None:
    model = Reentrant()
    lanes, one = (
        cs.sample(cs.Segmenter(asked), picture(), n0=4, n=37, seed=3, threads=threads, **CASES[case])
        for asked, threads in ((model, None), (model.network, 1))
    )
    assert len({thread for thread, _ in model.asked}) > 1, "several threads ask"
    assert {threads for _, threads in model.asked} == {1}, "each with its share"
    assert lanes.provenance["threads"] == 1
    for name in ("counts", "ranking", "gap"):
        np.testing.assert_array_equal(getattr(lanes, name), getattr(one, name))
    assert torch.get_num_threads() == 2
    if one.record is not None:
        assert lanes.record is not None
        assert lanes.record.maps == one.record.maps


@pytest.mark.usefixtures("two_threads")
def test_lanes_need_a_model_that_allows_them_and_draws_enough() -> None:
    for model, options, expected in (
        (Reentrant(), {"n": 40}, 1),
        (Reentrant(), {"n": 40, "threads": 2}, 2),
        (Reentrant(), {"n": 10}, 2),
        (TinyNet(), {"n": 40}, 2),
    ):
        votes = cs.sample(cs.Segmenter(model), picture(), sigma=0.2, n0=2, **options)
        assert votes.provenance["threads"] == expected
    for wrong in (0, -1, 1.5, True, 10**9):
        with pytest.raises(InputError, match="threads must be a whole number in 1"):
            cs.sample(cs.Segmenter(TinyNet()), picture(), sigma=0.2, n0=2, n=10, threads=wrong)  # type: ignore[arg-type]


@pytest.mark.usefixtures("two_threads")
def test_our_networks_are_asked_in_lanes_and_votes_do_not_depend_on_them() -> None:
    model = cs.load_model("compact")
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    lanes, one = (cs.sample(model, image, sigma=0.2, n0=4, n=40, seed=3, threads=threads) for threads in (None, 1))
    assert drawing.lanes_of(model, image.size * 4) == 2
    with torch.autocast("cpu", torch.bfloat16):
        assert drawing.lanes_of(model, image.size * 4) == 1, "other threads would not know of it"
    assert lanes.provenance["threads"] == 1
    for name in ("counts", "ranking", "gap"):
        np.testing.assert_array_equal(getattr(lanes, name), getattr(one, name))


def test_a_module_is_asked_in_lanes_only_if_it_says_so_itself_and_has_no_hooks() -> None:
    class Derived(Compact):
        """Could keep anything between calls."""

    network = Compact(4)
    assert cs.Segmenter(network).reentrant
    assert not cs.Segmenter(Derived(4)).reentrant
    assert not cs.Segmenter(torch.nn.Sequential(network)).reentrant
    network.head.register_forward_hook(lambda *_: None)
    assert not cs.Segmenter(network).reentrant
    said = TinyNet()
    said.reentrant = True  # type: ignore[assignment]
    assert cs.Segmenter(said).reentrant


@pytest.mark.usefixtures("two_threads")
def test_what_goes_wrong_in_a_lane_ends_all_of_them() -> None:
    model, numbers, calls = Reentrant(), itertools.count(1), []

    def fails(images: torch.Tensor) -> torch.Tensor:
        number = next(numbers)  # its own, whoever asks beside it
        calls.append(number)
        return model(images) * (float("nan") if number == 9 else 1)

    fails.reentrant = True  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"finite scores.*\((selection|estimation) draw \d+\)"):
        cs.sample(cs.Segmenter(fails), picture(), sigma=0.2, n0=4, n=100)
    assert len(calls) < 60, "the other lane ends after its batch, far from the 106 calls of all draws"


@pytest.mark.usefixtures("two_threads")
def test_more_threads_than_torch_has_are_one_lane(tmp_path: Any) -> None:
    options: dict[str, Any] = {"sigma": 0.2, "n0": 4, "n": 40, "seed": 1, "checkpoint": tmp_path / "draws.npz"}
    votes = cs.sample(cs.Segmenter(Reentrant()), picture(), threads=4, **options)
    assert votes.provenance["threads"] == 4


@pytest.mark.parametrize(("torch_has", "batch", "draws", "lanes", "threads"), [
    (2, 1, 100, 2, 1), (12, 1, 1000, 6, 2), (64, 1, 1000, 8, 8), (7, 1, 1000, 7, 1), (8, 1, 20, 2, 4),
    (8, 1 << 22, 1000, 4, 2), (8, 1 << 25, 1000, 1, 8), (3, 1 << 23, 1000, 1, 2), (64, 1, None, 8, 8),
])  # fmt: skip
def test_lanes_keep_their_limits(
    monkeypatch: pytest.MonkeyPatch, torch_has: int, batch: int, draws: int | None, lanes: int, threads: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: torch_has)
    segmenter = cs.Segmenter(Reentrant())
    if draws is not None:
        assert drawing.threads_of_a_call(segmenter, batch, draws) == threads
    assert drawing.lanes_of(segmenter, batch, draws, threads=threads) == lanes
    assert drawing.lanes_of(segmenter, batch, draws, threads=1) <= 8


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_what_lanes_find_comes_in_order_and_little_is_read_ahead(lanes: int) -> None:
    read: list[int] = []

    def items() -> Any:
        for item in range(20):
            read.append(item)
            yield item

    def work(item: int) -> tuple[int, bool]:
        time.sleep(0.004 * (item % 3 == 0))
        return item, getattr(threads._here, "in_lane", False)

    taken = 0
    for place, (item, in_lane) in enumerate(threads.in_order(work, items(), lanes)):
        taken += 1
        assert (item, in_lane) == (place, True)
        assert len(read) <= taken + 2 * lanes
    assert taken == 20


def test_who_stops_asking_stops_the_lanes_and_errors_come_in_their_turn() -> None:
    done: list[int] = []

    def work(item: int) -> int:
        if item == 5:
            raise InputError("five")
        done.append(item)
        return item

    found = threads.in_order(work, range(1000), 2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    found.close()
    assert len(done) < 10
    found, got = threads.in_order(work, range(1000), 2), []
    with pytest.raises(InputError, match="five"):
        got.extend(found)
    assert got == [0, 1, 2, 3, 4]
    assert len(done) < 30


@pytest.mark.parametrize("lanes", [2, 3])
def test_what_cannot_be_read_comes_after_what_was_read_before_it(lanes: int) -> None:
    def items() -> Any:
        yield from range(4)
        raise InputError("four")

    got: list[int] = []
    with pytest.raises(InputError, match="four"):
        got.extend(threads.in_order(lambda item: item, items(), lanes))
    assert got == [0, 1, 2, 3]


def test_slices_of_a_run_give_every_lane_a_batch() -> None:
    pace = _Pace(60, 2, lambda _: None)
    assert pace._slice(0.0, 3) == 6, "the first one measures"
    pace.draws = 6
    assert pace._slice(600.0, 3) == 6, "however slow a draw is"
    assert pace._slice(0.6, 3) == 6 * int(SLICE_SECONDS / 0.6)
