"""The command: its help, its result, and one clear sentence for each kind of bad input."""

import argparse
from pathlib import Path

import pytest
from PIL import Image

from certiseg.cli import train as command
from certiseg.errors import InputError
from certiseg.training.checkpoint import load_checkpoint, load_weights, start_from
from certiseg.training.network import build_network, check_outputs

QUICK = ["--epochs", "1", "--steps-per-epoch", "1", "--batch-size", "2", "--crop", "32", "32", "--no-progress"]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["train", *arguments])
    return args.run(args)


def test_command_trains_and_says_where(discs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert run("folder", "--root", str(discs), "--out", str(out), *QUICK, "--no-tensorboard", "--half") == 0
    assert "best.safetensors" in capsys.readouterr().out
    assert (out / "best.safetensors").stat().st_size < 8e6


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
        (["--noise", "loud"], "noise must be one of alternate, mixed"),
        (["--schedule", "up"], "schedule must be one of poly, one-cycle"),
        (["--ohem", "0"], "ohem must be in"),
        (["--model", "resnet"], "model must be compact or torch:"),
        (["--model", "torch:no_such_module:net"], "model must name an importable factory"),
        (["--init", "missing.pt"], "init must be a weights file"),
    ],
)
def test_bad_values(discs: Path, tmp_path: Path, changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        run("folder", "--root", str(discs), "--out", str(tmp_path / "run"), *QUICK, *changes)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


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
    with pytest.raises(InputError, match="must be a checkpoint of certiseg"):
        load_checkpoint(tmp_path / "text.pt")
    with pytest.raises(InputError, match="must be safetensors or a state dict"):
        load_weights(tmp_path / "text.pt")
    torch.save({"note": "nothing"}, tmp_path / "empty.pt")
    with pytest.raises(InputError, match="must hold named tensors"):
        load_weights(tmp_path / "empty.pt")
    torch.save({"other": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="got none that fit"):
        start_from(nn.Conv2d(3, 3, 1), tmp_path / "other.pt")
