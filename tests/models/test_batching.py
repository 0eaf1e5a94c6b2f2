"""The batch size by measurement: the fastest per draw, within the memory."""

from __future__ import annotations

import pytest
import torch

import certiseg as cs
from certiseg.models import batching

GIB = 2**30


def segmenter() -> cs.Segmenter:
    return cs.Segmenter(torch.nn.Conv2d(3, 4, 1))


def choose(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], *, of_a_draw: int, memory: int, at_once: int = 1
) -> int:
    """The choice where a batch takes these seconds, and as much memory as `of_a_draw` for each of its draws."""
    tried: list[int] = []

    def least_seconds(_: cs.Segmenter, images: torch.Tensor) -> float:
        assert images.shape[1:] == (3, 8, 8)
        tried.append(len(images))
        return seconds[len(images)]

    monkeypatch.setattr(batching, "least_seconds", least_seconds)
    monkeypatch.setattr(batching, "_memory", lambda _, *, peak: GIB + (of_a_draw * tried[-1] if peak else 0))
    return batching.measured_batch_size(segmenter(), (8, 8), memory=memory, most=8, at_once=at_once)


def test_the_fastest_batch_per_draw_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose(monkeypatch, {1: 1.0, 2: 1.5, 4: 2.4, 8: 5.0}, of_a_draw=0, memory=4 * GIB) == 4
    assert choose(monkeypatch, {1: 1.0, 2: 1.99}, of_a_draw=0, memory=4 * GIB) == 1
    assert choose(monkeypatch, {1: 8.0, 2: 8.0, 4: 8.0, 8: 8.0}, of_a_draw=0, memory=4 * GIB) == 8


def test_a_batch_that_would_not_fit_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    free = dict.fromkeys((1, 2, 4, 8), 1.0)
    assert choose(monkeypatch, free, of_a_draw=GIB // 2, memory=4 * GIB) == 4
    assert choose(monkeypatch, free, of_a_draw=GIB, memory=4 * GIB - 1) == 2
    assert choose(monkeypatch, free, of_a_draw=5 * GIB, memory=4 * GIB) == 1
    assert choose(monkeypatch, free, of_a_draw=GIB // 2, memory=4 * GIB, at_once=2) == 2


def test_a_real_network_is_measured_and_memory_is_seen() -> None:
    assert batching.measured_batch_size(segmenter(), (16, 16), memory=0) == 1
    before = batching._memory(torch.device("cpu"), peak=False)
    batching._forget_peak(torch.device("cpu"))
    block = torch.zeros(100 * 2**20, dtype=torch.uint8) + 1
    assert batching._memory(torch.device("cpu"), peak=True) > before + 90 * 2**20
    del block
