"""A short run learns; a killed one goes on to the same bits; two processes work together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

import certiseg as cs
from certiseg.datasets import open_dataset, open_training_pair
from certiseg.errors import InputError
from certiseg.hierarchy import VOID, load_hierarchy
from certiseg.models.compact import WEIGHTS
from certiseg.models.weight_files import read_weights
from certiseg.training.checkpoint import load_checkpoint, save_weights
from certiseg.training.config import TrainConfig
from certiseg.training.curves import COLUMNS, read_csv
from certiseg.training.loop import train
from certiseg.training.network import build_network

DRIVER = """
import sys, json
from certiseg.training.config import TrainConfig
from certiseg.training.loop import train
values = json.loads(sys.argv[1])
train(TrainConfig(**values | {"crop": tuple(values["crop"])}))
"""


def small(root: Path | None, out: Path, **changes: object) -> dict[str, object]:
    values = {
        **{"dataset": "folder", "root": root and str(root), "out": str(out), "epochs": 3, "steps_per_epoch": 3},
        **{
            "batch_size": 4,
            "crop": (48, 48),
            "lr": 0.003,
            "progress": False,
            "tensorboard": False,
            "workers": 0,
            "loss_at": "logits",
        },
    }
    return values | changes


def environment() -> dict[str, str]:
    return os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}


def command(values: dict[str, object]) -> list[str]:
    return [sys.executable, "-c", DRIVER, json.dumps(values)]


def test_training_on_streets_lowers_the_loss_and_beats_the_majority_class(tmp_path: Path) -> None:
    data = open_training_pair("streets", None)[0], open_dataset("streets", split="val", first=2)
    window = {"crop": (80, 96), "scale": (0.25, 0.4), "epochs": 4, "steps_per_epoch": 15, "ema": 0.9}
    rows = train(TrainConfig(**small(None, tmp_path, dataset="streets", **window)), data)
    assert rows[-1]["train_loss"] < 0.7 * rows[0]["train_loss"]
    known = np.concatenate([sample.label[sample.label != VOID] for sample in data[1]])
    majority = np.bincount(known).max() / known.size
    assert rows[-1]["clean_pixel_accuracy"] > majority + 0.05
    assert rows[-1]["noisy_pixel_accuracy"] > majority + 0.05
    assert [set(row) for row in read_csv(tmp_path / "curves.csv")] == [set(COLUMNS)] * 4
    for name in ("loss", "miou", "mean_accuracy"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
        assert b"<svg" in (tmp_path / f"{name}.svg").read_bytes()
    with safe_open(tmp_path / "best.safetensors", "pt") as file:
        assert json.loads(file.metadata()["classes"]) == list(load_hierarchy("camvid").classes)


def test_killed_and_resumed_equals_uninterrupted(discs: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(TrainConfig(**small(discs, whole, threads=1)))
    killed = subprocess.Popen(command(small(discs, broken, threads=1, resume=True)), env=environment())
    deadline = time.monotonic() + 120
    while not (broken / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert load_checkpoint(broken / "checkpoint.pt")["epoch"] < 3
    subprocess.run(command(small(discs, broken, threads=1, resume=True)), check=True, env=environment(), timeout=120)
    first, second = load_checkpoint(whole / "checkpoint.pt"), load_checkpoint(broken / "checkpoint.pt")
    for part in ("network", "average"):
        for name, value in first[part].items():
            assert torch.equal(value, second[part][name]), name
    drop = lambda rows: [{k: v for k, v in row.items() if k != "seconds"} for row in rows]  # noqa: E731
    assert drop(first["rows"]) == drop(second["rows"])
    best = read_weights(whole / "best.safetensors"), read_weights(broken / "best.safetensors")
    assert all(torch.equal(best[0][name], best[1][name]) for name in best[0])


def test_two_processes_train_together(discs: Path, tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    values = small(discs, tmp_path / "run", threads=1, epochs=2, steps_per_epoch=2)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, str(driver), command(values)[-1]], env=environment(), timeout=180, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    state = load_checkpoint(tmp_path / "run" / "checkpoint.pt")
    assert state["world"] == 2
    assert state["epoch"] == 2
    assert len(read_csv(tmp_path / "run" / "curves.csv")) == 2
    with pytest.raises(InputError, match="world must be that of the run"):
        train(TrainConfig(**values | {"resume": True}))


def test_start_from_another_head(discs: Path, tmp_path: Path) -> None:
    from certiseg.models.compact import compact
    from certiseg.training.checkpoint import save_weights, start_from

    torch.manual_seed(1)
    trained, network = compact(5), compact(3)
    save_weights(tmp_path / "five.safetensors", trained, classes=("a",) * 5, half=True)
    fitted, fresh = start_from(network, tmp_path / "five.safetensors")
    assert fresh == ["coarse_share", "head.bias", "head.weight"]
    assert fitted == len(network.state_dict()) - 3
    own, given = network.state_dict(), trained.state_dict()
    assert torch.equal(own["pyramid.mix.0.0.weight"], given["pyramid.mix.0.0.weight"].half().float())
    assert torch.equal(own["encoder.stem.2.running_var"], given["encoder.stem.2.running_var"])


def test_a_teacher_changes_what_is_learnt_from_sets(tmp_path: Path) -> None:
    """Frames of comma10k that only say "undrivable" beside streets, without and with the shipped weights as teacher."""
    for part in ("images", "labels"):
        (tmp_path / part).mkdir()
    for number, sample in zip(range(2), open_training_pair("streets", None)[0], strict=False):
        Image.fromarray(sample.image).save(tmp_path / "images" / f"{number}.png")
        Image.fromarray(np.full(sample.image.shape[:2], 2, np.uint8)).save(tmp_path / "labels" / f"{number}.png")
    values = small(None, tmp_path / "run", dataset="streets", epochs=1, also=(f"comma10k:0.7:{tmp_path}",))
    alone, taught = (
        train(TrainConfig(**values | {"out": str(tmp_path / f"{teacher}"), "teacher": teacher and str(WEIGHTS)}))
        for teacher in (None, "teacher")
    )
    # A set costs less than any of its classes.
    assert taught[0]["train_loss"] > alone[0]["train_loss"]
    three = tmp_path / "three.safetensors"
    save_weights(three, build_network("compact", num_classes=3), classes=("a", "b", "c"))
    with pytest.raises(InputError, match=r"three\.safetensors"):
        train(TrainConfig(**values | {"out": str(tmp_path / "other"), "teacher": str(three)}))
    classes = load_hierarchy("camvid").classes
    save_weights(three, build_network("compact", num_classes=31), classes=classes[::-1])
    with pytest.raises(InputError, match="teacher must know the classes of streets in their order"):
        train(TrainConfig(**values | {"out": str(tmp_path / "other"), "teacher": str(three)}))
    only_classes = {"also": ("streets:0.5",), "teacher": str(WEIGHTS), "out": str(tmp_path / "other")}
    with pytest.raises(InputError, match="got none that name a set"):
        train(TrainConfig(**values | only_classes))


def test_tensorboard_files_are_written(discs: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    code = command(small(discs, tmp_path / "run", epochs=1, steps_per_epoch=1, tensorboard=True, threads=1))
    subprocess.run(code, check=True, env=environment(), timeout=120)
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def test_a_run_is_not_overwritten_nor_continued_with_other_settings(discs: Path, tmp_path: Path) -> None:
    values = small(discs, tmp_path / "run", epochs=1, steps_per_epoch=1)
    train(TrainConfig(**values))
    with pytest.raises(InputError, match="out must be a folder without a run"):
        train(TrainConfig(**values))
    with pytest.raises(InputError, match=r"sigma must be that of the run .* 0\.25, got 0\.5"):
        train(TrainConfig(**values | {"resume": True, "sigma": 0.5}))
    assert len(train(TrainConfig(**values | {"resume": True}))) == 1


class WithAuxiliary(torch.nn.Module):
    """Scores of a colour each, and while it is trained auxiliary ones from a layer of their own."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.main, self.side = torch.nn.Conv2d(3, num_classes, 1), torch.nn.Conv2d(3, num_classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor | dict[str, torch.Tensor]:
        return {"out": self.main(images), "aux": self.side(images)} if self.training else self.main(images)


def test_auxiliary_scores_have_a_loss_of_their_own(discs: Path, tmp_path: Path) -> None:
    spec = f"torch:{__name__}:{WithAuxiliary.__name__}"
    states = []
    for weight in (0.4, 0.0):
        values = small(discs, tmp_path / f"{weight}", model=spec, aux_weight=weight, epochs=1, weight_decay=0.0)
        train(TrainConfig(**values))
        states.append(load_checkpoint(tmp_path / f"{weight}" / "checkpoint.pt")["network"])
    torch.manual_seed(0)
    fresh = WithAuxiliary(3).state_dict()
    assert not torch.equal(states[0]["side.weight"], fresh["side.weight"])
    assert torch.equal(states[1]["side.weight"], fresh["side.weight"])


def test_an_hrnet_is_trained_and_loaded_again(discs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from certiseg.models import hrnet

    monkeypatch.setattr(hrnet, "WIDTHS", (1, 2, 3, 4))
    rows = train(TrainConfig(**small(discs, tmp_path / "run", model="hrnet-w48-ocr", epochs=1, steps_per_epoch=2)))
    loaded = cs.load_model(f"hrnet-w48-ocr:{tmp_path / 'run' / 'last.safetensors'}")
    assert loaded.class_names == ("sky", "ground", "disc")
    assert loaded.settings.trained_size == (64, 80)
    assert np.isfinite(rows[-1]["train_loss"])
    # What was validated in training is the function that is loaded: images in [0, 1] in, the same scores out.
    images = torch.rand(1, 3, 64, 80)
    network = build_network("hrnet-w48-ocr", num_classes=3).eval()
    network.load_state_dict(read_weights(tmp_path / "run" / "last.safetensors"))
    with torch.inference_mode():
        torch.testing.assert_close(loaded(images).values, network(images))
