"""adapt: statistics under noise, nothing else; and every bad input in one sentence."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import certiseg as cs
from certiseg.cli import main
from certiseg.training.adapt import adapt_normalisation, noisy_accuracy, noisy_batches
from certiseg.training.checkpoint import save_weights

FACTORY = """
import torch
def normed():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.Conv2d(6, 4, 1))
def plain():
    return torch.nn.Conv2d(3, 4, 1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Six small images with label maps, and a module with factories."""
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    for index in range(6):
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(tmp_path / f"images/{index}.png")
        Image.fromarray(rng.integers(0, 4, (20, 24), dtype=np.uint8)).save(tmp_path / f"labels/{index}.png")
    (tmp_path / "adapt_networks.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def normed():
    torch.manual_seed(1)
    layers = torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.Conv2d(6, 4, 1)
    return torch.nn.Sequential(*layers)


def test_statistics_become_those_of_the_noisy_features_and_weights_stay():
    network = normed()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    images = [np.random.default_rng(i).random((16, 16, 3), np.float32) for i in range(8)]
    assert list(adapt_normalisation(cs.Segmenter(network), images, sigma=0.3, batch_size=4)) == [4, 8]
    features = [
        network[0](torch.from_numpy(batch).permute(0, 3, 1, 2))
        for _, batch in noisy_batches(images, sigma=0.3, batch_size=4, seed=0)
    ]
    mean = torch.stack([f.mean((0, 2, 3)) for f in features]).mean(0)
    variance = torch.stack([f.var((0, 2, 3)) for f in features]).mean(0)
    assert torch.allclose(network[1].running_mean, mean, atol=1e-5)
    assert torch.allclose(network[1].running_var, variance, atol=1e-5)
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert not network.training
    assert network[1].momentum == 0.1


def test_a_single_left_over_image_joins_the_last_batch():
    images = [np.zeros((8, 8 + i, 3), np.float32) for i in range(5)]
    sizes = [len(batch) for _, batch in noisy_batches(images, sigma=0.1, batch_size=2, seed=0)]
    assert sizes == [2, 3]


def test_adaptation_repairs_a_network_whose_statistics_are_of_clean_images():
    """Bright or dark halves, told apart behind a BatchNorm that saturates when the noise shifts its variance."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    labels = [(np.arange(64)[None, :] > rng.integers(20, 44)).repeat(64, axis=0).astype(np.uint8) for _ in range(8)]
    images = [np.repeat(np.where(label, 0.55, 0.45)[..., None], 3, axis=2).astype(np.float32) for label in labels]
    # An energy detector: noise adds the same to all pixels, so only the statistics are wrong under noise.
    network = torch.nn.Sequential(_Energy(), torch.nn.BatchNorm2d(1, affine=False), _TwoSides())
    segmenter = cs.Segmenter(network)
    for _ in adapt_normalisation(segmenter, images, sigma=1e-6):
        pass
    clean_trained = noisy_accuracy(segmenter, images, labels, sigma=0.3)
    for _ in adapt_normalisation(segmenter, images, sigma=0.3):
        pass
    assert noisy_accuracy(segmenter, images, labels, sigma=0.3) > clean_trained + 0.2


class _Energy(torch.nn.Module):
    def forward(self, images):
        return torch.nn.functional.avg_pool2d((images**2).mean(1, True), 9, 1, 4, count_include_pad=False)


class _TwoSides(torch.nn.Module):
    def forward(self, x):
        return torch.cat([-x, x], dim=1)


def test_command_measures_before_and_after_and_writes_weights(folder, capsys):
    out = folder / "adapted.safetensors"
    arguments = ["adapt", "torch:adapt_networks:normed", "--images", str(folder / "images"), "--sigma", "0.25"]
    assert main([*arguments, "--labels", str(folder / "labels"), "--out", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["layers"] == 1
    assert report["images"] == 6
    assert 0 <= report["before"] <= 1
    assert 0 <= report["after"] <= 1
    assert not torch.equal(load_file(out)["1.running_var"], torch.ones(6))


@pytest.mark.parametrize(
    ("model", "options", "spec", "settings"),
    [
        ("torch:adapt_networks:normed", [], "torch:adapt_networks:normed?weights=a.safetensors", {}),
        (
            "torch:adapt_networks:normed?divisible_by=4&weights=old.safetensors",
            ["--mean", "0.5,0.5,0.25", "--window", "16x20", "--align-corners", "--denoiser"],
            "torch:adapt_networks:normed?divisible_by=4&align_corners=true&mean=0.5,0.5,0.25&window=16x20&"
            "weights=a.safetensors",
            {"divisible_by": 4, "mean": (0.5, 0.5, 0.25), "window": (16, 20), "align_corners": True},
        ),
        ("compact", ["--input-size", "32"], "compact:a.safetensors?input_size=32", {"input_size": 32}),
    ],
)
def test_the_printed_command_certifies_with_the_adapted_model(
    model, options, spec, settings, folder, capsys, monkeypatch
):
    monkeypatch.chdir(folder)
    save_weights(folder / "old.safetensors", normed(), classes=())
    arguments = ["adapt", model, "--images", "images", "--sigma", "0.1", "--out", "a.safetensors", *options]
    assert main(arguments) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("certify with it: "))
    assert command[:5] == ["certiseg", "certify", "images/0.png", "--model", spec]
    adapted, before = cs.load_model(spec), cs.load_model(model)
    assert adapted.settings == replace(before.settings, **settings)
    variances = [next(v for k, v in m.model.state_dict().items() if "running_var" in k) for m in (adapted, before)]
    assert not torch.equal(*variances)
    assert main([*command[1:], "-n", "60", "--batch-size", "4", "--out", "out"]) == 0
    drawn = cs.load_certificate("out/0.certificate.npz").votes.provenance
    assert drawn["model_sha256"] == (adapted.denoised(sigma=0.1) if "--denoiser" in options else adapted).fingerprint()


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["torch:adapt_networks:plain", "--images", "images"], "BatchNorm"),
        (["torch:adapt_networks:normed", "--images", "empty"], "images"),
        (["torch:adapt_networks:normed", "--images", "nowhere"], "nowhere"),
        (["torch:adapt_networks:normed", "--images", "images", "--labels", "empty"], "label"),
        (["torch:adapt_networks:normed", "--images", "images", "--labels", "wide"], "size"),
        (["torch:adapt_networks:normed", "--images", "images", "--out", "weights.txt"], "--out"),
        (["torch:adapt_networks:normed", "--images", "images", "--out", "a=b.safetensors"], "no ?, & or ="),
        (["torch:adapt_networks:normed", "--images", "images", "--channels", "4"], "must have 4 channels"),
        (["torch:adapt_networks:normed", "--images", "images", "--mean", "1,2"], "images/0.png must have 2 channels"),
    ],
)
def test_bad_input_is_one_sentence(arguments, key, folder, capsys, monkeypatch):
    (folder / "empty").mkdir()
    (folder / "wide").mkdir()
    for index in range(6):
        Image.fromarray(np.zeros((20, 30), np.uint8)).save(folder / f"wide/{index}.png")
    monkeypatch.chdir(folder)
    assert main(["adapt", "--sigma", "0.1", "--out", "a.safetensors", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert key in message
    assert not (folder / "a.safetensors").exists()
