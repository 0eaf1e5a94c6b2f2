"""Samples are checked when they are read; each fault has one sentence that names the file."""

from pathlib import Path

import numpy as np
import pytest

from certiseg.datasets.base import Dataset, Files, list_files
from certiseg.datasets.coding import plain_ids
from certiseg.datasets.layout import read_classes
from certiseg.errors import InputError

CODING = plain_ids(3)
LABEL = np.array([[0, 1, 2, 255, 0, 1]] * 4, np.uint8)


def dataset(root: Path, save, label: np.ndarray = LABEL) -> Dataset:
    save("images/a.png")
    save("labels/a.png", label)
    return Dataset("test", list_files(root / "images", root / "labels", CODING), classes=("x", "y", "z"))


def test_a_sample(tmp_path: Path, save) -> None:
    data = dataset(tmp_path, save)
    sample = data[0]
    assert sample.name == "a"
    assert sample.image.shape == (4, 6, 3)
    assert sample.image.dtype == np.uint8
    assert sample.label is not None
    assert sample.label.tolist() == LABEL.tolist()
    assert [s.name for s in data] == ["a"]
    assert data[-1].name == "a"
    with pytest.raises(IndexError):
        data[1]


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path, save, refuse) -> None:
    data = dataset(tmp_path, save)
    (tmp_path / "images/a.png").write_bytes(b"")
    assert (len(data), data.names) == (1, ("a",))
    refuse(lambda: data[0], tmp_path / "images/a.png")


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (np.full((4, 6), 7, np.uint8), "must hold ids 0 to 2 or 255 for void, got 7"),
        (np.full((4, 6), 256, np.uint16), "must hold ids 0 to 2 or 255 for void, got 256"),
        (np.zeros((4, 5), np.uint8), "must have the size of its image, got 5x4 for an image of 6x4"),
        (np.zeros((4, 6, 3), np.uint8), "must be a one-channel label map, got mode RGB"),
    ],
)
def test_bad_labels(tmp_path: Path, save, refuse, label: np.ndarray, words: str) -> None:
    data = dataset(tmp_path, save, label)
    refuse(lambda: data[0], tmp_path / "labels/a.png", words)


def test_a_missing_label_is_told_on_reading(tmp_path: Path, save, refuse) -> None:
    data = dataset(tmp_path, save)
    save("images/b.png")
    data = Dataset("test", list_files(tmp_path / "images", tmp_path / "labels", CODING), classes=data.classes)
    assert data[0].label is not None
    refuse(lambda: data[1], tmp_path / "labels/b.png", "which is not there")


def test_empty_folder_missing_folder_no_label_at_all(tmp_path: Path, save, refuse) -> None:
    (tmp_path / "empty").mkdir()
    refuse(lambda: list_files(tmp_path / "empty", None, CODING), "must hold png or jpg images, got none")
    refuse(lambda: list_files(tmp_path / "nowhere", None, CODING), "must be a folder")
    save("images/a.png")
    found = tmp_path / "images", tmp_path / "empty"
    refuse(lambda: list_files(*found, CODING), "must hold label maps such as a.png, got an")


def test_one_name_twice(tmp_path: Path, save, refuse) -> None:
    for name in ("a.png", "a.jpg"):
        save(name)
    refuse(lambda: list_files(tmp_path, None, CODING), "must hold one file per name")
    entries = [Files("a", tmp_path / "a.png", None, CODING)] * 2
    refuse(lambda: Dataset("mine", entries, classes=("x",)), "mine must name each image once, got 'a' twice")


def test_number_of_classes(refuse) -> None:
    refuse(lambda: Dataset("mine", [], classes=()), "classes must be 1 to 255 names, got 0")
    refuse(lambda: Dataset("mine", [], classes=[str(i) for i in range(256)]), "got 256")


def test_class_lists(tmp_path: Path, refuse) -> None:
    path = tmp_path / "classes.txt"
    path.write_text("\ufeffroad\n\nsky \n", encoding="utf-8")
    assert read_classes(path) == ("road", "sky")
    for text, words in (("road\nroad\n", "'road' twice"), ("\n", "empty file")):
        path.write_text(text)
        refuse(lambda: read_classes(path), words)
    refuse(lambda: read_classes(tmp_path / "none.txt"), "must be a readable list of class names")


def test_images_without_labels(tmp_path: Path, save) -> None:
    save("a.png")
    (entry,) = list_files(tmp_path, None, CODING)
    assert entry.read().label is None


def test_parts_are_disjoint_and_first_is_by_name(tmp_path: Path) -> None:
    entries = [Files(f"{index:02d}", tmp_path, None, CODING) for index in range(25)]
    train, val = Dataset("t", entries, classes=("a",), split="x", hierarchy="y").held_out()
    assert val.names == ("09", "19")
    assert (val.split, val.hierarchy) == ("x", "y")
    assert sorted(train.names + val.names) == [f"{index:02d}" for index in range(25)]
    backwards = Dataset("t", entries[::-1], classes=("a",))
    assert backwards.first(2).names == ("00", "01")
    assert len(backwards.first(99)) == 25
    with pytest.raises(InputError, match="first must be at least 1, got 0"):
        backwards.first(0)
