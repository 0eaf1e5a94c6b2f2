"""A bias that leans to frequent classes, by the training images alone."""

from pathlib import Path

import numpy as np
import pytest
import torch

from certiseg.datasets import open_dataset
from certiseg.models.weight_files import read_notes, read_weights
from certiseg.training.checkpoint import save_weights
from experiments.frequency_bias import LEAST, frequencies, main


def test_the_bias_moves_by_the_logarithm_of_the_frequency_and_nothing_else_moves(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 31, 1))
    save_weights(tmp_path / "own.safetensors", network, classes=("a",) * 31, half=True)
    asked = ["--dataset", "streets", "--power", "0.5", "--bias", "0.bias", "--out", str(tmp_path / "new.safetensors")]
    main([str(tmp_path / "own.safetensors"), *asked])
    before, after = (read_weights(tmp_path / f"{name}.safetensors") for name in ("own", "new"))
    assert torch.equal(before["0.weight"], after["0.weight"])
    labels = np.concatenate([sample.label.ravel() for sample in open_dataset("streets", split="train")])
    shares = np.array([(labels[labels != 255] == index).mean() for index in range(31)])
    moved = (after["0.bias"] - before["0.bias"]).numpy()
    np.testing.assert_allclose(moved, 0.5 * np.log(np.maximum(shares, LEAST)), atol=1e-5)
    assert shares.min() == 0, "a class that never occurs is asked for, too"
    assert read_notes(tmp_path / "new.safetensors")["frequency_bias"] == "0.5"


def test_void_is_not_counted() -> None:
    sample = next(iter(open_dataset("streets", split="train", first=1)))
    sample.label[...] = 255
    sample.label[:, :2] = 3
    assert frequencies([sample], 31)[3] == pytest.approx(1)
