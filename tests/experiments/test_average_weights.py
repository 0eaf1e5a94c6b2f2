"""The mean of weight files: every tensor, in its own type, and of one network only."""

from pathlib import Path

import pytest
import torch

from certiseg.errors import InputError
from certiseg.models.weight_files import read_notes, read_weights
from certiseg.training.checkpoint import save_weights
from experiments.average_weights import main, mean_of


def network(value: float) -> torch.nn.Module:
    made = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3))
    for tensor in made.parameters():
        torch.nn.init.constant_(tensor, value)
    return made


def test_files_are_averaged_in_their_own_types(tmp_path: Path) -> None:
    paths = [tmp_path / f"{value}.safetensors" for value in (1, 2, 6)]
    for value, path in zip((1, 2, 6), paths, strict=True):
        save_weights(path, network(value), classes=("a", "b", f"{value}"), half=True)
    main([*map(str, paths), "--out", str(tmp_path / "mean.safetensors")])
    found = read_weights(tmp_path / "mean.safetensors")
    assert {name: value.dtype for name, value in found.items()} == {
        name: value.dtype for name, value in read_weights(paths[0]).items()
    }
    assert found["0.weight"].dtype == torch.float16
    for name in ("0.weight", "0.bias", "1.weight"):
        assert (found[name] == 3).all(), name
    assert read_notes(tmp_path / "mean.safetensors")["classes"] == read_notes(paths[-1])["classes"]


def test_weights_of_other_networks_are_refused() -> None:
    one, other = network(1).state_dict(), torch.nn.Conv2d(2, 4, 1).state_dict()
    with pytest.raises(InputError, match="of one network"):
        mean_of([one, other])
