"""certiseg evaluate: a plain folder from start to table, resumed, refused, and with a broken image."""

import json

import numpy as np
import pytest
from PIL import Image

from certiseg.cli import main

FACTORY = """
import torch
def small():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 1)
    return torch.nn.Sequential(*layers)
"""

HIERARCHY = """
name: tiny
classes: [road, car, bus, tree]
levels:
  1:
    vehicle: [car, bus]
thresholds: [0.25]
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of three small images, a network and a hierarchy."""
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for index in range(3):
        image = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(image).save(tmp_path / f"data/images/{index}.png")
        Image.fromarray(rng.integers(0, 4, (24, 32), dtype=np.uint8)).save(tmp_path / f"data/labels/{index}.png")
    (tmp_path / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (tmp_path / "evaluated_networks.py").write_text(FACTORY)
    (tmp_path / "tiny.yaml").write_text(HIERARCHY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(*more):
    """Exit code of an evaluation of the folder."""
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml"]
    try:
        return main(["evaluate", "folder", "--root", "data", "--out", "run", *model, *more])
    except SystemExit as stop:
        return stop.code


def test_a_folder_is_evaluated_resumed_and_protected(data, capsys):
    assert evaluate("--json", "--setting", "60:0.75", "100:0.8", "--sigma", "0.1") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    methods = [row["method"] for row in scores]
    assert methods == ["uncertified", *["segcertify", "level:1", "adaptive", "nested", "sets"] * 2]
    assert all(0 <= row["cig"] <= 1 for row in scores[1:])
    assert evaluate("--setting", "60:0.75", "100:0.8", "--sigma", "0.1") == 0
    text = capsys.readouterr().out
    assert "3 images of folder, guaranteed per image with probability 0.999" in text
    assert evaluate("--setting", "60:0.75", "100:0.8", "--sigma", "0.2") == 2
    assert "sigmas" in capsys.readouterr().err


def test_a_broken_label_is_named_and_left_out(data, capsys):
    Image.fromarray(np.zeros((24, 30), np.uint8)).save(data / "data/labels/1.png")
    assert evaluate() == 1
    text = capsys.readouterr().out
    assert "2 images of folder" in text
    assert "left out: 1:" in text


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--setting", "100"], "n:tau"),
        (["--setting", "10:0.75"], "at least"),
        (["--setting", "100:0.3"], "tau"),
        (["--sigma", "0"], "sigma"),
        (["--alpha", "2"], "alpha"),
        (["--methods", "nothing"], "method"),
        (["--methods", "level:7"], "level"),
        (["--methods", "adaptive:0.5,0.1"], "thresholds"),
        (["--methods", "nested", "--correction", "by"], "correction"),
        (["--every", "0"], "every"),
        (["--first", "0"], "first"),
        (["--root", "nowhere"], "nowhere"),
        (["--denoiser", "--sigma", "0.1", "0.2"], "single"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_written(arguments, key, data, capsys):
    assert evaluate(*arguments) == 2
    message = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert len(message) == 1
    assert key in message[0]
    assert not (data / "run").exists()


def test_a_measured_batch_size_is_kept_with_the_run(data, monkeypatch):
    measured = iter([3, 5])
    monkeypatch.setattr("certiseg.models.batching.measured_batch_size", lambda *_, memory: next(measured))
    run = ["--setting", "60:0.75", "--methods", "segcertify", "--memory", "1GiB"]
    assert evaluate(*run) == 0
    assert json.loads((data / "run/manifest.json").read_text())["batch_size"] == 3
    assert evaluate(*run) == 0, "resumed with what was recorded, not measured again"
    assert next(measured) == 5
