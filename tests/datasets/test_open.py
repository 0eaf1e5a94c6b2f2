"""Data sets by name."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certiseg import load_hierarchy
from certiseg.datasets import NAMES, open_dataset, open_training_pair


def test_bad_arguments(tmp_path: Path, refuse) -> None:
    refuse(
        lambda: open_dataset("ade", tmp_path),
        "dataset must be one of cityscapes, acdc,",
        "or a table of pairs (.csv, .parquet), got 'ade'",
    )
    refuse(lambda: open_dataset("camvid"), "root must be the folder of camvid, got none")
    refuse(lambda: open_dataset("camvid", tmp_path / "none"), "root must be a folder", tmp_path / "none")
    refuse(lambda: open_dataset("streets", first=0), "first must be at least 1, got 0")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "streets"])
def test_an_empty_root(tmp_path: Path, refuse, name: str) -> None:
    refuse(lambda: open_dataset(name, tmp_path), tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    refuse(lambda: open_dataset(name, tmp_path), tmp_path, "got notes.txt")


def test_streets_need_no_root(refuse) -> None:
    data = open_dataset("streets", first=3)
    assert data.names == ("street_00001", "street_00002", "street_00004")
    assert data.name == "streets"
    assert (data.split, data.hierarchy, data.classes) == ("test", "camvid", load_hierarchy("camvid").classes)
    sample = data.subset([2])[0]
    assert sample.name == "street_00004"
    assert sample.label is not None
    assert sample.image.shape == (*sample.label.shape, 3)
    np.testing.assert_array_equal(sample.image, data[2].image)
    train, val = open_training_pair("streets", "")
    assert not set(train.names) & set(val.names)
    refuse(lambda: open_dataset("streets", split="dev"), "split must be one of test, train, val, got 'dev'")


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"datasets", "matplotlib", "scipy.io", "torch"}
    code = f"import certiseg.datasets, sys; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_document_names_every_data_set() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    first_table = text.split("In Python:")[0]
    assert tuple(line.split("`")[1] for line in first_table.splitlines() if line.startswith("| `")) == NAMES
