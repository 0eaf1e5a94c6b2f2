"""Models that fail: numbers that are none, another answer every time, and a clock that goes back."""

import json
import os

import pytest

from tests.faults.scene import DRAWS, MODEL, assert_one_sentence, evaluate, hashes, run

CERTIFY = ["certify", "data/images/a.png", *MODEL, *DRAWS, "-n", "60"]


@pytest.mark.parametrize("fault", ["poisoned", "infinite"] if "FAULTS" in os.environ else ["poisoned"])
def test_nothing_is_certified_from_numbers_that_are_none(fault, scene, whole):
    out = scene / fault
    code, text = run(scene, evaluate(out), fault=fault)
    assert code == 3, text
    reason = json.loads((out / "left_out.json").read_text())["images"]
    assert list(reason) == ["a"]
    assert "NaN or infinity" in reason["a"]
    assert "estimation draw 54" in reason["a"]
    assert "left out: a" in text
    for part in ("votes", "certificates", "rows"):
        assert not list((out / part).glob("a.*")), part
        assert list((out / part).glob("b.*")), part
    of_others = {name: value for name, value in whole.items() if "/b." in name}
    assert of_others.items() <= hashes(out).items()


def test_a_model_without_a_single_number_is_refused_before_the_first_image(scene):
    code, text = run(scene, evaluate("nothing"), fault="hopeless")
    assert code == 2, text
    assert_one_sentence(text, "model must return finite scores")


def test_when_every_image_fails_the_reasons_are_shown(scene):
    code, text = run(scene, [*evaluate("hopeless"), "--workers", "2"], fault="hopeless")
    assert code == 3, text
    assert "Traceback" not in text
    assert "no image could be used" in text
    for name in "abcd":
        assert f"left out: {name}: model must return finite scores" in text


def test_workers_that_cannot_start_are_one_sentence_and_an_exit_code_of_its_own(scene):
    code, text = run(scene, [*evaluate("stillborn"), "--workers", "2"], fault="stillborn workers")
    assert code == 4, text
    assert_one_sentence(text, "workers must be able to start", "exit code 7")


def test_certify_refuses_numbers_that_are_none(scene):
    code, text = run(scene, [*CERTIFY, "--out", "poisoned_out"], fault="infinite")
    assert code == 2, text
    assert "NaN or infinity" in text
    assert "estimation draw 55" in text
    assert not list((scene / "poisoned_out").glob("*.npz"))


def test_a_model_that_answers_differently_every_time_is_refused_and_found_out(scene):
    code, text = run(scene, [*CERTIFY, "--out", "moody_out"], fault="moody")
    assert code == 2
    assert "must be a fixed function of one image" in text
    code, text = run(scene, [*CERTIFY, "--out", "steady_out"])
    assert code == 0, text
    again = ["--model", MODEL[1], "--image", "data/images/a.png"]
    code, text = run(scene, ["verify", "steady_out/a.certificate.npz", *again], fault="moody")
    assert code == 1
    code, text = run(scene, ["verify", "steady_out/a.certificate.npz"])
    assert code == 0, "the arithmetic of the certificate is right all the same"


def test_a_clock_that_goes_back_changes_nothing(scene, whole):
    code, text = run(scene, evaluate("backwards"), fault="backwards")
    assert code == 0, text
    assert hashes(scene / "backwards") == whole
