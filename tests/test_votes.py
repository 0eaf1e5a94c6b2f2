"""Votes: independent of batches and interruptions, stored whole, refused when they cannot be votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.models.synthetic import SyntheticSegmenter
from tests.conftest import random_votes

ARRAYS = ("candidate", "gap", "ranking", "counts")


def synthetic() -> SyntheticSegmenter:
    shares = np.random.default_rng(0).dirichlet(np.full(5, 0.5), (9, 11))
    image = np.random.default_rng(1).random((9, 11, 3), np.float32)
    return SyntheticSegmenter(shares, image=image, class_names=("a", "b", "c", "d", "e"))


def network() -> cs.Segmenter:
    """A small convolutional network with output at a quarter of the resolution."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3, stride=2, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 5, 1),
    )
    return cs.Segmenter(layers, divisible_by=4)


PICTURE = np.random.default_rng(2).random((21, 26, 3), np.float32)
MODELS = {"synthetic": (synthetic, None), "network": (network, PICTURE)}


def picture_of(name: str, model: Any) -> np.ndarray:
    return model.image if MODELS[name][1] is None else MODELS[name][1]


def assert_same(first: cs.Votes, second: cs.Votes) -> None:
    for name in ARRAYS:
        a, b = getattr(first, name), getattr(second, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert first.snapshots.keys() == second.snapshots.keys()
    for k in first.snapshots:
        np.testing.assert_array_equal(first.snapshots[k], second.snapshots[k])
    assert first.digest() == second.digest()


class Interruption(Exception):
    """Stands for a crash in the middle of sampling."""


def interrupt_after(draws: int) -> Any:
    made = 0

    def progress(more: int) -> None:
        nonlocal made
        made += more
        if made >= draws:
            raise Interruption

    return progress


# -- what does not change votes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_batch_sizes_give_identical_votes(name: str) -> None:
    model = MODELS[name][0]()
    options = {"sigma": 0.25, "n0": 5, "n": 41, "snapshots": (7, 20)}
    alone = cs.sample(model, picture_of(name, model), batch_size=1, **options)
    for batch_size in (3, 8):
        assert_same(alone, cs.sample(model, picture_of(name, model), batch_size=batch_size, **options))


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_interrupted_and_resumed_sampling_gives_identical_votes(
    name: str, batch_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)
    model, path = MODELS[name][0](), tmp_path / "draws.npz"
    options = {"sigma": 0.25, "n0": 20, "n": 150, "snapshots": (40, 100), "batch_size": batch_size}
    whole = cs.sample(model, picture_of(name, model), **options)
    sizes = []
    for draws in (19, 60, 60):
        with pytest.raises(Interruption):
            cs.sample(model, picture_of(name, model), checkpoint=path, progress=interrupt_after(draws), **options)
        sizes.append(path.stat().st_size if path.exists() else 0)
    assert sizes[-1] > 0
    seen: list[int] = []
    resumed = cs.sample(model, picture_of(name, model), checkpoint=path, progress=seen.append, **options)
    assert sum(seen) == 170
    assert 0 < seen[0] < 170, "the first report is what the file already held"
    assert_same(whole, resumed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop_at", [60, 10_000])
def test_sampling_under_a_stop_rule_can_be_interrupted_too(
    stop_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)
    model, path = synthetic(), tmp_path / "draws.npz"
    asked: list[int] = []

    def stop(votes: cs.Votes) -> bool:
        asked.append(votes.n)
        assert votes.stopped
        return votes.n >= stop_at

    options = {"sigma": 0.25, "n0": 3, "n": 90, "stop": stop, "stop_every": 20}
    whole = cs.sample(model, model.image, **options)
    assert asked == ([20, 40, 60] if stop_at == 60 else [20, 40, 60, 80, 90])
    with pytest.raises(Interruption):
        cs.sample(model, model.image, checkpoint=path, progress=interrupt_after(50), **options)
    assert path.exists()
    assert_same(whole, cs.sample(model, model.image, checkpoint=path, **options))
    assert not path.exists()


def test_a_checkpoint_of_another_model_image_or_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)
    model, path = network(), tmp_path / "draws.npz"
    options = {"sigma": 0.25, "n0": 3, "n": 60, "checkpoint": path}
    with pytest.raises(Interruption):
        cs.sample(model, PICTURE, progress=interrupt_after(40), **options)
    other = network()
    with torch.no_grad():
        other.model[0].bias[0] += 1e-3
    before = path.read_bytes()
    for changed_model, image, changes in (
        (other, PICTURE, {}),
        (model, PICTURE[::-1], {}),
        (model, PICTURE[:20], {}),
        (model, PICTURE, {"sigma": 0.2}),
        (model, PICTURE, {"seed": 1}),
        (model, PICTURE, {"n": 61}),
        (model, PICTURE, {"n0": 4}),
        (model, PICTURE, {"batch_size": 2}),
        (model, PICTURE, {"temperature": 2.0}),
        (cs.Segmenter(model.model, divisible_by=8), PICTURE, {}),
    ):
        with pytest.raises(cs.InputError, match=r"draws\.npz: must be of the same image, model and settings"):
            cs.sample(changed_model, image, **{**options, **changes})
    assert path.read_bytes() == before
    assert_same(cs.sample(model, PICTURE, **options), cs.sample(model, PICTURE, **{**options, "checkpoint": None}))


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "draws.npz"
    path.write_bytes(b"PK rubbish")
    with pytest.raises(cs.InputError, match=r"draws\.npz"):
        cs.sample(synthetic(), synthetic().image, sigma=0.25, n=10, checkpoint=path)


def test_a_resume_runs_on_the_threads_that_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)
    threads: list[int] = []

    def watching(images: torch.Tensor) -> torch.Tensor:
        threads.append(torch.get_num_threads())
        return torch.nn.functional.avg_pool2d(images, 2)

    model, path = cs.Segmenter(watching, num_classes=3), tmp_path / "draws.npz"
    options = {"sigma": 0.25, "n0": 2, "n": 60, "checkpoint": path}
    before = torch.get_num_threads()
    with pytest.raises(Interruption):
        cs.sample(model, PICTURE, progress=interrupt_after(40), **options)
    try:
        torch.set_num_threads(before + 1)
        threads.clear()
        votes = cs.sample(model, PICTURE, **options)
        assert set(threads[1:]) == {before}, "all but the look at the model before"
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert votes.provenance["threads"] == before


def test_a_model_that_writes_into_its_input_changes_nothing() -> None:
    def rude(images: torch.Tensor) -> torch.Tensor:
        images *= 2
        return images - 1

    def polite(images: torch.Tensor) -> torch.Tensor:
        return images * 2 - 1

    for batch_size in (1, 4):
        options = {"sigma": 0.25, "n0": 3, "n": 10, "batch_size": batch_size}
        mine = PICTURE.copy()
        assert_same(cs.sample(rude, mine, **options), cs.sample(polite, PICTURE, **options))
        np.testing.assert_array_equal(mine, PICTURE)


# -- what votes are ----------------------------------------------------------------------------------------------


def test_votes_are_the_models_answers_to_its_own_noise() -> None:
    from certiseg.noise import image_key, noise_stream
    from certiseg.noise.gaussian import standard_normal

    model, sigma = network(), 0.3
    votes = cs.sample(model, PICTURE, sigma=sigma, n0=4, n=12, seed=9, snapshots=(5,), temperature=2.0)
    counts, first, mean = np.zeros((21, 26, 5), int), np.zeros((21, 26, 5), int), np.zeros((21, 26, 5))
    for stage, draws in (("selection", 4), ("estimation", 12)):
        stream = noise_stream(seed=9, image_key=image_key(PICTURE), stage=stage)
        for draw in range(draws):
            noisy = PICTURE + np.float32(sigma) * standard_normal(stream, draw, PICTURE.shape)
            padded = torch.nn.functional.pad(torch.from_numpy(noisy).permute(2, 0, 1)[None], (0, 2, 0, 3))
            with torch.inference_mode():
                logits = model.model(padded)
            scores = torch.nn.functional.interpolate(logits, size=(24, 28), mode="bilinear")[0, :, :21, :26]
            if stage == "selection":
                mean += (scores.double() / 2).softmax(0).permute(1, 2, 0).numpy() / 4
            else:
                label = np.eye(5, dtype=int)[scores.argmax(0).numpy()]
                counts += label
                first += label * (draw < 5)
    np.testing.assert_array_equal(votes.counts, counts)
    np.testing.assert_array_equal(votes.snapshots[5], first)
    ordered = np.sort(mean, axis=-1)
    np.testing.assert_allclose(votes.gap, ordered[..., -1] - ordered[..., -2], atol=1e-5)
    clear = (np.diff(ordered, axis=-1) > 1e-4).all(axis=-1)
    np.testing.assert_array_equal(votes.ranking[clear], np.argsort(-mean, axis=-1)[clear])
    np.testing.assert_array_equal(votes.candidate, votes.ranking[..., 0])


def test_label_models_select_by_vote_shares_with_exact_gaps() -> None:
    model = synthetic()
    votes = cs.sample(model, model.image, sigma=0.25, n0=7, n=5)
    assert votes.gap.dtype == np.float64
    assert set(np.unique(votes.gap)) <= {k / 7 for k in range(8)}


def test_synthetic_votes_follow_their_known_shares() -> None:
    model = synthetic()
    votes = cs.sample(model, model.image, sigma=0.25, n0=2, n=2000)
    expected = 2000 * model.shares
    spread = np.sqrt(expected * (1 - model.shares)) + 1
    assert (np.abs(votes.counts - expected) < 5.5 * spread).all()


def test_seeds_and_images_draw_other_noise() -> None:
    model = network()
    base = cs.sample(model, PICTURE, sigma=0.5, n0=2, n=20)
    assert not np.array_equal(cs.sample(model, PICTURE, sigma=0.5, n0=2, n=20, seed=1).counts, base.counts)
    assert base.image_key != cs.sample(model, PICTURE[:, ::-1], sigma=0.5, n0=2, n=20).image_key


# -- prefixes and files ------------------------------------------------------------------------------------------


def test_prefixes_are_the_votes_of_fewer_draws() -> None:
    model = synthetic()
    long = cs.sample(model, model.image, sigma=0.25, n0=4, n=60, snapshots=(30, 10, 10, 60))
    assert sorted(long.snapshots) == [10, 30]
    for k in (10, 30):
        short = cs.sample(model, model.image, sigma=0.25, n0=4, n=k, snapshots=tuple(s for s in (10, 30) if s < k))
        assert_same(long.first(k), short)
    assert long.first(60) is long
    assert sorted(long.first(30).snapshots) == [10]
    with pytest.raises(cs.InputError, match=r"k must be one of the kept prefixes \[10, 30, 60\], got 20"):
        long.first(20)


def test_votes_survive_their_file_with_snapshots(tmp_path: Path) -> None:
    model = synthetic()
    votes = cs.sample(model, model.image, sigma=0.25, n0=4, n=60, snapshots=(10, 30), seed=3)
    votes.save(tmp_path / "votes.npz")
    again = cs.load_votes(tmp_path / "votes.npz")
    assert_same(votes, again)
    for name in ("n0", "n", "sigma", "seed", "image_key", "classes", "stopped"):
        assert getattr(again, name) == getattr(votes, name), name
    assert again.provenance == votes.provenance
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "votes.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    np.testing.assert_array_equal(
        cs.certify(again, alpha=0.1, method="sets").vertex, cs.certify(votes, alpha=0.1, method="sets").vertex
    )


def test_stopped_votes_stay_stopped_in_files_and_prefixes_and_the_fixed_test_refuses_them(tmp_path: Path) -> None:
    model = synthetic()
    options = {"sigma": 0.25, "n0": 4, "n": 80, "snapshots": (20,)}
    votes = cs.sample(model, model.image, stop=lambda votes: votes.n >= 40, stop_every=20, **options)
    assert (votes.n, votes.stopped) == (40, True)
    assert_same(votes.first(20), cs.sample(model, model.image, stop=lambda _: True, stop_every=20, **options))
    votes.save(tmp_path / "votes.npz")
    for kept in (votes, votes.first(20), cs.load_votes(tmp_path / "votes.npz")):
        with pytest.raises(cs.InputError, match="test must be 'anytime' for votes that were stopped"):
            cs.certify(kept, method="sets", alpha=0.5)
        assert cs.certify(kept, method="sets", alpha=0.5, tau=0.5, test="anytime").settings.test == "anytime"
    never = cs.sample(model, model.image, stop=lambda _: False, **options)
    assert (never.n, never.stopped) == (80, True)


def test_numpys_numbers_make_the_same_votes_and_the_same_file(tmp_path: Path) -> None:
    model = synthetic()
    plain = cs.sample(model, model.image, sigma=0.25, n0=4, n=10, seed=3, snapshots=(5,), batch_size=2)
    numbers = {"n0": np.int64(4), "n": np.int32(10), "seed": np.int64(3), "batch_size": np.uint8(2)}
    numpys = cs.sample(model, model.image, sigma=np.float64(0.25), snapshots=np.array([5]), **numbers)
    plain.save(tmp_path / "a.npz")
    numpys.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    arrays = {name: getattr(plain, name) for name in (*ARRAYS, "prediction")}
    cs.Votes(**arrays, n0=np.int64(4), n=np.int64(10), sigma=np.float32(0.25)).save(tmp_path / "c.npz")
    assert cs.load_votes(tmp_path / "c.npz").digest() == plain.digest()


# -- from_predictions --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 4), st.integers(1, 30))
def test_votes_from_predictions_are_means_and_counts(seed: int, classes: int, n0: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    posteriors = rng.dirichlet(np.ones(classes), (n0, 2, 3)).transpose(0, 3, 1, 2)
    if rng.random() < 0.5:
        posteriors = np.eye(classes)[rng.integers(0, classes, (n0, 2, 3))].transpose(0, 3, 1, 2)
    labels = rng.integers(0, classes, (n, 2, 3))
    max_set = int(rng.integers(1, 8))
    votes = cs.Votes.from_predictions(posteriors, labels, sigma=0.5, max_set=max_set)
    assert (votes.n0, votes.n, votes.sigma, votes.max_set) == (n0, n, 0.5, min(max_set, classes))
    for row, column in np.ndindex(2, 3):
        mean = posteriors[:, :, row, column].mean(axis=0)
        order = sorted(range(classes), key=lambda c, mean=mean: (-mean[c], c))
        assert votes.ranking[row, column].tolist() == order[:max_set]
        assert votes.gap[row, column] == pytest.approx(mean[order[0]] - mean[order[1]], abs=1e-12)
        assert votes.counts[row, column].tolist() == np.bincount(labels[:, row, column], minlength=classes).tolist()


POSTERIORS = np.full((2, 3, 4, 5), 1 / 3)
LABELS = np.zeros((7, 4, 5), np.int64)


@pytest.mark.parametrize(
    ("posteriors", "labels", "options", "words"),
    [
        (POSTERIORS[0], LABELS, {}, "posteriors and labels must have the shapes"),
        (POSTERIORS, LABELS[:, :3], {}, "posteriors and labels must have the shapes"),
        (POSTERIORS, LABELS + 3, {}, r"labels must hold classes 0\.\.2"),
        (POSTERIORS, LABELS - 1, {}, r"labels must hold classes 0\.\.2"),
        (POSTERIORS, LABELS.astype(float), {}, r"labels must hold classes"),
        (-POSTERIORS, LABELS, {}, "posteriors must be finite and not negative"),
        (POSTERIORS * np.nan, LABELS, {}, "posteriors must be finite and not negative"),
        (POSTERIORS[:0], LABELS, {}, "n0 and n must be in"),
        (POSTERIORS, LABELS[:0], {}, "n0 and n must be in"),
        (POSTERIORS[:, :1], LABELS, {}, "classes and max_set must be at least 2 and 1"),
        (POSTERIORS[..., :0], LABELS[..., :0], {}, "counts must have pixels"),
        (POSTERIORS, LABELS, {"max_set": 0}, "classes and max_set must be at least 2 and 1"),
        (POSTERIORS, LABELS, {"max_set": -1}, "classes and max_set must be at least 2 and 1"),
        (POSTERIORS, LABELS, {"sigma": 0.0}, "sigma must be a positive number"),
        (POSTERIORS, LABELS, {"classes": ["a", "b"]}, "classes must name the 3 classes"),
    ],
)
def test_predictions_that_cannot_be_draws_are_one_sentence(
    posteriors: Any, labels: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(cs.InputError, match=words):
        cs.Votes.from_predictions(posteriors, labels, **{"sigma": 0.25, **options})


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": np.zeros((2, 3, 4), np.uint16)}, "counts of every pixel must add up to the number of draws, 20"),
        ({"counts": np.full((2, 3, 4), 20, np.uint16)}, "counts of every pixel must add up to the number of draws, 20"),
        ({"counts": np.zeros((2, 3, 4), np.float32)}, "counts must be whole numbers"),
        ({"counts": np.zeros((2, 3), np.uint16)}, "counts must be whole numbers"),
        ({"n": 21}, "counts of every pixel must add up to the number of draws, 21"),
        ({"n": 20.0}, r"n must be a whole number in 1\.\.65535"),
        ({"n": 0}, r"n must be a whole number in 1\.\.65535"),
        ({"n": 65_536}, r"n must be a whole number in 1\.\.65535"),
        ({"n0": 0}, r"n0 must be a whole number in 1\.\.65535"),
        ({"sigma": 0.0}, "sigma must be a positive number"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"sigma": float("nan")}, "sigma must be a positive number"),
        ({"gap": np.full((2, 3), np.nan)}, "gap must be finite and not negative"),
        ({"gap": np.full((2, 3), -0.1)}, "gap must be finite and not negative"),
        ({"gap": np.zeros((3, 2))}, r"gap must have shape \(2, 3\)"),
        ({"candidate": np.full((2, 3), 4, np.uint8)}, r"candidate must hold classes 0\.\.3"),
        ({"candidate": np.zeros((2, 3))}, "candidate must hold classes"),
        ({"ranking": np.zeros((2, 3, 5), np.uint8)}, "ranking must have shape"),
        ({"ranking": np.zeros((2, 3, 2), np.uint8)}, "ranking must"),
        ({"snapshots": {5: np.zeros((2, 3, 4), np.uint16)}}, "must add up to the number of draws, 5"),
        ({"classes": ("a", "b")}, "classes must name the 4 classes"),
    ],
)
def test_arrays_that_are_no_votes_are_refused(changes: dict[str, Any], words: str) -> None:
    good = random_votes(0, num_classes=4, n=20, size=(2, 3))
    fields = {name: getattr(good, name) for name in (*ARRAYS, "n0", "n", "sigma")}
    with pytest.raises(cs.InputError, match=words):
        cs.Votes(**{**fields, **changes})


def test_a_class_ranked_twice_is_refused_because_it_would_be_counted_twice() -> None:
    good = random_votes(3, num_classes=4, n=20, size=(2, 3))
    ranking = np.stack([good.candidate, (good.candidate + 1) % 4, (good.candidate + 2) % 4], axis=-1)
    fields = {name: getattr(good, name) for name in ("candidate", "gap", "counts", "n0", "n", "sigma")}
    cs.Votes(**fields, ranking=ranking)
    for position in (1, 2):
        repeated = ranking.copy()
        repeated[1, 2, position] = repeated[1, 2, 0]
        with pytest.raises(cs.InputError, match="ranking must name each class of a pixel once"):
            cs.Votes(**fields, ranking=repeated)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigma": 0}, "sigma must be a positive number"),
        ({"sigma": -0.25}, "sigma must be a positive number"),
        ({"sigma": float("inf")}, "sigma must be a positive number"),
        ({"n": 0}, r"n must be in 1\.\.65535"),
        ({"n": 65_536}, r"n must be in 1\.\.65535"),
        ({"n": 10.5}, r"n must be in 1\.\.65535"),
        ({"n0": 0}, r"n0 must be in 1\.\.65535"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"max_set": 0}, "max_set must be at least 1"),
        ({"temperature": 0}, "temperature must be > 0"),
        ({"temperature": float("nan")}, "temperature must be > 0"),
        ({"snapshots": (0,)}, "snapshots must rise"),
        ({"snapshots": (11,)}, "snapshots must rise and be at most n = 10"),
        ({"stop": lambda votes: True, "stop_every": 0}, "stop_every must be at least 1"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    model = synthetic()
    with pytest.raises(cs.InputError, match=words):
        cs.sample(model, model.image, **{"sigma": 0.25, "n0": 2, "n": 10, **changes})


def test_bad_images_and_models_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    model = synthetic()
    for image, words in (
        (np.full((9, 11, 3), np.nan), "image must be finite"),
        (model.image + 1, "image must lie in"),
        (model.image[None], "image must have the shape"),
        (tmp_path / "missing.png", "image must be a file"),
    ):
        with pytest.raises(cs.InputError, match=words):
            cs.sample(model, image, sigma=0.25)
    with pytest.raises(cs.InputError, match="model must be a torch module or a callable"):
        cs.sample("compact", model.image, sigma=0.25)


def test_a_model_that_breaks_under_noise_is_named_with_its_draw() -> None:
    calls = 0

    def fragile(images: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return images * (float("nan") if calls > 6 else 1.0)

    with pytest.raises(cs.InputError, match=r"finite scores.*\(estimation draw 2\)"):
        cs.sample(cs.Segmenter(fragile, num_classes=3), PICTURE, sigma=0.25, n0=2, n=10)


def test_votes_files_of_another_kind_or_missing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="votes must be a file"):
        cs.load_votes(tmp_path / "missing.npz")
    cs.certify(random_votes(0, num_classes=3, n=50, size=(2, 2)), method="sets", alpha=0.5).save(tmp_path / "c.npz")
    with pytest.raises(cs.InputError, match="must be a votes file, got a 'certificate' file"):
        cs.load_votes(tmp_path / "c.npz")
