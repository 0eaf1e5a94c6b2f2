"""What runs where the model is gives the bits of the compiled loops, and no score map leaves the device.

There is no accelerator here: the same operations of torch run on CPU tensors, and a spy hears of every tensor that is
handed to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

import certiseg as cs
from certiseg import on_device
from certiseg.kernels import device_noise, device_scores
from certiseg.kernels.noise import REST_COUNTER
from certiseg.models.outputs import Tile
from certiseg.noise import NoiseStream
from certiseg.noise.gaussian import standard_normal
from certiseg.noise.grid import grid_noise, grid_table, grid_table_of
from certiseg.settings import SamplingSettings
from certiseg.stats.rounded import RoundedNormal
from certiseg.threats import fog
from tests.models.tiny import Labels, TinyNet, picture

SIZES = st.tuples(st.integers(1, 45), st.integers(1, 70))
STREAMS = st.builds(NoiseStream, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
DRAWS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3)


@given(STREAMS, DRAWS, SIZES)
def test_gaussian_noise_has_the_same_bits(stream: NoiseStream, draws: list[int], size: tuple[int, int]) -> None:
    shape = (*size, 3)
    found = device_noise.standard_normal((stream.key, stream.nonce), torch.tensor(draws), 3 * size[0] * size[1]).numpy()
    wanted = np.stack([standard_normal(stream, draw, shape).reshape(-1) for draw in draws])
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


def test_the_tail_has_the_same_bits_and_is_met() -> None:
    """One of four million radius words is refined by more bits."""
    stream, size = NoiseStream(12345, 678), 2_000_000
    for draw in range(6):
        words = torch.stack(device_noise._words((12345, 678), torch.tensor([[draw]]), torch.arange(size // 4)))
        if bool((words[[0, 2]] < 1 << 10).any()):
            break
    else:
        pytest.fail("no value of the tail in these draws")
    found = device_noise.standard_normal((12345, 678), torch.tensor([draw]), size)[0].numpy()
    np.testing.assert_array_equal(found, standard_normal(stream, draw, (size,)))


@given(STREAMS, DRAWS, SIZES, st.sampled_from([0.01, 0.1, 0.25, 1.0]))
def test_grid_noise_is_the_same(stream: NoiseStream, draws: list[int], size: tuple[int, int], sigma: float) -> None:
    shape, table, name = (*size, 3), grid_table(sigma), (stream.key, stream.nonce)
    found = device_noise.grid(name, torch.tensor(draws), 3 * size[0] * size[1], table.high, table.rest, table.law.least)
    wanted = np.stack([grid_noise(stream, draw, shape, table).reshape(-1) for draw in draws])
    np.testing.assert_array_equal(found.numpy(), wanted)


@given(STREAMS, st.data())
def test_grid_noise_is_decided_by_all_128_bits(stream: NoiseStream, data: st.DataObject) -> None:
    """Thresholds just below, at and above the bits of some positions, which ordinary tables hardly ever meet."""
    name, at = (stream.key, stream.nonce), torch.tensor([[7]])
    positions = torch.tensor(data.draw(st.lists(st.integers(0, 1023), min_size=1, max_size=4, unique=True)))
    parts = [torch.stack(device_noise._words(name, at, positions + k * REST_COUNTER)) for k in range(4)]
    bits = torch.stack(parts)[:, :, 0].flatten(1).T.tolist()
    whole = [sum(word << shift for word, shift in zip(b, (96, 64, 32, 0), strict=True)) for b in bits]
    near = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=len(whole), max_size=len(whole)))
    thresholds = tuple(sorted({min(max(w + d, 1), 2**128 - 1) for w, d in zip(whole, near, strict=True)}))
    table = grid_table_of(RoundedNormal(thresholds, -3))
    found = device_noise.grid(name, torch.tensor([7]), 4096, table.high, table.rest, -3)[0]
    np.testing.assert_array_equal(found.numpy(), grid_noise(stream, 7, (4096,), table))


@st.composite
def tiles(draw: Any) -> Tile:
    """Scores with and without ties, larger and smaller than the image, cut out of it."""
    source, full = (draw(st.tuples(st.integers(1, 7), st.integers(1, 9))) for _ in range(2))
    full = (full[0] * draw(st.integers(1, 4)), full[1] * draw(st.integers(1, 4)))
    start = draw(st.integers(0, full[0] - 1)), draw(st.integers(0, full[1] - 1))
    size = draw(st.integers(1, full[0] - start[0])), draw(st.integers(1, full[1] - start[1]))
    rng, classes = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(2, 40))
    kind = draw(st.sampled_from(["logits", "probabilities", "labels"]))
    if kind == "labels":
        values = torch.from_numpy(rng.integers(0, classes, (2, *source)))
    else:
        scores = rng.standard_normal((2, classes, *source)) * draw(st.sampled_from([0.1, 3.0, 80.0]))
        scores = np.round(scores) if draw(st.booleans()) else scores
        values = torch.from_numpy((np.abs(scores) if kind == "probabilities" else scores).astype(np.float32))
    return Tile(values, kind, full, size, draw(st.booleans()), start)


@settings(max_examples=150)
@given(tiles(), st.integers(2, 50), st.sampled_from([1.0, 1.335, 0.3]))
def test_labels_counts_and_posteriors_have_the_same_bits(tile: Tile, n0: int, temperature: float) -> None:
    classes = 40 if tile.kind == "labels" else int(tile.values.shape[1])
    labels = tile.labels_there()
    np.testing.assert_array_equal(labels.numpy(), tile.labels())
    unit = (2**32 - 1) // n0
    wanted, sums = np.zeros((*tile.size, classes), np.uint32), torch.zeros((*tile.size, classes), dtype=torch.int32)
    tile.add_posteriors(wanted, unit=unit, temperature=temperature)
    tile.add_posteriors_there(sums, unit=unit, temperature=temperature)
    np.testing.assert_array_equal(sums.numpy().view(np.uint32), wanted)
    counts = torch.zeros((*tile.size, classes), dtype=torch.int16)
    for of_draw in labels:
        device_scores.count_labels(of_draw, counts)
    np.testing.assert_array_equal(counts.numpy(), (labels[..., None] == torch.arange(classes)).sum(0).numpy())


def test_large_images_are_handled_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = Tile(
        torch.randn(1, 5, 6, 7, generator=torch.Generator().manual_seed(1)), "logits", (23, 31), (23, 31), False
    )
    whole = tile.labels_there()
    monkeypatch.setattr(device_scores, "_BAND", 5 * 31 * 4)
    np.testing.assert_array_equal(tile.labels_there().numpy(), whole.numpy())
    np.testing.assert_array_equal(tile.labels_there().numpy(), tile.labels())


# -- whole images ------------------------------------------------------------------------------------------------

MODELS: dict[str, Callable[[], cs.Segmenter]] = {
    "logits": lambda: cs.Segmenter(TinyNet()),
    "labels": lambda: cs.Segmenter(Labels(TinyNet()), scores="labels", num_classes=5),
    "windows": lambda: cs.Segmenter(TinyNet(), window=(16, 16), overlap=4),
}
ASKED: dict[str, dict[str, Any]] = {
    "gaussian": {"sigma": 0.2},
    "grid": {"sigma": 0.2, "noise": "grid"},
    "snapshots": {"sigma": 0.2, "snapshots": (4, 9), "batch_size": 4},
    "threat": {"sigma": 0.1, "threat": fog(scale=0.4)},
    "measures": {"sigma": 0.2, "keep_maps": True},
}


class Spy(TorchFunctionMode):
    """Hears of every tensor that is handed to the host by name: not of `to`, which also brings images to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[tuple[str, tuple[int, ...]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("cpu", "numpy", "tolist", "item", "__array__"):
            self.left.append((name, tuple(args[0].shape)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("model", MODELS)
def test_votes_are_the_same_where_the_model_is(monkeypatch: pytest.MonkeyPatch, model: str, asked: str) -> None:
    image, same = picture(), {"n0": 3, "n": 14, **ASKED[asked]}
    here = cs.sample(MODELS[model](), image, **same)
    monkeypatch.setattr(on_device, "serves", lambda device: True)
    there = cs.sample(MODELS[model](), image, **same)
    for name in ("counts", "ranking", "gap", "candidate"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    assert sorted(there.snapshots) == sorted(here.snapshots)
    for n, counts in here.snapshots.items():
        np.testing.assert_array_equal(there.snapshots[n], counts)
    if here.record is not None:
        assert there.record is not None
        assert there.record.maps == here.record.maps


@pytest.mark.parametrize("noise", ["gaussian", "grid"])
def test_only_sums_and_counts_leave_and_once(monkeypatch: pytest.MonkeyPatch, noise: str) -> None:
    from certiseg.images import read_image
    from certiseg.sampling import draw, start, votes_of

    monkeypatch.setattr(on_device, "serves", lambda device: True)
    segmenter, pixels = cs.Segmenter(TinyNet()), read_image(picture())
    partial = start(segmenter, pixels, SamplingSettings(sigma=0.2, n0=3, n=40, batch_size=4, noise=noise))
    with Spy() as spy:
        for stage, count in (("selection", 3), ("estimation", 40)):
            for first in range(0, count, 8):
                draw(segmenter, pixels, partial, stage, list(range(first, min(first + 8, count))))
        assert not any(np.prod(shape) > 1 for _, shape in spy.left)
        votes = votes_of(partial, segmenter)
    large = [(name, shape) for name, shape in spy.left if np.prod(shape) > 1]
    sums, counts = (*pixels.shape[:2], 5), (1, *pixels.shape[:2], 5)
    assert sorted(large) == sorted([("cpu", sums), ("numpy", sums), ("cpu", counts), ("numpy", counts)])
    assert (votes.counts.sum(-1) == 40).all()


def test_the_spy_hears_of_score_maps() -> None:
    with Spy() as spy:
        cs.sample(cs.Segmenter(TinyNet()), picture(), sigma=0.2, n0=1, n=2)
    assert any(name == "numpy" and len(shape) == 4 for name, shape in spy.left)


@pytest.mark.parametrize(("device", "serves"), [("cpu", False), ("mps", False), ("cuda", True), ("cuda:1", True)])
def test_where_it_serves(device: str, serves: bool) -> None:
    assert on_device.serves(torch.device(device)) is serves
