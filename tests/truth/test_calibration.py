"""Calibrations: against brute force, their file, what they refuse, and what they say."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg import threats
from certiseg.images import read_image
from certiseg.models.segmenter import as_batch
from certiseg.noise import image_key
from certiseg.truth.calibration import Calibration
from certiseg.truth.draw import noisy_image
from certiseg.truth.evaluate import evaluate_sets
from certiseg.truth.files import load_calibration, load_sets
from certiseg.truth.scores import UNIT
from certiseg.truth.settings import CalibrationSettings
from tests.truth.small import CLASSES, TREE, network, scene, scenes

MODEL = network()


def made(count: int = 20, **settings: object) -> Calibration:
    images, labels = scenes(count)
    return cs.calibrate(MODEL, images, labels, **{"risk": 0.1, "seed": 5, "hierarchy": TREE, **settings})


def softmax_of(pixels: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return MODEL.model(as_batch(pixels[None])).softmax(1)[0].permute(1, 2, 0).numpy()


def test_without_a_radius_it_is_split_conformal_prediction() -> None:
    """A brute-force statement of it, with posteriors from torch: scores, rank and sets."""
    calibration, settings = made(25, sigma=0.0), CalibrationSettings(sigma=0.0)
    scores = []
    for image, label in zip(*scenes(25), strict=True):
        known = label != 255
        truth = np.sort(np.take_along_axis(softmax_of(image), np.where(known, label, 0)[..., None], 2)[..., 0][known])
        scores.append(max(q for q in truth if (truth >= q).mean() >= 0.95))
    q = sorted(scores, reverse=True)[int(np.ceil(26 * 0.9)) - 1]
    assert calibration.thresholds()[0] / UNIT == pytest.approx(q, abs=1e-6)
    image = scene(99)[0]
    noisy = noisy_image(image, settings, seed=1, key=image_key(image))
    np.testing.assert_array_equal(noisy, image)
    clear = np.abs(softmax_of(image) - q) > 1e-5
    np.testing.assert_array_equal(calibration.sets(MODEL, image)[clear], (softmax_of(image) >= q)[clear])


def test_the_radius_asks_for_more_than_the_risk() -> None:
    plain, robust = made(45), made(45, radius=0.169)
    assert robust.thresholds()[0] == plain.scores.min() < plain.thresholds()[0]
    with pytest.raises(cs.InputError, match=r"calibration images must be at least 39 for risk 0.1, radius 0.169"):
        made(38, radius=0.169)


class Asked(torch.nn.Module):
    """A network that several threads may ask at once, and who asked it."""

    reentrant = True

    def __init__(self) -> None:
        super().__init__()
        self.layer = network().model
        self.asked: list[tuple[int, int]] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.asked.append((threading.get_ident(), torch.get_num_threads()))
        time.sleep(0.02)  # long enough for another thread to begin, on a busy machine, too
        return self.layer(images)


def test_many_images_are_asked_about_at_once_and_answered_as_one_after_the_other() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        network = Asked()
        model = cs.Segmenter(network, class_names=CLASSES, name="small")
        images, labels = scenes(20)
        calibration = cs.calibrate(model, images, labels, seed=5, hierarchy=TREE)
        np.testing.assert_array_equal(calibration.scores, made().scores)
        assert calibration.data_sha256 == made().data_sha256
        calibration.require_model(model)
        network.asked.clear()
        found = list(calibration.answers(model, iter(images), 7))
        assert len({thread for thread, _ in network.asked}) > 1
        assert {threads for _, threads in network.asked} == {1}
        network.asked.clear()
        for image, sets in zip(images, found, strict=True):
            alone = calibration.answer(model, image, 7)
            np.testing.assert_array_equal(sets.packed, alone.packed)
            assert (sets.seed, sets.image_key, sets.claim()) == (alone.seed, alone.image_key, alone.claim())
        assert set(network.asked) == {(threading.get_ident(), 2)}, "one image has all threads"
        assert len({sets.seed for sets in calibration.answers(model, images)}) == 20, "each has noise of its own"
        assert torch.get_num_threads() == 2
        started = threading.Thread(target=lambda: network.asked.append((0, torch.get_num_threads())))
        started.start()
        started.join()
        assert network.asked[-1] == (0, 2), "threads to come have all of them again"
    finally:
        torch.set_num_threads(before)


def test_the_noise_is_fresh_unless_a_seed_is_given_and_recorded() -> None:
    calibration, image = made(), scene(50)[0]
    first, second = calibration.answer(MODEL, image), calibration.answer(MODEL, image)
    assert first.seed != second.seed
    assert first.fresh
    again = calibration.answer(MODEL, image, first.seed)
    np.testing.assert_array_equal(again.members, first.members)
    assert not again.fresh
    assert "Exploration, not a promise" in again.claim()
    assert "Exploration" not in first.claim()
    assert made(seed=None).seed != made(seed=None).seed


def test_levels_are_promises_of_their_own() -> None:
    calibration, image = made(45, risk=(0.1, 0.3), pixels=(0.95, 0.5)), scene(60)[0]
    strict = calibration.sets(MODEL, image, 1)
    for level in ({"risk": 0.3}, {"pixels": 0.5}, {"risk": 0.3, "pixels": 0.5}):
        looser = calibration.sets(MODEL, image, 1, **level)
        assert strict.sum() >= looser.sum()
        assert not (looser & ~strict).any()
    assert "A comparison" in calibration.claim(risk=0.3)
    assert "A comparison" not in calibration.claim()
    with pytest.raises(cs.InputError, match="risk must be one of those calibrated"):
        calibration.sets(MODEL, image, risk=0.2)


def test_a_chosen_class_has_a_threshold_of_its_own_from_images_that_contain_it() -> None:
    calibration = made(45, classes=("car", "tree"), risk=0.2)
    labels = scenes(45)[1]
    assert len(calibration.class_scores["car"]) == sum((label == 3).any() for label in labels) < 45
    plain, own = made(45, risk=0.2).thresholds(), calibration.thresholds()
    assert own[0] == own[2] == plain[0]
    for index in (1, 3):
        name = CLASSES[index]
        rank = int(np.floor((len(calibration.class_scores[name]) + 1) * 0.1))
        assert own[index] == min(plain[0], np.sort(calibration.class_scores[name][:, 0])[rank - 1])
    assert "A second promise, with probability 0.9 each" in calibration.claim()


def test_the_worst_anchor_scores_and_more_anchors_need_fewer_images() -> None:
    fog = {"threat": threats.fog(0.5), "sigma": 0.0, "up_to": 0.5}
    one, two = made(30, **fog), made(30, **fog, anchors=2)
    assert (two.scores <= one.scores).all()
    assert (two.scores < one.scores).any()
    assert one.settings.miss(0.1) < two.settings.miss(0.1)
    np.testing.assert_array_equal(one.sets(MODEL, scene(70)[0], 3).shape, (12, 16, 4))
    assert "fog of density up to 39 %" in one.claim()


def test_gamma_is_covered_on_both_sides() -> None:
    settings = CalibrationSettings(threat=threats.gamma(0.5), sigma=0.0, up_to=0.6, anchors=3)
    assert settings.places == pytest.approx((-0.4, 0.0, 0.4))
    assert float(settings.miss(0.1)) == pytest.approx(float(CalibrationSettings(sigma=0.5, radius=0.2).miss(0.1)))


# -- the file ----------------------------------------------------------------------------------------------------


def test_a_saved_calibration_gives_the_same_sets(tmp_path: Path) -> None:
    calibration, image = made(45, classes=("car",), radius=0.1, risk=(0.2, 0.3)), scene(80)[0]
    calibration.save(tmp_path / "c.json")
    found = load_calibration(tmp_path / "c.json")
    np.testing.assert_array_equal(found.sets(MODEL, image, 1), calibration.sets(MODEL, image, 1))
    assert found.claim() == calibration.claim()
    assert found.data_sha256 == calibration.data_sha256 != made(44).data_sha256
    images, labels = scenes(20)
    assert cs.calibrate(MODEL, images[::-1], labels[::-1]).data_sha256 == made(20).data_sha256


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    made().save(path)
    text = path.read_text()
    for old, new in (('"risk"', '"Risk"'), ("0.1", "0.2"), ("small", "smell")):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(cs.InputError, match="do not match its SHA-256"):
            load_calibration(path)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """An editor shows the first, a program takes the last."""
    import hashlib

    made().save(tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text().replace("{", '{\n "claim": "All is true.",', 1)
    body = text[: text.rindex('"sha256": "') + len('"sha256": "')]
    (tmp_path / "c.json").write_text(f'{body}{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n')
    with pytest.raises(cs.InputError, match="name every key once"):
        load_calibration(tmp_path / "c.json")


def test_a_sealed_lie_is_refused(tmp_path: Path) -> None:
    from certiseg.runs.sealed import write_sealed

    content = made().content()
    lower = [[row[0] + 1] for row in content["scores"]]
    ghost = {"class_scores": {"ghost": lower[:2]}}
    model = content["model"]
    odd = [{"sizes": sizes} for sizes in ([], [[12]], [[13, 16]], [[12, 16], [2**60, 1]], [[12, 0]], [[12, "16"]], 3)]
    odd += [
        {"model": {**model, **other}}
        for other in ({"sha256": {}}, {"size": [12]}, {"probe": 1}, {"class_names": ["a"]})
    ]
    odd += [{"keys": keys} for keys in ([], content["keys"][:1] * 20, list(range(20)))] + [
        {"data_sha256": 1},
        {"fresh": 1.5},
        {"seed": "7"},
        {"scores": [[2**32 - 1]] * 20},
        {"hierarchy": None, "settings": {**content["settings"], "score": "vertex"}},
        {"hierarchy": cs.flat_hierarchy(CLASSES[::-1]).as_dict()},
    ]
    for lie in (*odd, {"scores": lower}, {"claim": "All is true."}, {"images": 21}, {"scores": lower[:5]}, ghost):
        write_sealed(tmp_path / "c.json", "calibration", json.loads(json.dumps({**content, **lie})))
        with pytest.raises(cs.InputError):
            load_calibration(tmp_path / "c.json")


def test_another_model_is_refused() -> None:
    calibration, image = made(), scene(90)[0]
    with pytest.raises(cs.InputError, match="model must be the calibrated one"):
        calibration.sets(network(seed=1), image)
    with pytest.raises(cs.InputError, match="classes must be as calibrated"):
        calibration.sets(MODEL.adjusted(class_names=tuple(reversed(CLASSES))), image)
    with pytest.raises(cs.InputError, match="mean must be as calibrated"):
        calibration.sets(MODEL.adjusted(mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0)), image)


def test_callables_without_weights_are_told_apart_by_what_they_answer() -> None:
    images, labels = scenes(12)
    one, other = (cs.Segmenter(lambda x, k=k: torch.cat([x, k - x[:, :1]], 1)) for k in (1, 2))
    calibration = cs.calibrate(one, images, labels)
    calibration.sets(one, images[0])
    with pytest.raises(cs.InputError, match="model must be the calibrated one"):
        calibration.sets(other, images[0])


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sigma": 0.0, "radius": 0.1}, "radius must be 0 without pixel noise, got 0.1"),
        ({"risk": 1.0}, r"risk must lie in \(0, 1\)"),
        ({"pixels": 0.0}, r"pixels must lie in \(0, 1\]"),
        ({"risk": (0.1, 0.1)}, "risk must be one or several different numbers"),
        ({"score": "best"}, "score must be one of posterior, adaptive, vertex"),
        ({"classes": ("car",), "score": "vertex"}, "classes must be left out for the score vertex"),
        ({"classes": ("ship",)}, "classes must be one of sky, tree, road, car, ..., got 'ship'"),
        ({"up_to": 0.5}, "up_to must come with a threat"),
        ({"threat": threats.fog(0.5), "sigma": 0.0}, "up_to must say up to which parameter fog is covered, got none"),
        ({"threat": threats.fog(0.5), "sigma": 0.0, "up_to": -1.0}, "up_to must be a positive parameter"),
        ({"threat": threats.fog(0.5, depth=np.ones((12, 16))), "up_to": 0.1}, "threat must not carry a depth map"),
        ({"threat": threats.gamma(0.5), "radius": 0.1, "up_to": 0.1}, "gamma"),
        ({"anchors": 2}, "anchors must be 1 without a threat"),
        ({"sigma": 1e-50, "radius": 0.1}, "radius must be 0 without pixel noise"),
        ({"radius": "0.1"}, "radius must be a number of at most 1e.06"),
        ({"temperature": None}, "temperature must be a number of at most"),
        ({"threat": "fog"}, "threat must be one of certiseg.threats"),
        ({"classes": 3}, "classes must be names of classes"),
        ({"seed": "7"}, "seed must be a whole number, or left out"),
        ({"seed": True}, "seed must be a whole number, or left out"),
        ({"radius": 1e5}, "no number of images is enough"),
    ],
)
def test_bad_settings_are_one_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(cs.InputError, match=sentence) as caught:
        made(20, **settings)
    assert "\n" not in str(caught.value)


def test_bad_images_are_one_sentence() -> None:
    images, labels = scenes(12)
    void = np.full_like(labels[0], 255)
    for given_labels, sentence in (
        ([*labels[:-1], None], "labels must be given for every calibration image, got none for image 12"),
        ([*labels[:-1], void], "labels must have a labelled pixel in every image, got none in image 12"),
        (labels[:-1], "images and labels must be equally many"),
    ):
        with pytest.raises(cs.InputError, match=sentence):
            cs.calibrate(MODEL, images, given_labels)
    with pytest.raises(cs.InputError, match="images must be different, got one twice"):
        cs.calibrate(MODEL, [*images[:-1], images[0]], [*labels[:-1], labels[0]])
    other = labels[0].copy()
    other[0, 0] = 255
    with pytest.raises(cs.InputError, match="images must be different, got one twice"):
        cs.calibrate(MODEL, [*images[:-1], images[0]], [*labels[:-1], other])
    with pytest.raises(cs.InputError, match=r"images with car must be at least 9 .* got 0"):
        cs.calibrate(MODEL, images, [np.where(label == 3, 255, label) for label in labels], classes=("car",))
    with pytest.raises(cs.InputError, match="hierarchy must be given for the score vertex"):
        cs.calibrate(MODEL, images, labels, score="vertex")


# -- the sets of an image ----------------------------------------------------------------------------------------


def test_sets_of_an_image_are_saved_and_read(tmp_path: Path) -> None:
    found = made().answer(MODEL, scene(95)[0])
    found.save(tmp_path / "s.npz")
    again = load_sets(tmp_path / "s.npz")
    np.testing.assert_array_equal(again.members, found.members)
    assert (again.claim(), again.seed, again.level) == (found.claim(), found.seed, found.level)
    members = {CLASSES[c] for c in np.flatnonzero(found.members[3, 4])}
    assert set(again.labels_at(3, 4)) == members
    with pytest.raises(cs.InputError, match="row and column must lie in the image"):
        found.labels_at(12, 0)


def test_a_set_holds_the_classes_of_its_bits_and_a_file_of_more_is_refused(tmp_path: Path) -> None:
    found = made().answer(MODEL, scene(95)[0])
    for index, name in enumerate(CLASSES):
        np.testing.assert_array_equal(found.holds(np.full(found.size.shape, index)), found.members[..., index], name)
    assert not found.holds(np.full(found.size.shape, 255, np.uint8)).any()
    assert not found.holds(np.full(found.size.shape, -1)).any()
    assert len(CLASSES) % 8, "there are bits beyond the classes"
    replace(found, packed=found.packed | 1).save(tmp_path / "more.npz")
    with pytest.raises(cs.InputError, match="beyond the"):
        load_sets(tmp_path / "more.npz")


def test_what_is_no_promise_says_so() -> None:
    """Another level, a given seed, and an image of the calibration, whose score is among those of the threshold."""
    calibration, image = made(45, risk=(0.1, 0.3), seed=None), scene(60)[0]
    own = scenes(1)[0][0]
    for answer, role, word in (
        (calibration.answer(MODEL, image), "promise", "This is a promise about the truth."),
        (calibration.answer(MODEL, image, risk=0.3), "comparison", "A comparison:"),
        (calibration.answer(MODEL, image, 3), "exploration", "the seed of the noise was given"),
        (calibration.answer(MODEL, own), "exploration", "the image is one of the calibration images"),
        (calibration.answer(MODEL, own, risk=0.3), "exploration", "A comparison:"),
    ):
        assert answer.role == role
        assert word in answer.claim()
        assert ("This is a promise" in answer.claim()) == (role == "promise") == (answer.summary()["promise"][0] == "a")


def test_doubts_about_the_conditions_are_told() -> None:
    calibration, image = made(seed=None), scene(60)[0]
    assert "hardly drawn like them" not in calibration.answer(MODEL, image).claim()
    assert "No calibration image has the size of this one, 15x12" in calibration.answer(MODEL, image[:, :15]).claim()
    assert "seed of the calibration was given" not in calibration.claim()
    assert "seed of the calibration was given" in made(seed=5).claim()


def test_coverage_is_not_counted_on_the_images_of_the_calibration() -> None:
    calibration = made()
    images, labels = scenes(3, first=18)
    samples = [(str(number), *pair) for number, pair in enumerate(zip(images, labels, strict=True))]
    found = evaluate_sets(calibration, MODEL, samples)[0]
    assert ([image["name"] for image in found.images], found.left_out) == (["2"], 2)
    with pytest.raises(cs.InputError, match="got none with a labelled pixel, and 2 of the calibration"):
        evaluate_sets(calibration, MODEL, samples[:2])


def test_sets_are_laid_over_their_own_image_alone() -> None:
    found = made().answer(MODEL, scene(96)[0])
    with pytest.raises(cs.InputError, match="image must be the image that was certified, but its pixels are others"):
        found.overlay(scene(97)[0])


def test_a_summary_counts_what_the_sets_hold() -> None:
    found = made().answer(MODEL, scene(96)[0])
    summary = found.summary()
    assert summary["mean_set_size"] == pytest.approx(found.members.sum() / found.members[..., 0].size)
    assert sum(summary["set_sizes"].values()) == pytest.approx(1)
    assert sum(summary["in_sets"].values()) == pytest.approx(summary["mean_set_size"])
    assert summary["singletons"] == pytest.approx((found.members.sum(-1) == 1).mean())
    picture = found.overlay(read_image(scene(96)[0]))
    assert picture.height == 12
    assert picture.width > 16
