"""A small run for every analysis: four images, one of a single class, one nearly all void."""

import json

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.datasets.base import Sample
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, Setting

METHODS = ("segcertify", "level:1", "level:2", "adaptive:0,0.1,0.4", "nested", "sets:3")
HIERARCHY = cs.load_hierarchy("camvid")
SETTING = Setting(0.1, 100, 0.75)


class Images:
    """Images in few colours, so that a colour decides the class; labels are what the network would mostly say."""

    names = tuple(f"drive/{index}" for index in range(4))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = np.kron(rng.integers(0, 256, (3, 4, 3)), np.ones((8, 8, 1))).astype(np.uint8)
        label = make_model().predict(image).astype(np.uint8)
        label[rng.random(label.shape) < 0.1] = 17
        label[:2, :3] = 255
        if index == 2:
            label[:] = 4  # one class, so no boundary
        if index == 3:
            label[:] = 255
            label[5, 7] = 30
        return Sample(self.names[index], image, label)


def make_model():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 31, 1))
    for parameter in layers.parameters():
        parameter.data *= 4
    return cs.Segmenter(layers, class_names=HIERARCHY.classes)


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
        "sigmas": (0.1,),
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
