"""Promises for ranges of threats hold where they are tight, and every broken variant exceeds its promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

import certiseg as cs
from certiseg import threats
from certiseg.threats.base import Path, Pixels, Threat

from . import threats_report
from .along_threats import Broken, World, broken, measure, shared_noise, stopped_at_best, worlds

TRIALS = 300
MANY = 1000
WORLDS = worlds()


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_promises_for_ranges_hold(world: World) -> None:
    found = measure(world, TRIALS)
    assert found.holds, f"{found.name}: {found.rate} above {found.bound}"


def test_tight_worlds_come_close_to_alpha() -> None:
    """A simulation that never errs would prove nothing: at one pixel and a share of exactly tau some promises fail."""
    rates = [measure(world, TRIALS).rate for world in WORLDS if world.name.endswith("where the share is tau")]
    assert min(rates) > 0.02


@pytest.mark.filterwarnings("ignore::certiseg.certify.NothingCertifiable")
@pytest.mark.parametrize("name", ["dark: step", "dark: anchors", "gamma: anchors", "spikes"])
def test_promises_hold_when_the_draws_are_stopped_at_their_best(name: str) -> None:
    world = next(world for world in WORLDS if world.name.startswith(name))
    found = measure(world, 200, draw=stopped_at_best, test="anytime")
    assert found.holds
    assert not measure(world, 200, draw=_unmarked, test="fixed").holds or world.pixels > 1


def _unmarked(world: World, rng: np.random.Generator) -> cs.Votes:
    return replace(stopped_at_best(world, rng), stopped=False)


@pytest.mark.filterwarnings("ignore::certiseg.certify.NothingCertifiable")
@pytest.mark.parametrize("variant", broken(), ids=lambda variant: variant.name)
def test_broken_variant_is_caught(variant: Broken) -> None:
    found = variant.wrong(MANY)
    assert not found.holds, f"{variant.name}: {found.rate:.4f} stays below {found.bound:.4f}"
    if variant.right is not None:
        assert variant.right(MANY).holds


@pytest.mark.filterwarnings("ignore::certiseg.certify.NothingCertifiable")
def test_shared_noise_does_no_harm_to_the_anytime_test() -> None:
    assert shared_noise(shared=True, test="anytime")(TRIALS).holds


# -- transformations that do not compose -------------------------------------------------------------------------


class CutOffGaussian(threats.blur):
    """Blur by a sampled Gaussian kernel, cut off at one pixel: it does not compose."""

    def along(self, pixels: Pixels) -> Path:
        def blurred(t: float, out: Pixels) -> None:
            side = np.exp(-1 / (4 * max(t, 1e-12)))
            kernel = np.array([side, 1, side]) / (1 + 2 * side)
            padded = np.pad(pixels, ((0, 0), (1, 1), (0, 0)), mode="symmetric")
            width = pixels.shape[1]
            out[...] = sum(kernel[k] * padded[:, k : k + width] for k in range(3))

        return blurred


class ClippedContrast(threats.flat):
    """A gain of contrast around the mean, clipped to [0, 1] before the next one: it does not compose."""

    def along(self, pixels: Pixels) -> Path:
        mean = pixels.mean(axis=(0, 1))

        def stretched(t: float, out: Pixels) -> None:
            out[...] = np.clip(mean + np.float32(np.exp(t)) * (pixels - mean), 0, 1)

        return stretched


def share_after(threat: Threat, model: cs.Segmenter, pixels: np.ndarray, delta: float) -> float:
    """Share of class 1 among fresh draws at T_delta x, as the threat itself makes it."""
    moved = np.empty_like(pixels)
    threat.along(pixels)(delta, moved)
    votes = cs.sample(model, moved, sigma=0.0, threat=threat, n=300, seed=9)
    return float(votes.counts[0, 0, 1] / votes.n)


def of_statistic(good: Callable[[np.ndarray], np.ndarray]) -> cs.Segmenter:
    """Class 1 at every pixel where a number read from the whole image is good."""

    def scores(images: np.ndarray) -> np.ndarray:
        one = np.array([good(image) for image in images], np.float32)[:, None, None]
        ones = np.broadcast_to(one, images.shape[:3])
        return np.stack([1 - ones, ones], axis=-1)

    return cs.Segmenter(scores, num_classes=2, arrays="numpy", name="statistic")


def certified_and_refuted(threat: Threat, good: Any, pixels: np.ndarray) -> tuple[bool, float]:
    model = of_statistic(good)
    votes = cs.sample(model, pixels, sigma=0.0, threat=threat, n=300)
    cert = cs.certify(votes, method="segcertify", alpha=0.01)
    inside = [share_after(threat, model, pixels, f * cert.range[1]) for f in (0.5, 0.999)]
    return bool((cert.vertex == 1).all()), min(inside)


MODE = 3
"""Half waves over the width of the picture."""


def wave() -> np.ndarray:
    columns = np.cos(np.pi * (np.arange(8) + 0.5) * MODE / 8)
    return (0.5 + 0.4 * np.broadcast_to(columns[None, :, None], (4, 8, 3))).astype(np.float32)


DECAY = 2 - 2 * np.cos(MODE * np.pi / 8)
"""Of the wave in heat flow, per unit of time."""


def amplitude(image: np.ndarray) -> float:
    return float(((image - 0.5) * (wave() - 0.5)).mean() / ((wave() - 0.5) ** 2).mean())


def test_a_cut_off_kernel_breaks_the_promise_and_heat_flow_does_not() -> None:
    """No blur by the cut-off kernel takes more of the wave than an even mean of three; two of them do."""
    least = (1 + 2 * np.cos(MODE * np.pi / 8)) / 3 - 1e-4
    certified, share = certified_and_refuted(CutOffGaussian(20.0), lambda i: amplitude(i) > least, wave())
    assert certified
    assert share < 0.5
    flow = threats.blur(1 / DECAY)  # the amplitude is uniform on (0, 1)
    certified, share = certified_and_refuted(flow, lambda i: amplitude(i) > 0.1, wave())
    assert certified
    assert share > 0.5


def test_clipping_before_the_next_transformation_breaks_the_promise() -> None:
    pixels = np.full((10, 10, 3), 0.3, np.float32)
    pixels[0], pixels[1] = 0.5, 0.0
    mean = float(pixels.mean())
    pixels[5, 5] = mean + 1e-3
    mark = float(pixels[5, 5].mean()) - 5e-4
    certified, share = certified_and_refuted(ClippedContrast(1.0), lambda i: i[5, 5].mean() > mark, pixels)
    assert certified
    assert share < 0.5


# -- through the whole package -----------------------------------------------------------------------------------


KINDS = {
    "fog": (threats.fog(0.5), 1.0),
    "fog by depth": (threats.fog(0.02, depth=np.full((4, 8), 30.0)), 30.0),
    "dark": (threats.dark(0.7), 1.0),
    "haze": (threats.haze(0.4), 1.0),
    "flat": (threats.flat(0.6), 1.0),
    "blur": (threats.blur(1.5), DECAY),
}


SPREAD = 1 / np.sqrt(((wave() - 0.5) ** 2).sum())
"""Deviation of the amplitude under pixel noise of deviation 1."""


def tight_edge(threat: Threat, rate: float, start: float, sigma: float) -> float:
    """The amplitude that exactly tau of the draws at an anchor exceed, the image having decayed with its parameter."""
    parts = (np.arange(20_000) + 0.5) / 20_000
    left = np.exp(-rate * (start - threat.scale * np.log(parts)))
    if sigma == 0:
        return float(np.exp(-rate * (start + threat.scale * np.log(4))))
    return float(brentq(lambda e: norm.sf((e - left) / (sigma * SPREAD)).mean() - 0.75, -3, 3, xtol=1e-12))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("ranges", "sigma"), [(1.0, 0.0), (2.5, 0.0), (1.0, 0.1), (2.5, 0.1)])
def test_every_threat_keeps_its_promise_end_to_end(name: str, ranges: float, sigma: float) -> None:
    """The model reads the parameter from the image, and loses its label where the share at the last anchor is tau."""
    threat, rate = KINDS[name]
    up_to = ranges * threat.range(0.75)[1]
    edge = tight_edge(threat, rate, threat.range(0.75)[1] * (np.ceil(ranges) - 1), sigma)
    model, false, trials, alpha = (
        of_statistic(lambda i: amplitude(i - i.mean() + 0.5) > edge),
        0,
        30 if sigma else 60,
        0.2,
    )
    region = np.zeros((4, 8), bool)
    region[0, 0] = True
    asked = {"threat": threat, "sigma": sigma, "n": 50, "n0": 1, "up_to": up_to, "batch_size": 50}
    for seed in range(trials):
        cert = cs.certify(cs.sample(model, wave(), seed=seed, **asked), method="segcertify", alpha=alpha, region=region)
        false += cert.vertex[0, 0] == 1
    assert false <= binom.isf(1e-5, trials, alpha)
    if ranges == 1:
        assert false > 0, "the share is exactly tau: some promises must fail"


def test_gamma_keeps_its_promise_end_to_end() -> None:
    """The step lies at the upper end of both-sided anchors: the share there is exactly tau."""
    gamma, grey = threats.gamma(0.4), np.full((2, 3, 3), 0.5, np.float32)
    reach = gamma.range(0.75)[1]
    edge, trials, alpha, region = 3 * reach, 60, 0.2, np.eye(2, 3, dtype=bool) & (np.arange(3) == 0)

    def good(image: np.ndarray) -> bool:
        return bool(np.log(np.log(np.clip(image[0, 0, 0], 1e-30, 1 - 1e-7)) / np.log(0.5)) < edge)

    false = 0
    for seed in range(trials):
        asked = {"threat": gamma, "sigma": 0.0, "n": 50, "n0": 1, "up_to": 2.5 * reach, "batch_size": 50}
        votes = cs.sample(of_statistic(good), grey, seed=seed, **asked)
        cert = cs.certify(votes, method="segcertify", alpha=alpha, region=region)
        assert cert.range == pytest.approx((-3 * reach, 3 * reach))
        false += cert.vertex[0, 0] == 1
    assert 0 < false <= binom.isf(1e-5, trials, alpha)


def test_the_report_of_ranges_is_written(tmp_path: FilePath) -> None:
    assert threats_report.main(["--trials", "10", "--out", str(tmp_path / "ranges.md")]) == 1, "10 trials catch nothing"
    text = (tmp_path / "ranges.md").read_text("utf-8")
    assert "broken variant not caught: range too long by 5 %" in text
    assert text.count("| 10 | 0.1 |") == len(WORLDS)
