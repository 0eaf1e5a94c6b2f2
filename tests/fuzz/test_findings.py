"""What the campaign found, each as a test of its own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import certiseg as cs
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
