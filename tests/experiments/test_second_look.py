"""What the second look counts for: settled for some classes, everything else as it was."""

from pathlib import Path

import pytest
import torch

from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.models.compact import COARSE_SHARE, WEIGHTS
from certiseg.models.weight_files import read_notes, read_weights
from experiments.second_look import main, shares


def test_only_the_named_classes_change(tmp_path: Path) -> None:
    main([str(WEIGHTS), str(tmp_path / "out.safetensors"), "--share", "0.5", "--of", "vehicle", "Sky"])
    before, after = read_weights(WEIGHTS), read_weights(tmp_path / "out.safetensors")
    found, hierarchy = after.pop("coarse_share"), load_hierarchy("camvid")
    named = [hierarchy.id(name) for name in ("Car", "SUVPickupTruck", "Truck_Bus", "Train", "OtherMoving", "Sky")]
    wanted = torch.full((31,), COARSE_SHARE)
    wanted[named] = 0.5
    assert found.equal(wanted)
    del before["coarse_share"]
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
    assert read_notes(tmp_path / "out.safetensors") == read_notes(WEIGHTS)


def test_the_shipped_weights_trust_the_second_look_less_where_things_are_small() -> None:
    wanted = shares(load_hierarchy("camvid"), ["dynamic obstacle", "street furniture"], 0.2)
    assert read_weights(WEIGHTS)["coarse_share"].equal(wanted)


def test_odd_shares_and_labels_are_refused() -> None:
    with pytest.raises(InputError, match=r"share must be in \[0, 1\], got 1.5"):
        shares(load_hierarchy("camvid"), ["vehicle"], 1.5)
    with pytest.raises(InputError, match="boat"):
        shares(load_hierarchy("camvid"), ["boat"], 0.5)
