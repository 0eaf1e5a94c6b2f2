"""Calibrated sets and calibrations are checked by other means, and a pass is drawn again from its seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg import threats
from certiseg.cli import main
from certiseg.hierarchy import hierarchy_from_dict
from certiseg.truth.answer import TruthSets
from certiseg.truth.calibration import Calibration
from certiseg.truth.verify import verify_truth
from certiseg.verify import Verification
from tests.truth.small import CLASSES, TREE, network, scene, scenes, write_pictures

MODEL = network()
DEEP = hierarchy_from_dict(
    {"classes": list(CLASSES), "levels": {1: {"thing": ["tree", "car"], "place": ["sky", "road"]}}}, source="deep"
)


def made(**settings: object) -> Calibration:
    images, labels = scenes(45)
    return cs.calibrate(MODEL, images, labels, **{"risk": 0.1, "hierarchy": TREE, **settings})


def labelled() -> list[tuple[np.ndarray, np.ndarray]]:
    """More than the images of the calibrations, in another order."""
    return list(zip(*scenes(60), strict=True))[::-1]


def checked(found: TruthSets | Calibration, folder: Path, **asked: object) -> Verification:
    path = folder / ("s.truth.npz" if isinstance(found, TruthSets) else "c.json")
    found.save(path)
    return verify_truth(path, **asked)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sigma": 0.0},
        {"risk": 0.5},  # 46 scores and images: a rank without rounding
        {"radius": 0.169, "risk": (0.1, 0.3), "pixels": (0.95, 0.5)},
        {"classes": ("car", "tree"), "risk": 0.2},
        {"score": "adaptive"},
        {"score": "vertex", "hierarchy": DEEP},
        {"threat": threats.fog(0.5), "sigma": 0.0, "up_to": 0.5, "anchors": 2},
        {"threat": threats.gamma(0.5), "sigma": 0.0, "up_to": 0.3},
        {"threat": threats.fog(0.5), "sigma": 0.25, "radius": 0.05, "up_to": 0.3},
    ],
    ids=str,
)
def test_what_is_true_passes(settings: dict[str, object], tmp_path: Path) -> None:
    calibration, image = made(**settings), scene(200)[0]
    outcome = checked(calibration.answer(MODEL, image), tmp_path, model=MODEL, image=image)
    assert outcome.passed, outcome.checks
    assert [check.name for check in outcome.checks] == ["file", "thresholds", "model", "redraw"]
    again = checked(calibration, tmp_path)
    assert again.passed
    scored = checked(calibration, tmp_path, model=MODEL, samples=labelled())
    assert scored.passed, scored.checks
    assert scored.believed == ""
    assert "scores, hashes and sizes" in again.believed
    assert any("hierarchy is taken as it is stored" in note for note in again.notes) == (
        "score" in settings and "hierarchy" in settings
    )


def smaller(sets: TruthSets) -> TruthSets:
    packed = sets.packed.copy()
    row, column = np.argwhere(sets.size > 0)[0]
    packed[row, column] = 0
    return replace(sets, packed=packed)


LIES: dict[str, Callable[[TruthSets], TruthSets]] = {
    "a set without its classes": smaller,
    "another seed": lambda sets: replace(sets, seed=sets.seed + 1),
    "another image": lambda sets: replace(sets, image_key="0" * 64),
    "sets of another level": lambda sets: replace(sets, level=(0.3, 0.95)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_the_sets_is_found_by_drawing_again(lie: str, tmp_path: Path) -> None:
    image = scene(200)[0]
    told = LIES[lie](made(risk=(0.1, 0.3)).answer(MODEL, image))
    outcome = checked(told, tmp_path, model=MODEL, image=image)
    assert [check.name for check in outcome.checks if not check.passed] == ["redraw"]


def test_another_model_or_photograph_is_found(tmp_path: Path) -> None:
    found = made().answer(MODEL, scene(200)[0])
    other = checked(found, tmp_path, model=network(seed=1), image=scene(200)[0])
    assert "model must be the calibrated one" in other.checks[-1].detail
    assert "not the one the sets are of" in checked(found, tmp_path, model=MODEL, image=scene(201)[0]).checks[-1].detail


def test_sets_of_another_shape_are_not_taken_for_those_of_the_image(tmp_path: Path) -> None:
    """A row that agrees with as many pixels of the image as it has itself would pass by broadcasting."""
    image = scene(200)[0]
    found = made().answer(MODEL, image)
    row = replace(found, packed=found.packed[:1])
    outcome = checked(row, tmp_path, model=MODEL, image=image)
    assert "and there are sets for (1, 16)" in outcome.checks[-1].detail
    assert not outcome.checks[-1].passed
    with pytest.raises(cs.InputError, match="image must have the size of the sets"):
        row.overlay(image)
    assert not checked(replace(found, packed=found.packed[:0]), tmp_path).passed


def test_a_calibration_is_compared_with_a_model_that_is_given(tmp_path: Path) -> None:
    assert checked(made(), tmp_path, model=MODEL).passed
    other = checked(made(), tmp_path, model=network(seed=1))
    assert [check.name for check in other.checks if not check.passed] == ["model"]


def test_another_name_of_the_model_is_told(tmp_path: Path) -> None:
    calibration, image = made(), scene(200)[0]
    named = replace(calibration, model=replace(calibration.model, name="audited"))
    outcome = checked(named.answer(MODEL, image), tmp_path, model=MODEL, image=image)
    assert "the file calls the model 'audited', here it is 'small'" in outcome.notes


def test_a_lie_about_the_calibration_images_is_found_by_scoring_again(tmp_path: Path) -> None:
    honest, image = made(classes=("car",), risk=0.2), scene(200)[0]
    lies = {
        "scores": replace(honest, scores=honest.scores + np.uint32(2**20)),
        "keys": replace(honest, keys=("0" * 64, *honest.keys[1:])),
        "sizes": replace(honest, sizes=(*honest.sizes, (24, 32))),
        "classes": replace(honest, class_scores={"car": honest.class_scores["car"] + np.uint32(1)}),
        "data": replace(honest, data_sha256="0" * 64),
    }
    for name, lie in lies.items():
        found = lie.answer(MODEL, image)
        assert checked(found, tmp_path, model=MODEL, image=image).passed, f"{name} is believed"
        outcome = checked(found, tmp_path, model=MODEL, image=image, samples=labelled())
        assert [check.name for check in outcome.checks if not check.passed] == ["scores"], name
    few = checked(honest, tmp_path, model=MODEL, samples=labelled()[:10])
    assert "scores" in [check.name for check in few.checks if not check.passed]
    others = [(picture, np.where(label == 3, 0, label)) for picture, label in labelled()]
    assert not checked(honest, tmp_path, model=MODEL, samples=others).passed


def test_thresholds_that_do_not_follow_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the checker itself: the package, which would refuse to read them, is made to believe them."""
    found = made(radius=0.169)
    honest = Calibration.thresholds
    monkeypatch.setattr(Calibration, "thresholds", lambda self, **level: honest(self, **level) + 1)
    outcome = checked(found, tmp_path)
    assert [check.name for check in outcome.checks if not check.passed] == ["thresholds"]


def test_notes_say_what_was_not_checked(tmp_path: Path) -> None:
    image = scene(200)[0]
    fresh, given = (checked(made().answer(MODEL, image, seed), tmp_path) for seed in (None, 1))
    assert any(
        "scores, hashes and sizes of the calibration images are taken as they are stored" in note
        for note in fresh.notes
    )
    assert any("nobody knew the seed" in note for note in fresh.notes)
    assert any("these sets are exploration, not a promise" in note for note in given.notes)
    assert not fresh.redrawn


def test_the_command_checks_sets_and_calibrations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = scene(200)[0]
    Image.fromarray((image * 255).round().astype(np.uint8)).save(tmp_path / "i.png")
    calibration = made()
    found = calibration.answer(MODEL, tmp_path / "i.png")
    found.save(tmp_path / "i.truth.npz")
    calibration.save(tmp_path / "c.json")
    asked = [str(tmp_path / name) for name in ("i.truth.npz", "c.json")]
    assert main(["verify", *asked]) == 0
    told = capsys.readouterr().out
    assert "i.truth.npz: verified, as far as the sets are what was drawn, and scores, hashes and sizes of" in told
    assert "c.json: verified, as far as scores, hashes and sizes of the calibration images are theirs" in told
    redraw = ["--model", "torch:tests.truth.small:network", "--image", str(tmp_path / "i.png")]
    assert main(["verify", asked[0], *redraw]) == 0
    assert "the sets of 192 of 192 pixels are the same" in capsys.readouterr().out
    folder = write_pictures(tmp_path / "pictures", *scenes(45))
    on_disk = cs.calibrate(MODEL, sorted((folder / "images").iterdir()), scenes(45)[1], hierarchy=TREE)
    on_disk.save(tmp_path / "d.json")
    again = ["--dataset", "folder", "--root", str(folder)]
    assert main(["verify", str(tmp_path / "d.json"), *redraw[:2], *again]) == 0
    told = capsys.readouterr().out
    assert "d.json: verified\n" in told
    assert "45 of 45 calibration images have the same scores" in told
    assert main(["verify", asked[1], *redraw[:2], *again]) == 1
    assert main(["verify", asked[1], *again]) == 2
    assert main(["verify", asked[1], *again[2:]]) == 2
    smaller(found).save(tmp_path / "i.truth.npz")
    assert main(["verify", asked[0], *redraw]) == 1
    assert main(["verify", asked[0], "--hierarchy", "camvid"]) == 2


def test_a_damaged_file_fails(tmp_path: Path) -> None:
    made().save(tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace("0.95", "0.99", 1))
    assert not verify_truth(tmp_path / "c.json").passed
