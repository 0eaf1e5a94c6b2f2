"""A small run for every analysis: four images, one of a single class, one nearly all void."""

import json

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.datasets.base import Sample
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.settings import Setting

METHODS = ("segcertify", "level:1", "level:2", "adaptive:0,0.1,0.4", "nested", "sets:3")
HIERARCHY = cs.load_hierarchy("camvid")
SETTING = Setting(0.03, 100, 0.75)


def colours():
    """(31, 3): a colour for every class, related classes in related colours."""
    rng = np.random.default_rng(7)
    vertices = rng.random((len(HIERARCHY.vertices), 3))
    path = HIERARCHY.ancestors
    return 0.2 * vertices[path[:, 0]] + 0.2 * vertices[path[:, 1]] + 0.6 * vertices[path[:, 3]]


def make_model():
    """The class with the nearest colour."""
    layer = torch.nn.Conv2d(3, 31, 1)
    centres = torch.from_numpy(colours()).float()
    layer.weight.data = 120 * centres[:, :, None, None]
    layer.bias.data = -60 * (centres**2).sum(dim=1)
    return cs.Segmenter(layer, class_names=HIERARCHY.classes)


class Images:
    """Blocks in the colours of classes, with labels that are mostly so."""

    names = tuple(f"drive/{index}" for index in range(4))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        label = np.kron(rng.integers(0, 31, (3, 4)), np.ones((8, 8))).astype(np.uint8)
        smooth = np.kron(rng.normal(0, 0.06, (6, 8, 3)), np.ones((4, 4, 1)))
        image = ((colours()[label] + smooth).clip(0, 1) * 255).astype(np.uint8)
        label[rng.random(label.shape) < 0.1] = 17
        label[:2, :3] = 255
        if index == 2:
            label[:] = 4  # one class, so no boundary
        if index == 3:
            label[:] = 255
            label[5, 7] = 30
        return Sample(self.names[index], image, label)


def make_run(path, **changes):
    """A finished run in the folder."""
    images, model = Images(), make_model()
    settings = {
        "dataset": "blocks",
        "split": None,
        "images": images.names,
        "model": model.name,
        "model_sha256": model.fingerprint(),
        "classes": HIERARCHY.classes,
        "hierarchy": json.loads(json.dumps(HIERARCHY.as_dict())),
        "sigmas": (0.03,),
        "settings": ((60, 0.75), (100, 0.75)),
        "methods": METHODS,
        "alpha": 0.01,
        "correction": "bonferroni",
        "k": 1,
        "test": "fixed",
        "family": "image",
        "n0": 5,
        "seed": 0,
        "temperature": 1.0,
        "batch_size": 1,
        "threads": 1,
        "backend": "torch",
        "device": "cpu",
        "versions": {},
    }
    folder = RunFolder(path)
    assert evaluate_dataset(folder, Manifest(**(settings | changes)), images, model) == {}
    return folder


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("analysis") / "run")
