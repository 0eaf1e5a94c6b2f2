"""Models that fail: numbers that are none, another answer every time, and a clock that goes back."""

import json
import os

import pytest

from tests.faults.scene import DRAWS, MODEL, evaluate, hashes, run

CERTIFY = ["certify", "data/images/a.png", *MODEL, *DRAWS, "-n", "60"]


@pytest.mark.parametrize("fault", ["poisoned", "infinite"] if "FAULTS" in os.environ else ["poisoned"])
def test_nothing_is_certified_from_numbers_that_are_none(fault, scene, whole):
    out = scene / fault
    code, text = run(scene, evaluate(out), fault=fault)
    assert code == 1, text
    reason = json.loads((out / "left_out.json").read_text())
    assert list(reason) == ["a"]
    assert "NaN or infinity" in reason["a"]
    assert "estimation draw 57" in reason["a"]
    assert "left out: a" in text
    for part in ("votes", "certificates", "rows"):
        assert not list((out / part).glob("a.*")), part
        assert list((out / part).glob("b.*")), part
    of_others = {name: value for name, value in whole.items() if "/b." in name}
    assert of_others.items() <= hashes(out).items()


def test_certify_refuses_numbers_that_are_none(scene):
    code, text = run(scene, [*CERTIFY, "--out", "poisoned_out"], fault="infinite")
    assert code == 2, text
    assert "NaN or infinity" in text
    assert "estimation draw 57" in text
    assert not list((scene / "poisoned_out").glob("*.npz"))


def test_verify_names_a_model_that_answers_differently_every_time(scene):
    code, text = run(scene, [*CERTIFY, "--out", "moody_out"], fault="moody")
    assert code == 0, text
    again = ["--model", MODEL[1], "--image", "data/images/a.png"]
    code, text = run(scene, ["verify", "moody_out/a.certificate.npz", *again], fault="moody")
    assert code == 1
    assert "not deterministic" in text
    code, text = run(scene, ["verify", "moody_out/a.certificate.npz"])
    assert code == 0, "the arithmetic of the certificate is right all the same"


def test_a_clock_that_goes_back_changes_nothing(scene, whole):
    code, text = run(scene, evaluate("backwards"), fault="backwards")
    assert code == 0, text
    assert hashes(scene / "backwards") == whole
