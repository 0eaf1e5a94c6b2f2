"""certiseg calibrate, certify --calibration and plan --risk, on a small network and a folder of small pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.cli import main
from certiseg.truth.files import load_sets
from tests.truth.small import CLASSES, scenes, write_pictures

MODEL = ("--model", "torch:tests.truth.small:network")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"), *scenes(41))


@pytest.fixture(scope="module")
def calibration(folder: Path) -> Path:
    path = folder / "calibration.json"
    arguments = ["calibrate", "folder", "--root", folder, *MODEL, "--radius", 0.169, "--first", 40, "--out", path]
    assert main(list(map(str, arguments))) == 0
    return path


def run(*arguments: object) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(*arguments) == 2
    message = capsys.readouterr().err.strip()
    assert "\n" not in message
    return message


def test_sets_pictures_and_summaries_are_written(
    calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = calibration.parent / "images/40.png"
    assert run("certify", image, "--calibration", calibration, *MODEL, "--out", tmp_path) == 0
    assert "This is a promise about the truth. With probability at least 0.9" in capsys.readouterr().out
    found, summary = load_sets(tmp_path / "40.truth.npz"), json.loads((tmp_path / "40.truth.json").read_text())
    assert summary["mean_set_size"] == found.mean_size
    assert summary["claim"] == found.claim()
    assert summary["fresh"]
    with Image.open(tmp_path / "40.sizes.png") as picture:
        assert picture.height == 12
    assert run("certify", image, "--calibration", calibration, *MODEL, "--seed", 3, "--out", tmp_path, "--json") == 0
    summary = json.loads(capsys.readouterr().out)[0]
    assert (summary["fresh"], summary["role"], summary["promise"]) == (False, "exploration", "none")
    assert run("certify", image, "--calibration", calibration, *MODEL, "--seed", 3, "--out", tmp_path) == 0
    assert "(exploration, not a promise)" in capsys.readouterr().out


def test_what_the_calibration_settles_is_refused_beside_it(
    calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = calibration.parent / "images/40.png"
    for options in (["--sigma", 0.5], ["-n", 50], ["--method", "sets"], ["--threat", "fog"], ["--radius", 0.1]):
        message = refused(capsys, "certify", image, "--calibration", calibration, *MODEL, *options)
        assert f"{options[0]} must be left out with --calibration" in message


def test_bad_input_is_one_sentence(calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image, root = calibration.parent / "images/40.png", calibration.parent
    begin = ("calibrate", "folder", "--root", root, *MODEL, "--out", tmp_path / "c.json")
    for arguments, sentence in (
        ((*begin, "--radius", 0.169, "--first", 38), "calibration images must be at least 39"),
        ((*begin, "--radius", 0.1, "--sigma", 0), "radius must be 0 without pixel noise"),
        ((*begin, "--classes", "ship"), "classes must be"),
        ((*begin, "--every", 0), "--every must be at least 1"),
        ((*begin, "--model", "compact"), "must have the same classes, got 31 of compact and 4 of folder"),
        ((*begin[:-1], tmp_path / "no/c.json"), "--out must be a file in a folder that is there"),
        (("certify", image, "--calibration", image, *MODEL), "must be"),
        (
            ("certify", image, "--calibration", calibration, *MODEL, "--mean", "1,1,1", "--std", "1,1,1"),
            "mean must be as calibrated",
        ),
    ):
        assert sentence in refused(capsys, *arguments)
    assert not (tmp_path / "c.json").exists()


def test_images_without_labels_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (tmp_path / "classes.txt").write_text("\n".join(CLASSES))
    (tmp_path / "images").symlink_to(folder / "images")
    begin = ("calibrate", "folder", "--root", tmp_path, *MODEL, "--out", tmp_path / "c.json")
    assert "label" in refused(capsys, *begin)


def test_plan_says_how_many_images_a_promise_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "--risk", 0.1, "--radius", 0.169) == 0
    said = capsys.readouterr().out
    assert "risk 0.1, radius 0.169 at sigma 0.25: at least 39 labelled images" in said
    assert "each of two chosen classes: at least 98 images" in said
    assert run("plan", "--risk", 0.1, "--threat", "fog", "--scale", 0.5, "--up-to", 0.5, "--json") == 0
    assert [each["images"] for each in json.loads(capsys.readouterr().out)] == [27, 16, 12, 11]
    assert run("plan", "--risk", 0.1, "--radius", 1e5) == 0
    assert "no number is enough of labelled images" in capsys.readouterr().out
    assert "radius must be a number of at most" in refused(capsys, "plan", "--risk", 0.1, "--radius", 1e9)
    assert "up_to must say up to which parameter fog is covered, got none" in refused(
        capsys, "plan", "--risk", 0.1, "--threat", "fog", "--scale", 1
    )


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled pictures that are not of the calibration."""
    return write_pictures(tmp_path_factory.mktemp("others"), *scenes(41, first=100))


def test_evaluate_tells_what_is_reached_with_and_without_attack(
    calibration: Path, others: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ("evaluate", "folder", "--root", calibration.parent, *MODEL, "--calibration", calibration)
    assert run(*own, "--out", tmp_path / "own") == 0
    assert "1 images here, none of them among those (40 were, and are left out)" in capsys.readouterr().out
    begin = ("evaluate", "folder", "--root", others, *MODEL, "--calibration", calibration)
    assert run(*begin, "--multiples", 0, 1, 40, "--steps", 3, "--out", tmp_path) == 0
    assert "promise about the truth" in capsys.readouterr().out
    clean, inside, beyond = json.loads((tmp_path / "truth.json").read_text())["reached"]
    assert (clean["images"], clean["promised"]) == (41, 0.9)
    assert clean["coverage"] == np.mean([image["held"] >= 0.95 for image in clean["by_image"]])
    assert min(clean["coverage"], inside["coverage"]) > beyond["coverage"] + 0.3  # the noise is fresh each time
    groups = clean["groups"]
    near, far = groups["within 10 pixels of a boundary"]["pixels"], groups.get("further from boundaries", {"pixels": 0})
    by_class = sum(row["pixels"] for name, row in groups.items() if name.startswith("class "))
    by_area = sum(row["pixels"] for name, row in groups.items() if name.startswith("parts "))
    assert (
        near + far["pixels"] == by_class == by_area == sum((label != 255).sum() for label in scenes(41, first=100)[1])
    )
    assert (tmp_path / "truth.md").read_text().startswith("# Sets that hold the truth: folder")
    assert (tmp_path / "coverage.png").stat().st_size > 1000
    sizes = [load_sets(tmp_path / f"{number:02}.truth.npz").mean_size for number in range(41)]
    assert sizes == [image["mean_set_size"] for image in clean["by_image"]]
    assert "--n0 must be left out with --calibration" in refused(capsys, *begin, "--n0", 5, "--out", tmp_path)


def test_a_report_marks_the_sets_as_a_promise_about_the_truth(calibration: Path, tmp_path: Path) -> None:
    image = calibration.parent / "images/40.png"
    assert run("certify", image, "--calibration", calibration, *MODEL, "--out", tmp_path) == 0
    assert run("report", tmp_path / "40.truth.npz", "--image", image, "--out", tmp_path / "r.html") == 0
    text = (tmp_path / "r.html").read_text()
    assert "calibrated sets, a promise about the truth" in text
    assert "This is a promise about the truth" in text
    assert run("report", tmp_path / "40.truth.npz", "--setting", "1:1:0.75", "--out", tmp_path / "s.html") == 2
