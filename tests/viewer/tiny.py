"""A small network with the classes of CamVid, and a run of it on small images: what the viewer's tests look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import certiseg as cs
from certiseg.datasets import open_dataset
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest

METHODS = ("segcertify", "level:1", "adaptive:0,0,0.25", "nested", "sets:3")
MODEL = "torch:tests.viewer.tiny:model"
HEIGHT, WIDTH = 24, 32


class Network(torch.nn.Module):
    """Two layers whose scores waver under noise."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Conv2d(8, 31, 1))

    def forward(self, images: Any) -> Any:
        return self.layers(images) * 12


def model() -> Any:
    """The model of the run."""
    return cs.Segmenter(Network(), class_names=cs.load_hierarchy("camvid").classes, hierarchy="camvid", name=MODEL)


def write_images(root: Path, count: int) -> Path:
    """A data set of the layout `folder`."""
    for part in ("images", "labels"):
        (root / part).mkdir(parents=True)
    (root / "classes.txt").write_text("\n".join(cs.load_hierarchy("camvid").classes))
    for index in range(count):
        rng = np.random.default_rng(index)
        label = np.kron(rng.integers(0, 31, (3, 4)), np.ones((8, 8), int)).astype(np.uint8)
        label[:2, :3] = 255
        Image.fromarray(label).save(root / "labels" / f"scene {index}.png")
        coarse = np.kron(rng.integers(0, 256, (3, 4, 3)), np.ones((8, 8, 1), int)).astype(np.uint8)
        Image.fromarray(coarse).save(root / "images" / f"scene {index}.png")
    return root


def make_run(path: Path, data: Path, **changes: Any) -> RunFolder:
    """A finished run on those images."""
    samples, segmenter = open_dataset("folder", data), model()
    settings = {"settings": ((60, 0.75), (100, 0.75)), "methods": METHODS, "alpha": 0.01, "sigmas": (0.25,)}
    settings |= {"promise": "nested@0.25:100:0.75"} | changes
    manifest = Manifest(
        dataset="folder",
        split=None,
        images=samples.names,
        model=MODEL,
        model_sha256=segmenter.fingerprint(),
        classes=segmenter.class_names,
        hierarchy=json.loads(json.dumps(cs.load_hierarchy("camvid").as_dict())),
        correction="bonferroni",
        k=1,
        test="fixed",
        family="image",
        n0=8,
        seed=5,
        temperature=1.0,
        batch_size=4,
        threads=1,
        backend="torch",
        device="cpu",
        versions={},
        **settings,
    )
    folder = RunFolder(path)
    evaluate_dataset(folder, manifest, samples, segmenter)
    return folder


def write_sets(folder: Path, data: Path, name: str, *, fresh: bool = True) -> Any:
    """Calibrated sets of an image, as `certiseg certify --calibration` writes them, at a made-up threshold."""
    from certiseg.images import read_image
    from certiseg.noise import image_key
    from certiseg.truth.answer import TruthSets
    from certiseg.truth.calibration import Calibration
    from certiseg.truth.identity import identity_of
    from certiseg.truth.settings import CalibrationSettings

    keys, size, scores = tuple(map(str, range(20))), (HEIGHT, WIDTH), np.full((20, 1), 1000, np.uint32)
    tree, model = cs.load_hierarchy("camvid"), identity_of(cs.load_model(MODEL), size)
    calibration = Calibration(CalibrationSettings(), model, "", 0, scores, {}, tree, keys=keys, sizes=(size,))
    members = np.random.default_rng(1).random((*size, 31)) < np.linspace(0.01, 0.4, WIDTH)[:, None]
    key = image_key(read_image(data / "images" / f"{name}.png"))
    sets = TruthSets(np.packbits(members, axis=2), calibration, 7, fresh, key, (0.1, 0.95))
    folder.mkdir(exist_ok=True)
    sets.save(folder / f"{name}.truth.npz")
    return sets
