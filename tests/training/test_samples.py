"""Windows, light and noise: every sample is a function of the seed and its position."""

from typing import Any

import numpy as np
import pytest

from certiseg.datasets.base import Sample
from certiseg.hierarchy import VOID
from certiseg.training.augment import Augmentation, add_noise, cut_window, paste_classes, shift_colours, take_colours
from certiseg.training.batches import BatchPlan, load_batches
from certiseg.training.config import TrainConfig


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def config(**changes: Any) -> TrainConfig:
    values = {"crop": (32, 40), "colour": 0.0, "batch_size": 4, "seed": 3, **changes}
    return TrainConfig(dataset="folder", root=None, out="unused", **values)


def plan(noise: str = "alternate", share: float = 0.5, **place: int) -> BatchPlan:
    samples = [
        Sample(str(index), np.full((40, 50, 3), index * 20, np.uint8), np.full((40, 50), index, np.uint8))
        for index in range(6)
    ]
    return BatchPlan(config(noise=noise, noisy_share=share), samples, **place)


def test_label_follows_its_image_through_window_and_flip() -> None:
    label = np.arange(40 * 50, dtype=np.uint32).reshape(40, 50) // 250
    image = np.repeat((label * 10).astype(np.uint8)[..., None], 3, -1)
    for seed in range(20):
        pixels, ids = Augmentation((32, 40), (0.5, 2.0), colour=0)(image, label.astype(np.uint8), rng(seed))
        assert pixels.shape == (32, 40, 3)
        covered = ids != 255
        assert covered.mean() > 0.2
        # Bilinear against nearest differ by at most one step of the ramp, at its edges.
        assert np.abs(pixels[..., 0] * 255 - ids * 10.0)[covered].max() <= 10


def test_outside_of_the_image_is_void() -> None:
    image, label = np.zeros((40, 50, 3), np.uint8), np.zeros((40, 50), np.uint8)
    _, ids = cut_window(image, label, Augmentation((80, 100), (1.0, 1.0), aspect=1.0), rng())
    assert (ids == 0).sum() == 40 * 50
    assert (ids == 255).sum() == 80 * 100 - 40 * 50


def test_colour_stays_in_range_and_strength_zero_changes_nothing() -> None:
    pixels = rng().integers(0, 256, (20, 20, 3)).astype(np.uint8)
    np.testing.assert_allclose(shift_colours(pixels, rng(), strength=0), pixels / 255, atol=1e-6)
    changed = shift_colours(pixels, rng(), strength=2)
    assert changed.dtype == np.float32
    assert 0 <= changed.min() <= changed.max() <= 1
    assert np.abs(changed - pixels / 255).mean() > 0.02


def test_noise_has_the_stated_sigma_and_is_not_clipped() -> None:
    noisy = add_noise(np.ones((200, 200, 3), np.float32), rng(), sigma=0.25)
    assert noisy.std() == pytest.approx(0.25, rel=0.02)
    assert noisy.max() > 1.5
    assert noisy.dtype == np.float32


def test_clean_and_noisy_batches_alternate() -> None:
    sigmas = [{plan().sigma_of(step, slot) for slot in range(4)} for step in range(4)]
    assert sigmas == [{0.0}, {0.25}, {0.0}, {0.25}]
    mixed = plan("mixed", 0.75)
    assert [mixed.sigma_of(1, slot) for slot in range(4)] == [0.0, 0.25, 0.25, 0.25]


def test_every_lap_holds_every_sample_once() -> None:
    laps = np.array([plan().index_of(position) for position in range(18)]).reshape(3, 6)
    assert all(sorted(lap) == list(range(6)) for lap in laps)
    assert not (laps[0] == laps[1]).all()


def test_batches_depend_on_the_step_alone_and_processes_share_one_order() -> None:
    for workers in (0, 2):
        for step, batch in zip(range(2, 5), load_batches(plan(), 2, 5, workers=workers), strict=True):
            again = plan()[step]
            assert batch.images.equal(again.images)
            assert batch.labels.equal(again.labels)
    seen = [int(label.unique()[0]) for rank in range(2) for label in plan(rank=rank, world=2)[0].labels]
    one_process = [plan().index_of(position) for position in range(8)]
    assert seen == one_process


def test_even_draws_every_recording_equally_often_and_every_image_of_it_in_turn() -> None:
    names = ["a_1", "a_2", "a_3", "a_4", "b_1", "b_2"]
    samples = [Sample(name, np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), np.uint8)) for name in names]
    even = BatchPlan(config(even=True), samples)
    drawn = [even.index_of(position) for position in range(16)]
    assert sorted(drawn) == [0, 0, 1, 1, 2, 2, 3, 3, *[4] * 4, *[5] * 4]
    for lap in (slice(0, 8), slice(8, 16)):
        assert sorted(drawn[lap][::2]) == [0, 1, 2, 3]


def test_half_of_the_classes_of_another_image_are_pasted_with_their_pixels() -> None:
    label = np.repeat(np.arange(4, dtype=np.uint8), 8)[None].repeat(32, axis=0)
    label[:4] = VOID
    other, image = np.full((32, 32, 3), 0.75, np.float32), np.full((32, 32, 3), 0.25, np.float32)
    mixed, labels = paste_classes(image, np.full((32, 32), 9, np.uint8), other, label, np.random.default_rng(0))
    pasted = labels != 9
    assert len(np.unique(labels[pasted])) == 2
    np.testing.assert_array_equal(pasted, np.isin(label, np.unique(labels[pasted])))
    np.testing.assert_array_equal(mixed[..., 0], np.where(pasted, np.float32(0.75), np.float32(0.25)))


def test_pasting_is_a_share_of_the_samples_and_depends_on_the_position_alone() -> None:
    samples = [Sample(str(k), np.full((32, 40, 3), k, np.uint8), np.full((32, 40), k, np.uint8)) for k in range(6)]
    still = {"scale": (1.0, 1.0), "aspect": 1.0, "batch_size": 40, "sigma": 0.0}
    mixed, plain = (BatchPlan(config(**still, paste=share), samples) for share in (0.5, 0.0))
    changed = (mixed[0].labels != plain[0].labels).flatten(1).any(1).float().mean()
    assert 0.2 < changed < 0.6  # half of them, less those that were given their own class
    assert mixed[1].images.equal(BatchPlan(mixed.config, samples)[1].images)


def test_an_image_takes_the_colours_of_another_and_keeps_its_order() -> None:
    day = rng(1).integers(100, 256, (40, 50, 3)).astype(np.uint8)
    dusk = (rng(2).beta(2, 5, (30, 20, 3)) * (90, 60, 40)).astype(np.uint8)
    taken = take_colours(day, dusk, share=1.0)
    for channel in range(3):
        wanted = np.quantile(dusk[..., channel], (0.1, 0.5, 0.9))
        np.testing.assert_allclose(np.quantile(taken[..., channel], (0.1, 0.5, 0.9)), wanted, atol=2)
        table = [taken[..., channel][day[..., channel] == value].max() for value in range(100, 256)]
        assert (np.diff(table) >= 0).all()
    np.testing.assert_array_equal(take_colours(day, dusk, share=0.0), day)
    between = take_colours(day, dusk, share=0.5)
    np.testing.assert_allclose(between, (day.astype(float) + taken) / 2, atol=1)


def test_recolouring_is_a_share_of_the_samples_and_depends_on_the_position_alone() -> None:
    samples = [
        Sample(str(index), np.full((40, 50, 3), index * 20, np.uint8), np.full((40, 50), index, np.uint8))
        for index in range(6)
    ]
    plain, changed = (BatchPlan(config(sigma=0.0, recolour=share), samples) for share in (0.0, 0.5))
    differing = 0
    for step in range(60):
        before, after = plain[step], changed[step]
        np.testing.assert_array_equal(before.labels, after.labels)
        np.testing.assert_array_equal(after.images, changed[step].images)
        differing += int((before.images != after.images).any(dim=3).any(dim=2).any(dim=1).sum())
    # Half of 240 samples; one in six takes its own colours, and a way too short rounds to nothing.
    assert 70 < differing < 125
