"""What the campaign found, each as a test of its own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import certiseg as cs
from certiseg.archive import write_archive
from certiseg.models.ports import TensorSpec, image_port
from tests.conftest import random_votes


@pytest.mark.parametrize("dtype", ["S3", "f8", "M8[s]"])
def test_snapshots_of_votes_must_be_whole_numbers(dtype):
    votes = random_votes(0, num_classes=3, n=50, size=(2, 3))
    odd = np.zeros(votes.counts.shape).astype(dtype)
    with pytest.raises(cs.InputError, match="add up"):
        replace(votes, snapshots={20: odd})


@pytest.mark.parametrize("settings", [{"input_size": (100_000, 100_000)}, {"divisible_by": 65_535_000}])
def test_a_model_file_cannot_ask_for_an_enormous_input(settings):
    model = cs.Segmenter(lambda images: images, **settings)
    with pytest.raises(cs.InputError, match="at most 100,000,000 pixels"):
        model.predict(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.parametrize("head", [torch.zeros(()), torch.zeros(10**9, 0), torch.zeros(10**9, 0, 1, 1)])
def test_weights_cannot_ask_for_an_enormous_network(head, tmp_path):
    save_file({"head.weight": head}, tmp_path / "w.safetensors")
    with pytest.raises(cs.InputError, match="weights of compact"):
        cs.load_model(f"compact:{tmp_path / 'w.safetensors'}")


def test_a_model_file_cannot_ask_for_an_enormous_batch():
    with pytest.raises(cs.InputError, match="at most 1,024 images per call"):
        image_port([TensorSpec("image", (2**20, 3, 24, 32), "float32")], "hostile.onnx")


def test_a_factory_that_cannot_be_called_is_one_sentence():
    with pytest.raises(cs.InputError, match=r"torch:os:system: factory must return the model.*TypeError"):
        cs.load_model("torch:os:system")


def test_votes_with_an_infinite_snapshot_are_refused(tmp_path):
    votes = random_votes(0, num_classes=3, n=50, size=(2, 3))
    meta, arrays = votes.pack()
    write_archive(tmp_path / "v.npz", kind="votes", version=1, meta=meta | {"snapshots": [np.inf]}, arrays=arrays)
    with pytest.raises(cs.InputError, match="must hold votes"):
        cs.load_votes(tmp_path / "v.npz")
