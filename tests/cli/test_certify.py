"""certiseg certify and verify, end to end on the synthetic scene and on a small network."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.cli import COMMANDS, main
from certiseg.models.synthetic import synthetic_scene

FACTORY = """
import torch
def small(num_classes=19):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, num_classes, 1)
    return torch.nn.Sequential(*layers)
def broken():
    return lambda images: images * float("nan")
"""


@pytest.fixture
def scene(tmp_path):
    """The synthetic model's own image, as a file."""
    path = tmp_path / "scene.png"
    Image.fromarray((synthetic_scene().image * 255).round().astype(np.uint8)).save(path)
    return path


@pytest.fixture
def factory(tmp_path, monkeypatch):
    (tmp_path / "small_networks.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    return "torch:small_networks:small"


def run(*arguments):
    """Exit code of a command, whether it returns or exits."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def refused(capsys, out, *arguments):
    """The one sentence with which a command refuses, having written nothing."""
    assert run(*arguments, "--out", out) == 2
    message = capsys.readouterr().err.strip()
    assert message.count("\n") == 0
    assert not out.exists() or not list(out.iterdir())
    return message


@pytest.mark.parametrize("method", ["segcertify", "adaptive", "level", "nested", "sets"])
def test_certify_writes_four_files_that_agree(method, scene, tmp_path, capsys):
    out = tmp_path / "out"
    options = {"level": ["--level", 1], "adaptive": ["--thresholds", "0,0,0.25"]}.get(method, [])
    assert run("certify", scene, "--model", "synthetic", "--method", method, "--out", out, *options) == 0
    assert "With probability at least 0.999" in capsys.readouterr().out
    certificate = cs.load_certificate(out / "scene.certificate.npz")
    summary = json.loads((out / "scene.json").read_text())
    assert summary["abstain"] == certificate.abstain_rate
    assert sum(summary["labels"].values()) == pytest.approx(1)
    with Image.open(out / "scene.labels.png") as labels:
        found = np.asarray(labels).astype(int)
        white = np.asarray(labels.convert("RGB")).min(axis=-1) == 255
    expected = np.where(certificate.vertex < 0, 256 + certificate.vertex, certificate.vertex)
    assert np.array_equal(found, expected)
    assert np.array_equal(white, certificate.abstained)
    with Image.open(out / "scene.overlay.png") as overlay:
        assert overlay.height == certificate.vertex.shape[0]
        assert overlay.width > certificate.vertex.shape[1]
    assert run("verify", out / "scene.certificate.npz", "--model", "synthetic", "--image", scene) == 0


def test_certify_a_torch_factory_states_that_the_class_order_is_assumed(factory, tmp_path, capsys):
    image = tmp_path / "noise.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (33, 47, 3), dtype=np.uint8)).save(image)
    arguments = ["certify", image, "--model", factory, "--hierarchy", "cityscapes", "--out", tmp_path / "out", "--json"]
    assert run(*arguments) == 0
    summary = json.loads(capsys.readouterr().out)[0]
    assert "does not name its classes" in summary["class_order"]
    certificate = tmp_path / "out" / "noise.certificate.npz"
    assert run("verify", certificate, "--model", factory, "--image", image) == 0


def test_stopping_early_is_recorded_and_verifies(scene, tmp_path):
    out = tmp_path / "out"
    assert run("certify", scene, "--model", "synthetic", "--out", out, "--stop-undecided", 0.05, "--n-max", 400) == 0
    summary = json.loads((out / "scene.json").read_text())
    assert summary["settings"]["test"] == "anytime"
    assert summary["n"] < 400
    assert summary["model"]["stop"] == {
        "rule": "undecided", "share": 0.05, "n_max": 400, "method": "nested", "measures": True, "asked_every": 20
    }  # fmt: skip
    certificate = out / "scene.certificate.npz"
    assert run("verify", certificate, "--model", "synthetic", "--image", scene) == 0
    loaded = cs.load_certificate(certificate)
    assert loaded.votes.provenance["stop"]["share"] == 0.05
    assert "stopped by looking" in loaded.claim()


def test_the_batch_size_is_measured_within_the_memory_and_recorded(scene, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "certiseg.models.batching.measured_batch_size",
        lambda model, size, memory, channels, at_once: asked.append((size, memory, at_once)) or 3,
    )
    assert run("certify", scene, "--model", "synthetic", "--out", tmp_path / "out", "--memory", "500MB") == 0
    assert asked == [((96, 128), 500_000_000, 1)]
    assert cs.load_certificate(tmp_path / "out" / "scene.certificate.npz").votes.provenance["batch_size"] == 3
    assert run("certify", scene, "--model", "synthetic", "--out", tmp_path / "out", "--batch-size", 2) == 0
    assert len(asked) == 1
    assert cs.load_certificate(tmp_path / "out" / "scene.certificate.npz").votes.provenance["batch_size"] == 2


def test_region_tests_fewer_pixels(scene, tmp_path):
    mask = np.zeros((96, 128, 3), np.uint8)
    mask[40:80, 30:90] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    arguments = ["certify", scene, "--model", "synthetic", "--region", tmp_path / "mask.png", "--out", tmp_path / "out"]
    assert run(*arguments) == 0
    certificate = cs.load_certificate(tmp_path / "out" / "scene.certificate.npz")
    assert certificate.tested == 40 * 60
    assert (certificate.vertex[mask[..., 0] == 0] == cs.ABSTAIN).all()
    assert run("verify", tmp_path / "out" / "scene.certificate.npz") == 0


def test_verify_says_which_check_failed(scene, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("certify", scene, "--model", "synthetic", "--out", out) == 0
    good = out / "scene.certificate.npz"
    changed = tmp_path / "changed.npz"
    shutil.copy(good, changed)
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    capsys.readouterr()
    assert run("verify", changed) == 1
    assert "FAILED file" in capsys.readouterr().out
    assert run("verify", good, "--model", "synthetic") == 2
    assert run("verify", tmp_path / "missing.npz") == 2
    assert run("verify", good, "--json") == 0


BAD = {
    "missing image": (["nowhere.png"], "nowhere.png"),
    "not an image": (["{text}"], "readable image"),
    "sigma": (["{scene}", "--sigma", "0"], "sigma"),
    "tau": (["{scene}", "--tau", "0.4"], "tau"),
    "tau of one": (["{scene}", "--tau", "1"], "tau"),
    "alpha": (["{scene}", "--alpha", "1"], "alpha"),
    "n too large": (["{scene}", "-n", "65536"], "65535"),
    "n too small": (["{scene}", "-n", "20"], "at least 57"),
    "n0": (["{scene}", "--n0", "0"], "n0"),
    "thresholds out of order": (["{scene}", "--method", "adaptive", "--thresholds", "0.5,0.1"], "decrease"),
    "too many thresholds": (["{scene}", "--method", "adaptive", "--thresholds", "0,0,0,0"], "at most 3"),
    "thresholds in words": (["{scene}", "--thresholds", "a,b"], "numbers"),
    "other classes": (["{scene}", "--hierarchy", "cityscapes"], "31 classes"),
    "no such hierarchy": (["{scene}", "--hierarchy", "nothing"], "nothing"),
    "no such model": (["{scene}", "--model", "nothing"], "nothing"),
    "no such factory": (["{scene}", "--model", "torch:small_networks:none"], "none"),
    "level missing": (["{scene}", "--method", "level"], "level"),
    "correction of a chain": (["{scene}", "--correction", "by"], "bonferroni or holm"),
    "most draws alone": (["{scene}", "--n-max", "500"], "--stop-undecided"),
    "stopping with a fixed test": (["{scene}", "--stop-undecided", "0.01", "--test", "fixed"], "anytime"),
    "share of undecided": (["{scene}", "--stop-undecided", "1"], "--stop-undecided"),
    "most draws too few": (["{scene}", "--stop-undecided", "0.01", "--n-max", "20"], "at least"),
    "memory in words": (["{scene}", "--memory", "lots"], "4GiB"),
    "same name twice": (["{scene}", "{scene}"], "twice"),
    "not finite": (["{scene}", "--model", "torch:small_networks:broken", "--method", "sets"], "finite"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_sentence_and_nothing_written(what, scene, factory, tmp_path, capsys):
    arguments, key = BAD[what]
    (tmp_path / "text.png").write_text("this is not a picture")
    filled = [a.replace("{scene}", str(scene)).replace("{text}", str(tmp_path / "text.png")) for a in arguments]
    if "--model" not in filled:
        filled += ["--model", "synthetic"]
    assert key in refused(capsys, tmp_path / "out", "certify", *filled)


def test_full_disk_is_one_sentence(scene, tmp_path, capsys, monkeypatch):
    import os

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused(capsys, tmp_path / "out", "certify", scene, "--model", "synthetic")


def test_out_that_is_a_file_is_refused(scene, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    assert run("certify", scene, "--model", "synthetic", "--out", tmp_path / "file") == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    assert run(command, "--help") == 0
    assert f"example: certiseg {command}" in " ".join(capsys.readouterr().out.split())


def test_unknown_commands_and_options_are_one_sentence(capsys):
    assert run("nothing") == 2
    assert run("plan", "--nothing") == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_ctrl_c_while_the_commands_are_read_is_one_word(capsys, monkeypatch):
    def interrupted(*_: object):
        raise KeyboardInterrupt

    monkeypatch.setattr("certiseg.cli.build_parser", interrupted)
    assert main(["plan"]) == 130
    assert capsys.readouterr().err == "\ncertiseg: interrupted\n"
