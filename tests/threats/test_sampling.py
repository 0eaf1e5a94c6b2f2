"""Votes along a threat: each draw's own parameter, apart from the pixel noise; anchors; what changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import certiseg as cs
from certiseg import threats
from certiseg.noise.along_threat import moved_images, standard_parameter, threat_streams
from certiseg.noise.gaussian import standard_normal
from certiseg.partial_votes import load_partial_votes
from certiseg.sampling import draw, settled, start, votes_of
from certiseg.settings import SamplingSettings
from tests.test_votes import Interruption, assert_same, interrupt_after
from tests.threats.small import ALL, picture

KEY = "some image"


def parameters(law: Any, count: int = 20_000, **named: Any) -> np.ndarray:
    threat = {"exponential": threats.fog(1), "normal": threats.gamma(1)}[law]
    asked = {"seed": 3, "image_key": KEY, "stage": "estimation", **named}
    stream, _ = threat_streams(threat, 0.0, **asked)
    return np.array([standard_parameter(stream, d, law) for d in range(count)])


def test_parameters_follow_their_law() -> None:
    assert stats.kstest(parameters("exponential"), "expon").pvalue > 1e-3
    assert stats.kstest(parameters("normal"), "norm").pvalue > 1e-3
    assert parameters("exponential").min() >= 0
    assert len(np.unique(parameters("exponential"))) == 20_000


def test_parameters_of_streams_and_pixel_noise_are_independent() -> None:
    here = parameters("exponential", 4000)
    for other in ({"seed": 4}, {"image_key": "other"}, {"stage": "selection"}):
        there = parameters("exponential", 4000, **other)
        assert abs(stats.spearmanr(here, there).statistic) < 0.06
    _, pixels = threat_streams(threats.fog(1), 0.0, seed=3, image_key=KEY, stage="estimation")
    noise = np.array([standard_normal(pixels, d, (6,)) for d in range(4000)])
    for k in range(6):
        assert abs(stats.spearmanr(here, noise[:, k]).statistic) < 0.06
    assert abs(stats.spearmanr(here[1:], here[:-1]).statistic) < 0.06


def test_streams_differ_by_threat_and_anchor_and_use() -> None:
    named = {"seed": 0, "image_key": KEY, "stage": "estimation"}
    kinds = [threats.fog(1), threats.fog(1, airlight=0.9), threats.fog(2), threats.dark(1)]
    streams = [s for threat in kinds for a in (0.0, 0.5, 0.75) for s in threat_streams(threat, a, **named)]
    assert len({(s.key, s.nonce) for s in streams}) == 2 * 3 * len(kinds)


def test_extreme_bits_give_finite_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    from certiseg.noise import along_threat

    for bits in (0, 0xFFFFFFFF):
        monkeypatch.setattr(along_threat, "fill_words", lambda words, *_, bits=bits: words.fill(bits))
        stream = threat_streams(threats.fog(1), 0.0, seed=0, image_key=KEY, stage="estimation")[0]
        assert 0 <= standard_parameter(stream, 0, "exponential") < 45
        assert abs(standard_parameter(stream, 0, "normal")) < 10


@pytest.mark.parametrize("name", ALL)
def test_draws_are_the_moved_image_with_noise_on_top(name: str) -> None:
    threat, sigma = ALL[name], 0.0 if name == "gamma" else 0.2
    anchors = (0.0, 0.4, 1.1)
    settings = SamplingSettings(sigma=sigma, n=5, threat=threat, anchors=anchors)
    write = moved_images(picture(), settings, image_key=KEY, stage="estimation")
    for drawn in range(15):
        out, (index, place) = np.empty_like(picture()), divmod(drawn, 3)
        write(drawn, out)
        streams = threat_streams(threat, anchors[place], seed=0, image_key=KEY, stage="estimation")
        beta = threat.scale * standard_parameter(streams[0], index, threat.law)
        expected = threat.apply(picture(), anchors[place] + beta) + sigma * standard_normal(
            streams[1], index, (9, 12, 3)
        )
        np.testing.assert_allclose(out, expected, atol=1e-6)


class Brightness:
    """Three classes by the mean of the pixel: what a threat changes."""

    def __call__(self, images: np.ndarray) -> np.ndarray:
        value = images.mean(axis=-1)
        return np.stack([0.5 - value, np.abs(value - 0.5), value - 0.45], axis=-1)


def model() -> cs.Segmenter:
    return cs.Segmenter(Brightness(), num_classes=3, arrays="numpy", name="brightness")


OPTIONS: dict[str, Any] = {"threat": threats.dark(0.5), "n0": 4, "n": 30, "snapshots": (7, 20)}


def assert_same_anchors(first: cs.Votes, second: cs.Votes) -> None:
    assert_same(first, second)
    assert first.anchors == second.anchors
    for one, other in zip(first.further, second.further, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)
        assert one.snapshots.keys() == other.snapshots.keys()
        for k in one.snapshots:
            np.testing.assert_array_equal(one.snapshots[k], other.snapshots[k])


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_batches_and_interruptions_change_nothing(sigma: float, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)
    asked = {**OPTIONS, "sigma": sigma, "up_to": 1.0}
    whole = cs.sample(model(), picture(), **asked)
    assert whole.anchors == pytest.approx([k * 0.5 * np.log(2) for k in range(3)])
    assert_same_anchors(whole, cs.sample(model(), picture(), batch_size=7, **asked))
    path = tmp_path / "draws.npz"
    with pytest.raises(Interruption):
        cs.sample(model(), picture(), checkpoint=path, progress=interrupt_after(60), **asked)
    assert load_partial_votes(path).settings.threat == threats.dark(0.5)
    assert_same_anchors(whole, cs.sample(model(), picture(), checkpoint=path, **asked))


def test_parts_of_the_draws_add_up() -> None:
    settings = SamplingSettings(sigma=0.0, n0=4, n=30, threat=threats.blur(1.0), anchors=(0.0, 0.6), snapshots=(20,))
    parts = [start(model(), picture(), settings) for _ in range(3)]
    with settled(parts[0]):
        draw(model(), picture(), parts[0], "selection", list(range(8)))
        for place, part in enumerate(parts):
            draw(model(), picture(), part, "estimation", list(range(place, 60, 3)))
    parts[0].add(parts[1])
    parts[0].add(parts[2])
    asked = {"sigma": 0.0, "n0": 4, "n": 30, "snapshots": (20,), "threat": threats.blur(1.0), "anchors": (0.0, 0.6)}
    assert_same_anchors(votes_of(parts[0], model()), cs.sample(model(), picture(), **asked))


def test_stopping_leaves_the_same_number_of_draws_at_every_anchor() -> None:
    votes = cs.sample(
        model(), picture(), sigma=0.0, **{**OPTIONS, "n": 100}, up_to=1.0, stop=lambda v: v.n >= 40, stop_every=20
    )
    assert votes.n == 40
    assert votes.stopped
    for of_anchor in votes.by_anchor:
        assert (of_anchor.counts.sum(axis=-1) == 40).all()


def test_selection_is_pooled_over_the_anchors() -> None:
    """At 0 the image is bright, at the far anchor dark: the mean posterior lies between both."""
    bright = np.full((2, 2, 3), 0.9, np.float32)
    asked: dict[str, Any] = {"threat": threats.dark(1e-6), "sigma": 0.0, "n0": 3, "n": 5}
    near = cs.sample(model(), bright, **asked)
    both = cs.sample(model(), bright, **asked, anchors=(0.0, 3.0))
    assert near.gap[0, 0] != both.gap[0, 0]
    posteriors = [_softmax(Brightness()(np.full((1, 1, 1, 3), v))[0, 0, 0]) for v in (0.9, 0.9 * np.exp(-3))]
    ranked = np.sort(np.mean(posteriors, axis=0))
    assert both.gap[0, 0] == pytest.approx(ranked[-1] - ranked[-2], abs=1e-4)


def _softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum()


@pytest.mark.parametrize("name", ALL)
def test_votes_and_certificates_of_every_threat_are_stored_and_verified(name: str, tmp_path: Path) -> None:
    sigma = 0.0 if name == "gamma" else 0.05
    votes = cs.sample(model(), picture(), sigma=sigma, threat=ALL[name], n0=4, n=60, up_to=1.0, snapshots=(50,))
    votes.save(tmp_path / "votes.npz")
    again = cs.load_votes(tmp_path / "votes.npz")
    assert_same_anchors(votes, again)
    assert again.threat == ALL[name]
    for used in (votes, votes.first(50)):
        cert = cs.certify(used, method="sets", alpha=0.1)
        cert.save(tmp_path / "cert.npz")
        loaded = cs.load_certificate(tmp_path / "cert.npz")
        assert (loaded.range, loaded.claim()) == (cert.range, cert.claim())
        np.testing.assert_array_equal(loaded.radius_map, cert.radius_map)
        found = cs.verify(tmp_path / "cert.npz", model=model(), image=picture())
        assert found.passed, [check for check in found.checks if not check.passed]
        cert.save(tmp_path / "beside.npz", votes_path="votes.npz")
        assert cs.verify(tmp_path / "beside.npz").passed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threat": threats.gamma(0.5), "sigma": 0.1}, "sigma and radius must be 0 for gamma"),
        ({"threat": threats.fog(0.5), "sigma": 0.1, "noise": "grid"}, "noise must be gaussian with the threat fog"),
        ({"sigma": 0.0}, "sigma must be a positive number, got 0.0"),
        ({"threat": threats.fog(0.5), "sigma": -0.1}, "sigma must be a number >= 0"),
        ({"threat": threats.fog(0.5), "sigma": 0.0, "up_to": 100.0}, "at most 64 anchors"),
        ({"sigma": 0.1, "up_to": 1.0}, "up_to must come with a threat"),
        ({"threat": threats.fog(0.5, depth=np.ones((3, 3))), "sigma": 0.0}, "depth must have the size of the image"),
        ({"threat": threats.fog(0.5), "sigma": 0.0, "up_to": 1.0, "radius": 0.1}, "radius must be 0 without pixel"),
    ],
)
def test_bad_input_is_refused_before_any_draw(options: dict[str, Any], words: str) -> None:
    with pytest.raises(cs.InputError, match=words):
        cs.sample(model(), picture(), n=10, **options)


def test_flat_refuses_an_image_of_one_colour() -> None:
    with pytest.raises(cs.InputError, match="image must not be of one colour"):
        cs.sample(model(), np.full((4, 4, 3), 0.3, np.float32), threat=threats.flat(0.5), sigma=0.0)
