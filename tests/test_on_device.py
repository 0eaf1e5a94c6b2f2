"""What runs where the model is gives the bits of the compiled loops, and no score map leaves the device.

There is no accelerator here: the same operations of torch run on CPU tensors, and on a device that is made up, which
hears of every tensor that is handed to the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import certiseg as cs
from certiseg import measures, on_device
from certiseg.hierarchy import flat_hierarchy
from certiseg.images import read_image
from certiseg.kernels import device_noise, device_scores
from certiseg.kernels.noise import REST_COUNTER
from certiseg.measures.questions import Scene, resolve
from certiseg.measures.record import Reader
from certiseg.models.device import move
from certiseg.models.outputs import Tile
from certiseg.noise import NoiseStream
from certiseg.noise.gaussian import standard_normal
from certiseg.noise.grid import grid_noise, grid_table, grid_table_of
from certiseg.sampling import ask, draw, start, votes_of
from certiseg.settings import SamplingSettings
from certiseg.stats.rounded import RoundedNormal
from certiseg.threats import fog
from tests.accelerator import Accelerator, there
from tests.models.tiny import NAMES, Labels, TinyNet, picture

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
    for index in range(6):
        words = torch.stack(device_noise._words((12345, 678), torch.tensor([[index]]), torch.arange(size // 4)))
        if bool((words[[0, 2]] < 1 << 10).any()):
            break
    else:
        pytest.fail("no value of the tail in these draws")
    found = device_noise.standard_normal((12345, 678), torch.tensor([index]), size)[0].numpy()
    np.testing.assert_array_equal(found, standard_normal(stream, index, (size,)))


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
    "maps": {"sigma": 0.2, "keep_maps": True},
}


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


def on_an_accelerator(segmenter: cs.Segmenter) -> cs.Segmenter:
    there(segmenter.model)
    return segmenter


QUESTIONS = (
    measures.share(np.arange(24 * 32).reshape(24, 32) % 5 < 2, ["road", "tree"]),
    measures.overlap(np.arange(24 * 32).reshape(24, 32) < 300, ["house"], margin=2),
    measures.kept(),
    measures.area(["car", "sky"]),
)


@pytest.mark.parametrize("noise", ["gaussian", "grid"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("asked", [(), QUESTIONS], ids=["votes", "measures"])
def test_only_sums_and_counts_leave_and_once(model: str, noise: Any, asked: tuple[Any, ...]) -> None:
    """On a device that refuses to meet the CPU unasked: all that leaves per draw is a few numbers."""
    pixels = read_image(picture())
    size, options = pixels.shape[:2], SamplingSettings(sigma=0.2, n0=3, n=40, batch_size=4, noise=noise)
    found = []
    for device in (Accelerator(), contextlib.nullcontext()):
        with device as spy:
            segmenter = MODELS[model]() if spy is None else on_an_accelerator(MODELS[model]())
            assert segmenter.device.type == ("cpu" if spy is None else "cuda")
            partial = start(segmenter, pixels, options)
            before = 0 if spy is None else len(spy.left)
            draw(segmenter, pixels, partial, "selection", [0, 1, 2])
            ask(partial, segmenter, asked, flat_hierarchy(NAMES))
            for first in range(0, 40, 8):
                draw(segmenter, pixels, partial, "estimation", list(range(first, first + 8)))
            if spy is not None:
                left = spy.left[before:]
                assert (left.count((*size, 5)) == 1) is bool(asked), "what is measured is settled by the sums"
                assert all(np.prod(shape) <= 4 * 8 for shape in left if shape != (*size, 5))
            found.append(votes_of(partial, segmenter))
            if spy is not None:
                large = [shape for shape in spy.left[before:] if np.prod(shape) > 4 * 8]
                assert sorted(large) == sorted([(*size, 5), (1, *size, 5)])
    away, here = found
    for name in ("counts", "ranking", "gap"):
        np.testing.assert_array_equal(getattr(away, name), getattr(here, name))
    if here.record is not None:
        assert away.record is not None
        np.testing.assert_array_equal(away.record.numerators, here.record.numerators)
        np.testing.assert_array_equal(away.record.denominators, here.record.denominators)


def test_the_accelerator_refuses_and_hears() -> None:
    with Accelerator() as device:
        away = torch.arange(6, device="cuda").reshape(2, 3)
        assert away.device.type == "cuda"
        assert (away + 1).sum().device.type == "cuda"
        with pytest.raises(TypeError, match="can't convert cuda tensor"):
            away.numpy()
        with pytest.raises(RuntimeError, match="same device"):
            away + torch.ones(3)
        assert not device.left
        assert away.cpu().numpy().sum() == 15
        assert away.to("cpu").device.type == "cpu"
        assert bool((away >= 0).all())
        assert device.left == [(2, 3), (2, 3), ()]


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12), st.integers(2, 9), st.integers(1, 3))
def test_measures_are_the_same_where_the_model_is(seed: int, height: int, width: int, classes: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    label_maps = rng.integers(0, classes, (draws, height, width))
    scene = Scene(label_maps[0], flat_hierarchy([f"class {k}" for k in range(classes)]))
    mask = rng.random((height, width)) < 0.5
    mask[0, 0] = True
    questions = [measures.share(mask, ["class 0"]), measures.free(mask, ["class 1"]), measures.kept()]
    reader = Reader(resolve([*questions, measures.overlap(mask, ["class 1"], margin=1)], scene))
    found = on_device.MeasuredThere(reader, torch.device("cpu")).read(torch.from_numpy(label_maps))
    for ours, wanted in zip(found, reader.read(label_maps), strict=True):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize(("device", "serves"), [("cpu", False), ("mps", False), ("cuda", True), ("cuda:1", True)])
def test_where_it_serves(device: str, serves: bool) -> None:
    assert on_device.serves(torch.device(device)) is serves


def test_memory_of_a_batch_is_written_again_only_after_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []

    class Event:
        def record(self, stream: str) -> None:
            heard.append(stream)

        def synchronize(self) -> None:
            heard.append("waited")

    crossing = on_device.Crossing((2, 3, 4, 5), torch.device("cpu"))
    crossing.locked = True
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    crossing.array()[:] = 7
    assert heard == []
    assert crossing.moved().shape == (2, 5, 3, 4)
    assert heard == ["stream of cpu"]
    crossing.array()
    assert heard == ["stream of cpu", "waited"]


def test_an_accelerator_gets_no_shortened_arithmetic_and_no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {
        (torch.backends.cuda.matmul, "allow_tf32"): False,
        (torch.backends.cudnn, "allow_tf32"): False,
        (torch.backends.cudnn, "deterministic"): True,
        (torch.backends.cudnn, "benchmark"): False,
    }
    before = {key: getattr(*key) for key in wanted}
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, device: self)
    try:
        for key, value in wanted.items():
            setattr(*key, not value)
        move(cs.Segmenter(TinyNet()), "cuda")
        assert {key: getattr(*key) for key in wanted} == wanted
    finally:
        for key, value in before.items():
            setattr(*key, value)
