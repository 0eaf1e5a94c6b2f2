"""Noise and counts made beside the model, or in parts on several threads, are the same to the bit."""

from __future__ import annotations

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
from certiseg.noise import NoiseStream
from certiseg.noise.gaussian import add_noise, standard_normal
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
