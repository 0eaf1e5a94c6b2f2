"""Threats on training images: those of certification, of random strength, on the stated share of the samples."""

import dataclasses

import numpy as np
import pytest

from certiseg.datasets.base import Sample
from certiseg.errors import InputError
from certiseg.training.batches import BatchPlan
from certiseg.training.config import TrainConfig
from certiseg.training.weather import NAMES, expose, parse_threats


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((24, 32, 3), np.float32)


def exposed(name: str, scale: float, seed: int = 0) -> np.ndarray:
    return expose(image(), [(name, scale)], np.random.default_rng(seed))


def test_text_gives_names_and_scales() -> None:
    assert parse_threats("fog:0.7,blur:3") == (("fog", 0.7), ("blur", 3.0))
    assert parse_threats("") == ()
    for text in ("fog", "fog:0", "rain:1", "blur:x"):
        with pytest.raises(InputError, match="threat must be NAME:SCALE"):
            parse_threats(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_threat_changes_the_image_and_keeps_it_in_range(name: str) -> None:
    results = [exposed(name, 1.0, seed) for seed in range(10)]
    assert all(result.dtype == np.float32 and result.shape == (24, 32, 3) for result in results)
    assert all(result.min() >= 0 and result.max() <= 1 for result in results)
    assert np.mean([np.abs(result - image()).mean() for result in results]) > 0.02
    np.testing.assert_array_equal(exposed(name, 1.0), results[0])


def test_what_each_threat_leaves() -> None:
    dark = exposed("dark", 0.7) / image()
    np.testing.assert_allclose(dark, dark[0, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(exposed("flat", 0.7).mean((0, 1)), image().mean((0, 1)), atol=1e-5)
    veil = (1 - exposed("haze", 0.7)) / (1 - image())
    np.testing.assert_allclose(veil, np.median(veil), rtol=1e-3)
    exponent = np.log(exposed("gamma", 0.7)) / np.log(image())
    np.testing.assert_allclose(exponent, np.median(exponent), rtol=1e-2)


def test_dark_draws_its_strength_from_an_exponential_law() -> None:
    strengths = [-np.log(exposed("dark", 0.7, seed)[0, 0, 0] / image()[0, 0, 0]) for seed in range(2000)]
    assert np.mean(strengths) == pytest.approx(0.7, rel=0.1)
    assert np.std(strengths) == pytest.approx(0.7, rel=0.15)


def test_plan_mixes_threats_and_sigmas_into_its_samples() -> None:
    samples = [Sample(str(k), np.full((32, 40, 3), 200, np.uint8), np.zeros((32, 40), np.uint8)) for k in range(4)]
    plain = {"batch_size": 200, "crop": (32, 40), "scale": (1.0, 1.0), "aspect": 1.0, "colour": 0.0, "noise": "mixed"}
    calm = TrainConfig(dataset="folder", root=None, out="", **plain)
    stormy = dataclasses.replace(calm, threat="dark:1", threat_share=0.4, sigma_range=(0.1, 0.5))
    before, after = (BatchPlan(config, samples)[0].images for config in (calm, stormy))
    changed = (before != after).flatten(1).any(1)
    assert changed[:100].float().mean() == pytest.approx(0.4, abs=0.15)
    sigmas = after[100:].std((1, 2, 3))
    assert sigmas.min() > 0.09
    assert sigmas.max() < 0.52
    assert sigmas.std() > 0.08
    assert BatchPlan(stormy, samples)[0].images.equal(after)
