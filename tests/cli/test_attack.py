"""certiseg attack: images and runs, exit codes, the page, and sentences for what cannot be attacked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from certiseg.attack import run as attack_run
from certiseg.cli import main

from ..attack.small import picture, red_model

QUICK = ["--multiples", "1", "16", "--steps", "3", "--restarts", "1", "--samples", "1", "--draws", "60"]
CERTIFY = ["--method", "segcertify", "-n", "120", "--alpha", "0.01"]


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A picture, and a model for it in place of the one that the options name."""
    monkeypatch.setattr("certiseg.models.choice.load_model", lambda *_, **__: red_model())
    path = tmp_path / "red.png"
    Image.fromarray(picture()).save(path)
    return str(path)


def test_an_image_is_certified_attacked_and_written_up(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "robustness.md"
    assert main(["attack", image, *CERTIFY, *QUICK, "--out", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "red.png: pixel at 16 R: refuted 1 of 1" in printed
    assert "was refuted within R" in printed
    text = page.read_text("utf-8")
    assert "| pixel | 16 R |" in text
    assert "1 image, method segcertify, sigma = 0.25, gaussian noise, n = 120" in text


def test_json_holds_every_attack(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", image, *CERTIFY, *QUICK, "--targets", "pixel", "--noise", "grid", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(a["target"], a["multiple"], a["refuted"]) for a in answer["attacks"]] == [
        ("pixel", 1, 0),
        ("pixel", 16, 1),
    ]
    assert len(answer["rows"]) == 2


def test_a_certificate_refuted_within_the_radius_is_exit_code_1(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = attack_run.judge

    def all_missed(*args: Any, **options: Any) -> Any:
        verdict = own(*args, **options)
        verdict.refuted[:] = True
        return verdict

    monkeypatch.setattr(attack_run, "judge", all_missed)
    assert main(["attack", image, *CERTIFY, *QUICK, "--targets", "pixel"]) == 1


def test_what_cannot_be_attacked_is_a_sentence_and_exit_code_2(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([image, str(tmp_path)], "RUN must stand alone"),
        ([str(tmp_path / "empty")], "must be a run folder"),
        ([image, *CERTIFY, *QUICK[:-1], "5"], "draws must be enough to refute"),
        ([image, *CERTIFY, "--multiples", "2", "1"], "multiples must be positive and rise"),
    ):
        assert main(["attack", *arguments]) == 2
        answer = capsys.readouterr().err
        assert message in answer
        assert answer.count("\n") == 1
    from certiseg.models.synthetic import SyntheticSegmenter

    model = SyntheticSegmenter(np.full((18, 18, 2), 0.5))
    monkeypatch.setattr("certiseg.models.choice.load_model", lambda *_, **__: model)
    assert main(["attack", image]) == 2
    assert "torch module that gives scores" in capsys.readouterr().err


NETWORK = """
import torch
class Red(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steepness = torch.nn.Parameter(torch.tensor(8.0))
    def forward(self, images):
        red = images[:, 0]
        return self.steepness * torch.stack([0.5 - red, red - 0.5, torch.full_like(red, -2.0)], dim=1)
def red():
    return Red()
"""
TREE = """
name: tiny
classes: [dark, bright, none]
levels:
  1:
    any: [dark, bright]
thresholds: [0.25]
"""


def test_a_run_is_attacked_with_its_own_model_and_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("images", "labels"):
        (tmp_path / "data" / name).mkdir(parents=True)
    Image.fromarray(picture()).save(tmp_path / "data/images/a.png")
    Image.fromarray((picture()[..., 0] > 127).astype(np.uint8)).save(tmp_path / "data/labels/a.png")
    (tmp_path / "data/classes.txt").write_text("dark\nbright\nnone\n")
    (tmp_path / "attacked_networks.py").write_text(NETWORK)
    (tmp_path / "tiny.yaml").write_text(TREE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = ["--model", "torch:attacked_networks:red", "--hierarchy", "tiny.yaml"]
    wanted = ["--methods", "segcertify", "--setting", "100:0.75", "--alpha", "0.1", "--objects", "bright"]
    assert main(["evaluate", "folder", "--root", "data", *model, *wanted, "--out", "run"]) == 0
    capsys.readouterr()
    attack = ["attack", "run", "--root", "data", "--method", "segcertify", "--targets", "pixel", *QUICK]
    assert main([*attack, *model, "--json"]) == 0
    near, far = json.loads(capsys.readouterr().out)["attacks"]
    assert (near["refuted"], far["refuted"], near["image"]) == (0, 1, "a")
    assert near["accuracy"] > 0.9
    objects = [*attack, *model, "--targets", "object", "--most-objects", "1"]
    assert main([*objects, "--json"]) == 0
    near, far = json.loads(capsys.readouterr().out)["attacks"]
    assert (near["target"], near["refuted"], far["refuted"]) == ("object", 0, 1)
    assert main([*objects, "--objects", "bright"]) == 2
    assert "--objects must be left out for a run" in capsys.readouterr().err
    assert main(["attack", "data/images/a.png", *model, *objects[4:], "--objects", "bright", "--alpha", "0.1"]) == 0
    assert "object at 1 R: refuted 0 of 1" in capsys.readouterr().out
    assert main([*attack, *model, "--method", "sets"]) == 2
    assert "--method must be one of the run's, segcertify" in capsys.readouterr().err
    assert main([*attack, *model, "--bgr"]) == 2
    assert "--model must be the one of the run" in capsys.readouterr().err
