"""Grid noise: the stated function of the counter, its law, and its promise against brute force on a tiny image."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import certiseg as cs
from certiseg.kernels.noise import CHUNK, REST_COUNTER
from certiseg.models.segmenter import as_segmenter
from certiseg.noise import NoiseStream, noise_stream, perturbation
from certiseg.noise.gaussian import standard_normal
from certiseg.noise.grid import grid_distance, grid_noise, grid_table, grid_table_of, whole_grey_levels
from certiseg.stats.radius import radius
from certiseg.stats.rounded import BITS, RoundedNormal, rounded_normal

from .test_noise import IMAGE, plain_philox

STREAM = NoiseStream(key=0x0123456789ABCDEF, nonce=0xFEDCBA9876543210)


def random_bits(position: int, draw: int) -> list[int]:
    """The 128 bits of the four values of a counter."""
    words = [
        plain_philox((position + k * REST_COUNTER, draw, 0x76543210, 0xFEDCBA98), (0x89ABCDEF, 0x01234567))
        for k in range(4)
    ]
    return [sum(words[k][w] << (96 - 32 * k) for k in range(4)) for w in range(4)]


def place_of(position: int, word: int) -> int:
    return (position // CHUNK) * 4 * CHUNK + word * CHUNK + position % CHUNK


# -- the numbers -------------------------------------------------------------------------------------------------


def test_every_value_counts_the_thresholds_that_its_128_bits_reach() -> None:
    table = grid_table(0.25)
    drawn = grid_noise(STREAM, 54_321, (2 * 4 * CHUNK,), table)
    for position in (*range(0, 2 * CHUNK, 397), CHUNK - 1, CHUNK):
        for word, bits in enumerate(random_bits(position, 54_321)):
            reached = sum(bits >= threshold for threshold in table.law.thresholds)
            assert drawn[place_of(position, word)] == table.law.least + reached


@pytest.mark.parametrize("bit", [0, 31, 32, 63, 64, 95], ids=lambda bit: f"bit {bit}")
def test_thresholds_that_begin_like_a_word_are_decided_by_the_other_bits(bit: int) -> None:
    position, word = 5, 2
    bits = random_bits(position, 7)[word]
    start = bits >> 96 << 96
    near = sorted({bits, max(bits - (1 << bit), start), min(bits + (1 << bit), start + (1 << 96) - 1), start})
    law = RoundedNormal((1 << 60, *near, (1 << BITS) - 1), least=-3)
    drawn = grid_noise(STREAM, 7, (4 * CHUNK,), grid_table_of(law))
    assert drawn[place_of(position, word)] == -3 + sum(bits >= threshold for threshold in law.thresholds)


@pytest.mark.parametrize("sigma", [0.01, 0.25])
def test_values_follow_the_exact_probabilities(sigma: float) -> None:
    stream = noise_stream(seed=2, image_key=IMAGE, stage="estimation")
    values = np.concatenate([grid_noise(stream, draw, (200, 300, 3), grid_table(sigma)).ravel() for draw in range(5)])
    reach = int(255 * sigma * 3)
    inner = np.arange(-reach, reach + 1)
    s = 255 * sigma
    chances = np.concatenate(
        ([stats.norm.cdf((-reach - 0.5) / s)], np.diff(stats.norm.cdf((np.arange(-reach, reach + 2) - 0.5) / s)))
    )
    chances = np.append(chances, 1 - chances.sum())
    counted = [(values < -reach).sum(), *((values == value).sum() for value in inner), (values > reach).sum()]
    assert stats.chisquare(counted, chances * values.size).pvalue > 0.001


def test_draws_stages_and_positions_are_uncorrelated() -> None:
    rows = np.stack(
        [
            grid_noise(noise_stream(seed=seed, image_key=IMAGE, stage=stage), draw, (30_000,), grid_table(0.25))
            for seed in (0, 1)
            for stage in ("selection", "estimation")
            for draw in (0, 1, 2)
        ]
    )
    correlation = np.corrcoef(rows.astype(np.float64))
    np.fill_diagonal(correlation, 0)
    assert abs(correlation).max() < stats.norm.isf(0.0005 / 66) / np.sqrt(30_000)
    lagged = np.corrcoef(rows[0, :-CHUNK].astype(float), rows[0, CHUNK:].astype(float))[0, 1]
    assert abs(lagged) < stats.norm.isf(0.0005) / np.sqrt(29_000)


def test_sizes_beyond_the_counter_and_the_table_are_refused() -> None:
    for draw, shape in ((-1, (3,)), (2**32, (3,)), (0, (2**33,))):
        with pytest.raises(cs.InputError, match="draw and shape must fit"):
            grid_noise(STREAM, draw, shape, grid_table(0.25))
    with pytest.raises(cs.InputError, match="sigma must be at most 4"):
        grid_table(4.5)


# -- images ------------------------------------------------------------------------------------------------------


def test_the_model_sees_whole_grey_levels_only() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (7, 9, 3)).astype(np.float32) / np.float32(255)
    noisy = np.empty_like(pixels)
    stream = noise_stream(seed=0, image_key=IMAGE, stage="estimation")
    perturbation(pixels, sigma=0.25, noise="grid")(stream, 3, noisy)
    levels = np.rint(noisy.astype(np.float64) * 255).astype(np.int32)
    np.testing.assert_array_equal(levels.astype(np.float32) / np.float32(255), noisy)
    added = grid_noise(stream, 3, pixels.shape, grid_table(0.25))
    np.testing.assert_array_equal(levels - whole_grey_levels(pixels), added)


def test_gaussian_noise_is_what_it_was() -> None:
    pixels = np.random.default_rng(0).random((5, 6, 3)).astype(np.float32)
    noisy = np.empty_like(pixels)
    stream = noise_stream(seed=0, image_key=IMAGE, stage="selection")
    perturbation(pixels, sigma=0.25, noise="gaussian")(stream, 1, noisy)
    expected = standard_normal(stream, 1, pixels.shape) * np.float32(0.25) + pixels
    np.testing.assert_array_equal(noisy, expected)


def test_every_8_bit_value_is_recognised_and_its_neighbour_refused() -> None:
    every = np.arange(256, dtype=np.float32).reshape(16, 16, 1).repeat(3, axis=2) / np.float32(255)
    assert whole_grey_levels(every)[..., 0].ravel().tolist() == list(range(256))
    every[3, 4, 1] = np.nextafter(every[3, 4, 1], np.float32(1))
    with pytest.raises(cs.InputError, match="image must be 8-bit"):
        whole_grey_levels(every)


# -- the promise, by brute force ---------------------------------------------------------------------------------

SIGMA, TAU = 0.012, 0.75
"""255 sigma is 3.06 grey levels, and R 2.06 of them."""
FIRST, SIDE = 88, 25
"""One pixel: its three values run over all combinations of so many grey levels."""


def half_space(levels: np.ndarray) -> np.ndarray:
    return levels @ np.array([2, -1, 2]) <= 300


def odd_shapes(levels: np.ndarray) -> np.ndarray:
    """As jumpy as rounding could make a model: a ball with holes where a hash of the values says so."""
    mixed = (levels.astype(np.int64) @ np.array([73_856_093, 19_349_663, 83_492_791])) % 11
    return (((levels - 100) ** 2).sum(axis=-1) < 150) & (mixed != 0)


def exact_shares(inside: Any) -> np.ndarray:
    """(SIDE, SIDE, SIDE): P(inside at image + noise), summed over every noise up to eight deviations."""
    law, reach = rounded_normal(255 * Fraction(SIGMA)), int(8 * 255 * SIGMA)
    chances = np.array([float(law.probability(value)) for value in range(-reach, reach + 1)])
    levels = np.moveaxis(np.indices((SIDE + 2 * reach,) * 3), 0, -1) + FIRST - reach
    shares = inside(levels).astype(np.float64)
    for axis in range(3):
        shares = np.apply_along_axis(np.convolve, axis, shares, chances, mode="valid")
    return shares


@pytest.mark.parametrize("inside", [half_space, odd_shapes])
def test_shares_above_tau_stay_above_one_half_within_the_radius(inside: Any) -> None:
    shares, reach = exact_shares(inside), 255 * radius(SIGMA, TAU)
    steps = [step for step in itertools.product(range(-3, 4), repeat=3) if np.linalg.norm(step) <= reach]
    assert len(steps) == 33, "R must reach beyond the nearest grey levels"
    padded = np.pad(shares, 3, constant_values=1.0)
    moved = [padded[3 + i : 3 + i + SIDE, 3 + j : 3 + j + SIDE, 3 + k : 3 + k + SIDE] for i, j, k in steps]
    certified = shares > TAU
    lowest = np.min(moved, axis=0)[certified].min()
    assert 100 < certified.sum() < certified.size
    assert lowest > 0.5
    if inside is half_space:
        assert lowest < 0.57, "a half space comes close to the bound, or R is smaller than it could be"


def test_beyond_the_radius_a_half_space_breaks() -> None:
    shares = exact_shares(half_space)
    assert 255 * radius(SIGMA, TAU) < 3
    before = np.argwhere((shares > TAU) & (np.roll(shares, (-2, 1, -2), (0, 1, 2)) < 0.5))
    inner = (before[:, [0, 2]] < SIDE - 2).all(axis=1) & (before[:, 1] > 0)
    assert inner.any(), "a step of three grey levels along the normal of a half space"


class _HalfSpace(torch.nn.Module):
    """Two classes by the side of a half space, from the [0, 1] image back to grey levels."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        levels = torch.round(images.double() * 255)
        side = (2 * levels[:, 0] - levels[:, 1] + 2 * levels[:, 2]) <= 300
        return torch.stack([side, ~side], dim=1).float()


def test_sampled_shares_are_those_of_brute_force() -> None:
    image = np.array([[[99, 100, 100]]], np.uint8)
    votes = cs.sample(as_segmenter(_HalfSpace()), image, sigma=SIGMA, n=20_000, noise="grid")
    share = float(exact_shares(half_space)[tuple(image[0, 0].astype(int) - FIRST)])
    assert 0.2 < share < 0.8
    assert abs(votes.counts[0, 0, 0] / votes.n - share) < 4 * np.sqrt(share * (1 - share) / votes.n)


# -- votes, certificates, verification ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate() -> cs.Certificate:
    image = np.random.default_rng(1).integers(0, 256, (4, 5, 3)).astype(np.uint8)
    votes = cs.sample(as_segmenter(_Brightness()), image, sigma=0.25, n=60, noise="grid")
    return cs.certify(votes, method="segcertify", alpha=0.05)


class _Brightness(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        mean = images.mean(dim=1)
        return torch.stack([3 * mean, 1 - mean], dim=1)


def image_of(certificate: cs.Certificate) -> np.ndarray:
    image = np.random.default_rng(1).integers(0, 256, (4, 5, 3)).astype(np.uint8)
    assert cs.sample(as_segmenter(_Brightness()), image, sigma=0.25, n=1).image_key == certificate.votes.image_key
    return image


def test_votes_remember_their_noise_and_verify_redraws_it(certificate: cs.Certificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.npz")
    model, image = as_segmenter(_Brightness()), image_of(certificate)
    assert cs.load_certificate(tmp_path / "c.npz").votes.noise == "grid"
    outcome = cs.verify(tmp_path / "c.npz", model=model, image=image)
    assert outcome.passed, outcome
    assert outcome.checks[-1].name == "redraw"
    gaussian = cs.sample(model, image, sigma=0.25, n=60)
    assert gaussian.noise == "gaussian"
    assert not np.array_equal(gaussian.counts, certificate.votes.counts)
    assert gaussian.digest() != certificate.votes.digest()


def test_the_digest_tells_the_noises_apart(certificate: cs.Certificate) -> None:
    from dataclasses import replace

    assert replace(certificate.votes, noise="gaussian").digest() != certificate.votes.digest()
    with pytest.raises(cs.InputError, match="noise must be one of gaussian, grid"):
        replace(certificate.votes, noise="laplace")


def test_the_claim_says_what_grid_noise_covers_and_costs(certificate: cs.Certificate) -> None:
    text = certificate.claim()
    assert "8-bit image to another 8-bit image" in text
    assert "rounded to whole grey levels" in text
    cost = grid_distance(sigma=0.25, draws=60, values=60)
    stated = float(text.partition("adds at most ")[2].split()[0])
    assert cost <= stated < 2 * cost
    assert cost < 1e-30
    assert cost == 60 * 60 * grid_table(0.25).law.distance


def test_images_between_grey_levels_and_unknown_noise_are_refused() -> None:
    image = np.full((2, 2, 3), 0.3, np.float32)
    with pytest.raises(cs.InputError, match=r"image must be 8-bit .* use noise='gaussian'"):
        cs.sample(as_segmenter(_Brightness()), image, sigma=0.25, n=2, noise="grid")
    with pytest.raises(cs.InputError, match="noise must be one of gaussian, grid"):
        cs.sample(as_segmenter(_Brightness()), image, sigma=0.25, n=2, noise="uniform")  # type: ignore[arg-type]
