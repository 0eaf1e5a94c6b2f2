"""A plain folder with its class list."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg import load_hierarchy
from certiseg.datasets import open_dataset, open_training_pair
from certiseg.errors import InputError


def fill(root: Path, count: int = 3) -> Path:
    for kind, shape in (("images", (8, 8, 3)), ("labels", (8, 8))):
        (root / kind).mkdir(parents=True)
        for index in range(count):
            Image.fromarray(np.ones(shape, np.uint8)).save(root / kind / f"{index}.png")
    return root


def test_classes_from_file_or_parent(tmp_path: Path) -> None:
    root = fill(tmp_path / "data")
    with pytest.raises(InputError, match=r"must hold classes.txt, got none"):
        open_dataset("folder", root)
    (tmp_path / "classes.txt").write_text("up\ndown\n")
    assert open_dataset("folder", root).classes == ("up", "down")
    (root / "classes.txt").write_text("x\ny\n")
    assert open_dataset("folder", root).classes == ("x", "y")


def test_hierarchy_is_the_preset_over_the_same_classes(tmp_path: Path) -> None:
    root = fill(tmp_path)
    classes = load_hierarchy("pascal_context").classes
    for order, preset in ((classes, "pascal_context"), (classes[::-1], None)):
        (root / "classes.txt").write_text("\n".join(order))
        assert open_dataset("folder", root).hierarchy == preset


def test_instances_are_read_where_they_are_there(tmp_path: Path, save, refuse) -> None:
    root = fill(tmp_path)
    (root / "classes.txt").write_text("a\nb\n")
    save("instances/1.png", np.kron([[0, 9], [4, 4]], np.ones((4, 4))).astype(np.uint8))
    save("instances/2.png", np.zeros((8, 8, 3), np.uint8))
    data = open_dataset("folder", root)
    marked = data[1].instances
    assert data[0].instances is None
    assert marked is not None
    assert marked[::4, ::4].tolist() == [[0, 2], [1, 1]]
    refuse(lambda: data[2], "instances/2.png must be a one-channel label map, got mode RGB")


def test_labels_are_needed(tmp_path: Path) -> None:
    root = fill(tmp_path / "data")
    (root / "classes.txt").write_text("a\nb\n")
    (root / "labels").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="must hold a folder labels/, got none"):
        open_dataset("folder", root)


def test_splits(tmp_path: Path, refuse) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\n")
    refuse(lambda: open_dataset("folder", tmp_path), "must hold the folder images/, got classes.txt")
    fill(tmp_path / "train", 3)
    fill(tmp_path / "val", 2)
    assert (open_dataset("folder", tmp_path).split, len(open_dataset("folder", tmp_path))) == ("val", 2)
    assert open_dataset("folder", tmp_path, split="train", first=1).names == ("0",)
    refuse(lambda: open_dataset("folder", tmp_path, split="test"), "split must be one of train, val, got 'test'")
    refuse(lambda: open_dataset("folder", tmp_path / "val", split="test"), "split must be left out, got 'test'")


def test_training_pair(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\n")
    fill(tmp_path, 12)
    train, val = open_training_pair("folder", tmp_path)
    assert (len(train), len(val)) == (11, 1)
    fill(tmp_path / "train", 4)
    fill(tmp_path / "val", 2)
    train, val = open_training_pair("folder", tmp_path)
    assert (len(train), len(val)) == (4, 2)
    (tmp_path / "val" / "classes.txt").write_text("b\na\n")
    with pytest.raises(InputError, match="must have one class list for train and val"):
        open_training_pair("folder", tmp_path)


def test_one_image_cannot_be_split(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="must hold at least 2 images to be split, got 1"):
        open_training_pair("folder", fill(tmp_path / "data", 1))
