"""Every threat composes, stays in [0, 1], says in words what it does, and refuses what it cannot use."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from certiseg import threats
from certiseg.errors import InputError
from tests.threats.small import ALL, DEPTH, ONE_SIDED, moved, picture

TIMES = st.floats(0, 3)


@pytest.mark.parametrize("name", ALL)
@given(s=TIMES, t=TIMES, seed=st.integers(0, 1000))
def test_transformations_compose_and_stay_in_range(name: str, s: float, t: float, seed: int) -> None:
    threat, pixels = ALL[name], picture(seed)
    if name == "gamma":
        s, t = s / 2 - 0.8, 0.8 - t / 2
    twice = threat.apply(threat.apply(pixels, t), s)
    once = threat.apply(pixels, s + t)
    assert 0 <= once.min() <= once.max() <= 1
    assert once.dtype == np.float32
    np.testing.assert_allclose(twice, once, atol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_nothing_happens_at_zero_and_something_at_one(name: str) -> None:
    np.testing.assert_allclose(ALL[name].apply(picture(), 0), picture(), atol=1e-6)
    assert np.abs(ALL[name].apply(picture(), 1) - picture()).mean() > 0.05


@pytest.mark.parametrize("name", ONE_SIDED)
@given(seed=st.integers(0, 1000), t=TIMES)
def test_one_sided_threats_bring_no_two_images_further_apart(name: str, seed: int, t: float) -> None:
    first, second = picture(seed), picture(seed + 1)
    apart = np.linalg.norm(ONE_SIDED[name].apply(first, t) - ONE_SIDED[name].apply(second, t))
    assert apart <= np.linalg.norm(first - second) * (1 + 1e-5)


def laplacian(size: int) -> np.ndarray:
    """The second difference along a side with mirrored borders."""
    matrix = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
    matrix[0, 0] = matrix[-1, -1] = 1
    return matrix


@pytest.mark.parametrize("t", [0.1, 1.0, 4.0])
def test_blur_is_the_matrix_exponential_of_the_laplacian(t: float) -> None:
    pixels = picture(size=(5, 7))
    flow = expm(-t * (np.kron(laplacian(5), np.eye(7)) + np.kron(np.eye(5), laplacian(7))))
    direct = (flow @ pixels.reshape(35, 3).astype(np.float64)).reshape(5, 7, 3)
    np.testing.assert_allclose(threats.blur(1).apply(pixels, t), direct, atol=1e-6)


def test_blur_has_the_width_of_its_time() -> None:
    point = np.zeros((41, 41, 3), np.float32)
    point[20, 20] = 1
    spread = threats.blur(1).apply(point, 2.0)[..., 0]
    assert np.sqrt((spread * (np.arange(41) - 20) ** 2).sum() / spread.sum()) == pytest.approx(2.0, rel=1e-3)


def test_formulas_of_the_veils_and_gamma() -> None:
    x, left = picture().astype(np.float64), np.exp(-0.4)
    np.testing.assert_allclose(threats.fog(1, airlight=0.7).apply(picture(), 0.4), 0.7 + left * (x - 0.7), atol=1e-6)
    np.testing.assert_allclose(threats.dark(1).apply(picture(), 0.4), left * x, atol=1e-6)
    np.testing.assert_allclose(threats.haze(1).apply(picture(), 0.4), 1 - left * (1 - x), atol=1e-6)
    mean = x.mean(axis=(0, 1))
    np.testing.assert_allclose(threats.flat(1).apply(picture(), 0.4), mean + left * (x - mean), atol=1e-6)
    np.testing.assert_allclose(threats.gamma(1).apply(picture(), 0.4), x ** np.exp(0.4), atol=1e-5)
    by_depth = 0.7 + np.exp(-0.4 * DEPTH)[..., None] * (x - 0.7)
    np.testing.assert_allclose(threats.fog(1, airlight=0.7, depth=DEPTH).apply(picture(), 0.4), by_depth, atol=1e-6)


def test_ranges_of_the_design() -> None:
    assert threats.fog(0.5).range(0.75) == pytest.approx((0, 0.5 * np.log(2)), abs=1e-12)
    assert threats.dark(2).range(0.5) == pytest.approx((0, 0), abs=1e-12)
    low, high = threats.gamma(0.5).range(0.75)
    assert (low, high) == pytest.approx((-0.337245, 0.337245), abs=1e-6)
    assert threats.l2().range(0.75, sigma=0.25) == pytest.approx((0, 0.168622), abs=1e-6)
    # With pixel noise the range shrinks with r and ends where l2 alone does.
    for_r = [threats.fog(0.5).range(0.75, radius=r, sigma=0.25)[1] for r in (0, 0.05, 0.1, 0.16862)]
    assert for_r[0] == pytest.approx(0.5 * np.log(2), abs=1e-12)
    assert for_r[1] == pytest.approx(0.5 * np.log(0.4207402905608970 / 0.25), abs=1e-9)  # Phi(-0.2) by a table
    assert all(a > b for a, b in pairwise(for_r))
    assert for_r[-1] == pytest.approx(0, abs=1e-5)


def test_words_people_use() -> None:
    end = 0.5 * np.log(2)
    assert threats.fog(0.5).words(end) == "fog of density up to 29 %"
    assert threats.fog(0.02, depth=DEPTH).words(3.912023 / 60) == "visibility down to 60 m"
    kilometres = np.array([[2.0, 30.0, 80.0]], np.float32) / 1000
    assert "read as metres: 0.002 to 0.08, half of the pixels up to 0.03" in threats.fog(1, depth=kilometres).describe()
    assert threats.dark(0.5).words(end) == "light down to 71 %"
    assert threats.flat(0.5).words(end) == "contrast down to 71 %"
    assert threats.haze(0.5).words(end) == "white veil of up to 29 %"
    assert threats.blur(2).words(1.445) == "blur of up to 1.7 pixels"
    assert threats.blur(2).words(2 * np.log(2)) == "blur of up to 1.66 pixels", "1.6651, never rounded up"
    assert threats.dark(1).words(np.log(2)) == "light down to 50 %"
    assert threats.gamma(0.5).words(end) == "gamma between 0.71 and 1.41"
    assert threats.gamma(0.5).words(0.607) == "gamma between 0.55 and 1.83", "0.545 and 1.835"
    assert "0.1686" in threats.l2().words(0.1686)


@pytest.mark.parametrize("name", ALL)
def test_stored_threats_are_the_same_threats(name: str) -> None:
    meta, arrays = ALL[name].pack()
    again = threats.unpack(json.loads(json.dumps(meta)), arrays)
    assert again == ALL[name]
    assert hash(again) == hash(ALL[name])
    np.testing.assert_array_equal(moved(again, picture(), 0.7), moved(ALL[name], picture(), 0.7))
    others = [other for other in ALL if ALL[other] == again]
    assert others == [name]


def test_another_depth_map_is_another_threat_and_a_changed_one_is_refused() -> None:
    other = DEPTH.copy()
    other[3, 3] += 0.5
    assert threats.fog(0.5, depth=other) != threats.fog(0.5, depth=DEPTH)
    meta, _ = threats.fog(0.5, depth=DEPTH).pack()
    with pytest.raises(InputError, match="stored as it was used"):
        threats.unpack(meta, {"depth": other})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: threats.fog(-1), "scale must be a positive number, got -1"),
        (lambda: threats.blur(float("nan")), "scale must be a positive number"),
        (lambda: threats.gamma(0), "scale must be a positive number"),
        (lambda: threats.fog(1, airlight=1.2), r"airlight must lie in \[0, 1\], got 1.2"),
        (lambda: threats.fog(1, airlight=float("nan")), "airlight must lie in"),
        (lambda: threats.fog(1, depth=np.full((4, 4), np.nan)), "depth must be finite"),
        (lambda: threats.fog(1, depth=-np.ones((4, 4))), "depth must be finite, not negative"),
        (lambda: threats.fog(1, depth=np.zeros((4, 4))), "not 0 everywhere"),
        (lambda: threats.fog(1, depth=np.ones(4)), r"depth must be numbers of shape \(H, W\)"),
        (lambda: threats.fog(1, depth=np.ones((4, 4))).apply(picture(), 1), "depth must have the size of the image"),
        (lambda: threats.flat(1).apply(np.full((4, 4, 3), 0.5), 1), "image must not be of one colour"),
        (lambda: threats.dark(1).apply(picture(), -0.1), "t must be a number >= 0, got -0.1"),
        (lambda: threats.gamma(1).apply(picture(), float("inf")), "t must be a number, got inf"),
        (lambda: threats.fog(1).range(1.0), "tau must lie in"),
        (lambda: threats.fog(1).range(0.75, radius=0.1), "radius must be 0 without pixel noise"),
        (lambda: threats.fog(1).range(0.75, radius=0.2, sigma=0.25), "radius must be at most sigma"),
        (lambda: threats.gamma(1).range(0.75, radius=0.1, sigma=0.25), "sigma and radius must be 0 for gamma"),
        (lambda: threats.l2().range(0.75, radius=0.1, sigma=0.25), "radius must be left out for l2"),
        (lambda: threats.l2().apply(picture(), 0.1), "threat must be one with a transformation"),
        (lambda: threats.named("rain", 1), "threat must be one of fog, dark"),
        (lambda: threats.unpack({"name": "fog", "scale": 1, "rain": 2}, {}), "with its own numbers"),
    ],
)
def test_bad_input_is_one_sentence(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
