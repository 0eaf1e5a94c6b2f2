"""No network at run time: the commands work, and nobody even tries to reach one."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FACTORY = """
import torch
def small():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 1)
    return torch.nn.Sequential(*layers)
def curious():
    import urllib.request
    try:
        urllib.request.urlopen("http://192.0.2.1/", timeout=1)
    except OSError:
        pass
    return small()
"""
TREE = "name: tiny\nclasses: [road, car, bus, tree]\nlevels:\n  1:\n    vehicle: [car, bus]\n"


@pytest.fixture
def place(tmp_path):
    """An image, a folder data set, a network and a hierarchy."""
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (tmp_path / "data" / name).mkdir(parents=True)
    Image.fromarray(rng.integers(0, 256, (32, 40, 3), dtype=np.uint8)).save(tmp_path / "data/images/a.png")
    Image.fromarray(rng.integers(0, 4, (32, 40), dtype=np.uint8)).save(tmp_path / "data/labels/a.png")
    (tmp_path / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (tmp_path / "offline_networks.py").write_text(FACTORY)
    (tmp_path / "tiny.yaml").write_text(TREE)
    return tmp_path


def run(place, *commands):
    """Exit codes of the commands, and what they tried to reach."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-m", "tests.supply.offline", json.dumps([command.split() for command in commands])]
    done = subprocess.run(call, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert "ANSWER" in done.stdout, done.stderr
    return json.loads(done.stdout.rpartition("ANSWER")[2]), done


MODEL = "--model torch:offline_networks:small --hierarchy tiny.yaml"
IMAGE = "data/images/a.png"


def test_no_command_and_no_runtime_needs_a_network(place):
    commands = [
        f"certify {IMAGE} {MODEL} --sigma 0.1 -n 60 --out out",
        "verify out/a.certificate.npz --model torch:offline_networks:small --image " + IMAGE,
        f"evaluate folder --root data --out run {MODEL} --sigma 0.1 --setting 60:0.75",
        f"demo --images {IMAGE} -n 60 --out demo",
        f"certify {IMAGE} --model compact --sigma 0.1 -n 60 --out denoised --denoiser",
        "plan --size 32x40",
        "hierarchy show cityscapes",
    ]
    for backend in ("onnxruntime", "openvino"):
        if find_spec(backend) and find_spec("onnxscript"):
            commands.append(f"certify {IMAGE} {MODEL} --backend {backend} --sigma 0.1 -n 60 --out {backend}")
    answer, done = run(place, *commands)
    assert answer["codes"] == [0] * len(commands), done.stderr
    assert answer["attempts"] == []


def test_an_attempt_would_be_seen(place):
    curious = "--model torch:offline_networks:curious --hierarchy tiny.yaml"
    answer, _ = run(place, f"certify {IMAGE} {curious} --sigma 0.1 -n 60 --out out")
    assert answer["codes"] == [0]
    assert "192.0.2.1" in " ".join(answer["attempts"])
