"""A tiny data set, networks that misbehave on request, and `certiseg` commands in processes of their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = """
import multiprocessing
import os
import time
import torch
import certiseg as cs

class Small(torch.nn.Module):
    def __init__(self, pause=0.0):
        super().__init__()
        torch.manual_seed(0)
        layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 1)
        self.layers, self.pause, self.seen = torch.nn.Sequential(*layers), pause, 0
    def forward(self, images):
        time.sleep(self.pause)
        self.seen += len(images)
        if os.environ.get("FAULT") == "waiting" and self.seen > 250:
            open("went on", "w").close()  # beyond the second image
        while os.environ.get("FAULT") == "waiting" and self.seen == 100 and not os.path.exists("go"):
            time.sleep(0.01)  # in the middle of the second image, until somebody says so
        return self.layers(images)

class Poisoned(Small):
    value = float("nan")
    def forward(self, images):
        scores = super().forward(images)
        if self.seen == 60:  # after 2 looks without noise, 2 selection draws and estimation draws 0 to 54
            scores[0, 1, 2, 2] = self.value
        return scores

class Hopeless(Small):
    def forward(self, images):
        return super().forward(images) * float("nan")

class Infinite(Poisoned):
    value = float("inf")

class Moody(Small):
    def forward(self, images):
        scores = super().forward(images)
        if os.environ["FAULT"] == "moody later" and self.seen <= 10:
            return scores
        mood = torch.Generator().manual_seed(time.time_ns() % 2**60)
        return scores + torch.randn(scores.shape, generator=mood)

def network():
    fault = os.environ.get("FAULT", "none")
    if fault == "backwards":
        clock = iter(range(10**12, 0, -7))
        time.time = time.monotonic = lambda: float(next(clock))
    if fault == "stillborn workers" and multiprocessing.parent_process() is not None:
        os._exit(7)
    kinds = {"hopeless": Hopeless, "poisoned": Poisoned, "infinite": Infinite, "moody": Moody, "moody later": Moody}
    model = Small(0.003) if fault == "slow" else kinds.get(fault, Small)()
    return cs.Segmenter(model, num_classes=4)
"""
TREE = "name: tiny\nclasses: [road, car, bus, tree]\nlevels:\n  1:\n    vehicle: [car, bus]\n"
MODEL = ["--model", "torch:faulty_networks:network", "--hierarchy", "tiny.yaml"]
DRAWS = ["--sigma", "0.1", "--n0", "2", "--batch-size", "1"]
IMAGES = ("a", "b", "c", "d")


def make_scene(folder: Path) -> Path:
    """Four small images with labels, a hierarchy and the networks."""
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (folder / "data" / name).mkdir(parents=True)
    for name in IMAGES:
        blocks = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)
        Image.fromarray(blocks).save(folder / f"data/images/{name}.png")
        Image.fromarray(rng.integers(0, 4, (24, 32), dtype=np.uint8)).save(folder / f"data/labels/{name}.png")
    (folder / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (folder / "faulty_networks.py").write_text(NETWORKS)
    (folder / "tiny.yaml").write_text(TREE)
    return folder


def evaluate(out: str | Path) -> list[str]:
    """The arguments of an evaluation of the scene."""
    settings = ["--setting", "60:0.75", "--methods", "segcertify", "nested", "sets"]
    return ["evaluate", "folder", "--root", "data", "--out", str(out), *MODEL, *DRAWS, *settings]


def start(
    scene: Path, arguments: list[str], *, fault: str = "none", prefix: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """A command in a process of its own, with a network that has this fault."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "FAULT": fault}
    command = [*prefix, sys.executable, "-m", "certiseg", *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=scene, env=environment, text=True, **pipes)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code, and what was printed."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out + err


def run(scene: Path, arguments: list[str], *, fault: str = "none") -> tuple[int, str]:
    return finish(start(scene, arguments, fault=fault))


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something is the case."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


def rows_of(run_folder: Path) -> list[str]:
    """The images that are done."""
    return sorted(path.stem for path in (run_folder / "rows").glob("*.json"))


def hashes(folder: Path) -> dict[str, str]:
    """Every file of a run with its hash, but locks."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def assert_nothing_half(folder: Path) -> None:
    """Every file that bears a name is whole; unfinished ones begin with a dot."""
    from certiseg import load_votes
    from certiseg.archive import read_archive
    from certiseg.partial_votes import load_partial_votes

    for path in folder.rglob("*.*"):
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.suffix == ".npz":
            if path.parent.parent.name == "partial":
                load_partial_votes(path)
            elif path.parent.name == "votes":
                load_votes(path)
            else:
                read_archive(path, kind="certificate", version=1)
        elif path.suffix == ".png":
            with Image.open(path) as image:
                image.load()
        elif path.suffix == ".json":
            json.loads(path.read_bytes())


def assert_one_sentence(text: str, *words: str) -> None:
    """No traceback; one line of an error that has these words."""
    assert "Traceback" not in text, text
    errors = [line for line in text.splitlines() if "error:" in line]
    assert len(errors) == 1, text
    assert all(word in errors[0] for word in words), text
