"""Noise: Philox by its known answers, normal by Kolmogorov and Smirnov, and no draw like another."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import certiseg as cs
from certiseg.kernels import noise as loops
from certiseg.kernels.noise import CHUNK
from certiseg.noise import NoiseStream, image_key, noise_stream
from certiseg.noise.gaussian import add_noise, standard_normal

IMAGE = "0" * 64
KNOWN_ANSWERS = [
    ((0,) * 4, (0,) * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def plain_philox(counter: tuple[int, ...], key: tuple[int, ...]) -> list[int]:
    """Philox4x32-10 in Python's whole numbers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_its_authors(
    counter: tuple[int, ...], key: tuple[int, ...], answer: str
) -> None:
    assert " ".join(f"{int(word):08x}" for word in loops.philox(*map(np.uint64, counter + key))) == answer
    assert " ".join(f"{word:08x}" for word in plain_philox(counter, key)) == answer


def box_muller(radius_word: int, angle_word: int) -> tuple[float, float]:
    """The two values of two words, in double precision with NumPy's own logarithm, sine and cosine."""
    u = ((radius_word >> 1) + 0.5) / 2**31
    t = ((angle_word >> 2) - 2**29) / 2**30 * np.pi / 2
    signed = np.sqrt(-2 * np.log(u)) * (1 - (angle_word & 2))
    pair = signed * np.cos(t), signed * np.sin(t)
    return pair[::-1] if angle_word & 1 else pair


@pytest.mark.parametrize("added", [False, True], ids=["alone", "added to an image, as draws are"])
def test_every_value_is_the_stated_function_of_key_nonce_draw_and_position(added: bool) -> None:
    stream, draw, size = NoiseStream(key=0x0123456789ABCDEF, nonce=0xFEDCBA9876543210), 54_321, 3 * 4 * CHUNK - 5
    values = np.zeros(size, np.float32)
    if added:
        add_noise(stream, draw, values, 1.0, values)
    else:
        values = standard_normal(stream, draw, (size,))
    for position in (0, 1, 500, CHUNK - 1, CHUNK, 2 * CHUNK + 7, 3 * CHUNK - 1):
        words = plain_philox((position, draw, 0x76543210, 0xFEDCBA98), (0x89ABCDEF, 0x01234567))
        first = (position // CHUNK) * 4 * CHUNK + position % CHUNK
        expected = [*box_muller(*words[:2]), *box_muller(*words[2:])]
        for word, value in enumerate(expected):
            if first + word * CHUNK < size:
                assert values[first + word * CHUNK] == pytest.approx(value, rel=2e-6, abs=2e-7)


def test_values_are_standard_normal_by_kolmogorov_and_smirnov() -> None:
    for stage in ("selection", "estimation"):
        stream = noise_stream(seed=0, image_key=IMAGE, stage=stage)
        values = np.concatenate([standard_normal(stream, draw, (200, 300, 3)).ravel() for draw in range(10)])
        assert stats.kstest(values, "norm").pvalue > 0.01
        assert stats.kstest(values[::97] ** 2, "chi2", args=(1,)).pvalue > 0.01
        assert abs(values.mean(dtype=np.float64)) < 4 / np.sqrt(values.size)
        assert abs(values.var(dtype=np.float64) - 1) < 4 * np.sqrt(2 / values.size)
        for limit in (3.0, 4.0, 4.5):
            expected = 2 * stats.norm.sf(limit) * values.size
            assert abs((np.abs(values) > limit).sum() - expected) < 4 * np.sqrt(expected)


def test_each_position_is_standard_normal_over_the_draws() -> None:
    stream = noise_stream(seed=1, image_key=IMAGE, stage="estimation")
    values = np.stack([standard_normal(stream, draw, (40, 3)) for draw in range(3000)]).reshape(3000, -1)
    p_values = np.array([stats.kstest(column, "norm").pvalue for column in values.T])
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    sums = values.sum(axis=1) / np.sqrt(values.shape[1])
    assert stats.kstest(sums, "norm").pvalue > 0.01


def largest_correlation(rows: np.ndarray) -> float:
    correlation = np.corrcoef(rows.astype(np.float64))
    np.fill_diagonal(correlation, 0)
    return float(np.abs(correlation).max())


def test_draws_stages_seeds_and_images_are_uncorrelated() -> None:
    shape, pixels = (100, 100, 3), 30_000
    rows = [
        standard_normal(noise_stream(seed=seed, image_key=key, stage=stage), draw, shape).ravel()
        for seed in (0, 1, 2**40)
        for key in (IMAGE, "1" + IMAGE[1:])
        for stage in ("selection", "estimation")
        for draw in (0, 1, 2, 3, 65_534)
    ]
    pairs = len(rows) * (len(rows) - 1) / 2
    bound = stats.norm.isf(0.005 / pairs) / np.sqrt(pixels)
    assert largest_correlation(np.stack(rows)) < bound
    assert largest_correlation(np.stack(rows) ** 2) < 1.2 * bound
    assert largest_correlation(np.concatenate([rows[0][None], rows[0][None] + 0.1 * rows[1]])) > bound


def test_neighbours_and_the_two_values_of_a_pair_are_uncorrelated_within_a_draw() -> None:
    values = standard_normal(noise_stream(seed=3, image_key=IMAGE, stage="estimation"), 0, (64 * 4 * CHUNK,))
    values = values.astype(np.float64)
    bound = stats.norm.isf(0.0005) / np.sqrt(values.size)
    for lag in (1, 2, 3, 4, 900, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 2 * bound, lag
        assert abs(np.corrcoef(values[:-lag] ** 2, values[lag:] ** 2)[0, 1]) < 2 * bound, lag


def test_no_two_of_65535_draws_share_noise_nor_do_the_stages() -> None:
    rows = np.empty((2, 65_535, 4), np.float32)
    for row, stage in zip(rows, ("selection", "estimation"), strict=True):
        stream = noise_stream(seed=0, image_key=IMAGE, stage=stage)
        for draw in range(65_535):
            row[draw] = standard_normal(stream, draw, (4,))
    assert len(np.unique(rows.reshape(-1, 4), axis=0)) == 2 * 65_535
    assert len(np.unique(rows.reshape(-1, 4)[:, :2], axis=0)) == 2 * 65_535
    assert stats.kstest(rows.ravel(), "norm").pvalue > 0.01


def test_a_draw_depends_on_nothing_but_its_name() -> None:
    def fresh(draw: int) -> np.ndarray:
        return standard_normal(noise_stream(seed=7, image_key=IMAGE, stage="estimation"), draw, (33, 21, 3))

    stream = noise_stream(seed=7, image_key=IMAGE, stage="estimation")
    forward = [standard_normal(stream, draw, (33, 21, 3)) for draw in range(6)]
    for draw in (5, 0, 3, 3):
        np.testing.assert_array_equal(fresh(draw), forward[draw])


def test_every_part_of_the_name_changes_the_stream() -> None:
    base = {"seed": 12, "image_key": IMAGE, "stage": "selection"}
    others = [
        base,
        {**base, "seed": 13},
        {**base, "seed": 12 + 2**32},
        {**base, "seed": 12 + 2**64},
        {**base, "image_key": "1" + IMAGE[1:]},
        {**base, "stage": "estimation"},
        {**base, "seed": 1, "image_key": "2" + IMAGE},
    ]
    streams = {(stream.key, stream.nonce) for stream in (noise_stream(**other) for other in others)}
    assert len(streams) == len(others)
    assert all(key >= 2**32 or nonce >= 2**32 for key, nonce in streams)


def test_key_and_nonce_are_the_first_128_bits_of_the_hash() -> None:
    name = "\0".join(["certiseg noise 1", "12", IMAGE, "selection"])
    digest = hashlib.sha256(name.encode()).digest()
    stream = noise_stream(seed=12, image_key=IMAGE, stage="selection")
    assert stream.key.to_bytes(8, "little") + stream.nonce.to_bytes(8, "little") == digest[:16]


def words_of(value: int) -> np.ndarray:
    return np.full(CHUNK, value, np.uint32)


@pytest.mark.parametrize("angle", [0, 1, 2, 3, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC])
def test_extreme_words_give_finite_values(angle: int) -> None:
    first, second = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    for radius in (0, 1, loops.TAIL_WORD, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF):
        loops._box_muller(words_of(radius), words_of(angle), first, second)
        expected = box_muller(int(radius), angle)
        assert first[0] == pytest.approx(expected[0], rel=2e-6, abs=3e-4)
        assert second[0] == pytest.approx(expected[1], rel=2e-6, abs=3e-4)


def test_tails_are_refined_beyond_nine_deviations_and_meet_the_rest_without_a_gap() -> None:
    first, second = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)

    def radius_of(word: int, extra: int) -> float:
        loops._widen_tail(words_of(word), words_of(4 << 28), words_of(extra), first, second)
        return float(np.hypot(first[0], second[0]))

    assert radius_of(0, 0) == pytest.approx(np.sqrt(-2 * np.log(2.0**-65)), rel=1e-5)
    assert radius_of(0, 0) > 9
    last = int(loops.TAIL_WORD) - 1
    edge = float(np.sqrt(-2 * np.log((last + 1) / 2**32)))
    assert radius_of(last, 0xFFFFFFFF) == pytest.approx(edge, rel=1e-5)
    radii = [radius_of(word, extra) for word in (0, 1, 2, 500, last) for extra in (0, 1 << 31, 0xFFFFFFFF)]
    assert all(a >= b for a, b in pairwise(radii))
    untouched = first.copy()
    loops._widen_tail(words_of(int(loops.TAIL_WORD)), words_of(0), words_of(0), first, second)
    np.testing.assert_array_equal(first, untouched)


def test_tail_words_use_their_own_counters_in_a_real_draw() -> None:
    stream, found = noise_stream(seed=4, image_key=IMAGE, stage="estimation"), 0
    words, extra = np.empty((4, CHUNK), np.uint32), np.empty((4, CHUNK), np.uint32)
    key, nonce = np.uint64(stream.key), np.uint64(stream.nonce)
    for draw in range(15_000):
        loops.fill_words(words, key, nonce, np.uint64(draw), np.uint64(0))
        for w in (0, 2):
            for i in np.flatnonzero(words[w] < loops.TAIL_WORD):
                loops.fill_words(extra, key, nonce, np.uint64(draw), np.uint64(1 << 31))
                u = (float(words[w, i]) + (float(extra[w, i]) + 0.5) / 2**32) / 2**32
                values = standard_normal(stream, draw, (4, CHUNK))[[w, w + 1], i]
                assert np.hypot(*values.astype(float)) == pytest.approx(np.sqrt(-2 * np.log(u)), rel=1e-5)
                found += 1
    assert found > 0, "thirty million words hold one below 2^10 out of 2^32 almost surely"


def test_draws_and_shapes_beyond_the_counter_are_refused() -> None:
    stream = noise_stream(seed=0, image_key=IMAGE, stage="selection")
    for draw, shape in ((-1, (3,)), (2**32, (3,)), (0, (2**34,))):
        with pytest.raises(cs.InputError, match="draw and shape must fit"):
            standard_normal(stream, draw, shape)


def test_the_image_key_sees_every_pixel_and_the_shape() -> None:
    pixels = np.zeros((4, 6, 3), np.float32)
    keys = {image_key(pixels), image_key(pixels.reshape(6, 4, 3)), image_key(pixels[:3])}
    for position in range(pixels.size):
        changed = pixels.copy()
        changed.flat[position] = np.nextafter(np.float32(0), np.float32(1))
        keys.add(image_key(changed))
    assert len(keys) == 3 + pixels.size
    assert image_key(np.asfortranarray(pixels)) == image_key(pixels)
