"""The command: its help, its result, and one clear sentence for each kind of bad input."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from certiseg.cli import train as command
from certiseg.errors import InputError
from certiseg.models.weight_files import read_weights
from certiseg.training.checkpoint import load_checkpoint, start_from
from certiseg.training.config import TrainConfig
from certiseg.training.network import build_network, check_outputs

QUICK = [
    "--epochs",
    "1",
    "--steps-per-epoch",
    "1",
    "--batch-size",
    "2",
    "--crop",
    "32",
    "32",
    "--no-progress",
    "--workers",
    "0",
]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["train", *arguments])
    return args.run(args)


def test_command_trains_and_says_where(discs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert run("folder", "--root", str(discs), "--out", str(out), *QUICK, "--no-tensorboard", "--half") == 0
    assert "best.safetensors" in capsys.readouterr().out
    assert (out / "best.safetensors").stat().st_size < 9e6


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    assert "certiseg train camvid --root" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--sigma", "-1"], r"sigma must be in \[0, 10\], got -1"),
        (["--batch-size", "1"], "batch_size must be at least 2"),
        (["--crop", "16", "64"], "crop must be height and width of at least 32"),
        (["--scale", "2", "1"], "scale must be two positive numbers"),
        (["--ohem", "0"], "ohem must be in"),
        (["--model", "resnet"], "model must be one of compact, hrnet-w48, hrnet-w48-ocr, torch:"),
        (["--model", "torch:no_such_module:net"], "module must be importable"),
        (["--threat", "rain:1"], "threat must be NAME:SCALE with a name of fog, dark"),
        (["--threat", "fog:0.7,blur:-3"], "threat must be NAME:SCALE .*, got 'blur:-3'"),
        (["--threat-share", "2"], r"threat_share must be in \[0, 1\]"),
        (["--sigma-range", "0.5", "0.1"], "sigma_range must be two numbers"),
        (["--init-rate", "0"], r"init_rate must be in \(0, 1\]"),
        (["--init", "missing.pt"], "weights must be a file, got missing.pt"),
        (["--recolour", "1.5"], r"recolour must be in \[0, 1\]"),
        (["--teacher", "net.pt"], "teacher must have labels to settle, got 'net.pt' without --also"),
    ],
)
def test_bad_values(discs: Path, tmp_path: Path, changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        run("folder", "--root", str(discs), "--out", str(tmp_path / "run"), *QUICK, *changes)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("choice", [{"noise": "loud"}, {"schedule": "up"}, {"optimizer": "adam"}, {"loss_at": "end"}])
def test_bad_choices(choice: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(choice))} must be one of"):
        TrainConfig(dataset="folder", out="unused", **choice)


def test_every_field_is_an_option_with_help() -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["train", "streets", "--out", "x"])
    assert {each.name for each in dataclasses.fields(TrainConfig)} <= set(vars(args))
    assert all(each.metadata["help"] for each in dataclasses.fields(TrainConfig))


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dataset must be one of"):
        run("mars", "--root", str(tmp_path), "--out", str(tmp_path / "run"))
    with pytest.raises(InputError, match="root must be a folder"):
        run("camvid", "--root", str(tmp_path / "none"), "--out", str(tmp_path / "run"))
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    (tmp_path / "classes.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="must hold png or jpg images, got none"):
        run("folder", "--root", str(tmp_path), "--out", str(tmp_path / "run"))


def test_a_validation_image_too_small_is_found_before_the_first_step(tmp_path: Path) -> None:
    for index in range(3):
        for kind, mode in (("images", "RGB"), ("labels", "L")):
            (tmp_path / kind).mkdir(exist_ok=True)
            Image.new(mode, (20, 20)).save(tmp_path / kind / f"{index}.png")
    (tmp_path / "classes.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="at least 32x32 for compact, got 20x20"):
        run("folder", "--root", str(tmp_path), "--out", str(tmp_path / "run"), *QUICK)


def test_networks_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user_nets.py").write_text(
        "from torch import nn\n"
        "def sized(num_classes): return nn.Conv2d(3, num_classes, 1)\n"
        "def fixed(): return nn.Conv2d(3, 7, 1)\n"
        "def wrong(): return 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    check_outputs(build_network("torch:user_nets:sized", num_classes=4), num_classes=4)
    with pytest.raises(InputError, match=r"model must give \(batch, 4, h, w\) logits"):
        check_outputs(build_network("torch:user_nets:fixed", num_classes=4), num_classes=4)
    with pytest.raises(InputError, match=r"model must return a torch.nn.Module, got int"):
        build_network("torch:user_nets:wrong", num_classes=4)


def test_files_that_are_no_weights(tmp_path: Path) -> None:
    import torch
    from torch import nn

    (tmp_path / "text.pt").write_text("hello")
    for read in (load_checkpoint, read_weights):
        with pytest.raises(InputError, match="must be an intact, readable PyTorch or safetensors file"):
            read(tmp_path / "text.pt")
    torch.save({"note": "nothing"}, tmp_path / "empty.pt")
    with pytest.raises(InputError, match="must be a checkpoint of format"):
        load_checkpoint(tmp_path / "empty.pt")
    torch.save({"other": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="got none that fit"):
        start_from(nn.Conv2d(3, 3, 1), tmp_path / "other.pt")
