"""Samples are checked on load; each fault has one sentence that names the file."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.datasets.base import Dataset, list_entries, read_classes, read_image, read_label
from certiseg.errors import InputError


def write(folder: Path, name: str, image: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(folder / name)
    return folder / name


def dataset(root: Path, label: np.ndarray | None = None) -> Dataset:
    write(root / "images", "a.png", np.full((4, 6, 3), 9, np.uint8))
    write(root / "labels", "a.png", np.array([[0, 1, 2, 255, 0, 1]] * 4, np.uint8) if label is None else label)
    return Dataset("test", ("x", "y", "z"), list_entries(root / "images", root / "labels"))


def one_sentence(caught: pytest.ExceptionInfo[InputError], path: Path) -> None:
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert " must " in text
    assert ", got " in text


def test_a_sample(tmp_path: Path) -> None:
    sample = dataset(tmp_path)[0]
    assert sample.name == "a"
    assert sample.image.shape == (4, 6, 3)
    assert sample.image.dtype == np.uint8
    assert sample.label is not None
    assert sample.label[0].tolist() == [0, 1, 2, 255, 0, 1]
    assert [s.name for s in dataset(tmp_path)] == ["a"]


def test_palette_values_are_ids(tmp_path: Path) -> None:
    label = Image.fromarray(np.array([[2, 0]], np.uint8))
    label.putpalette([10, 20, 30] * 256)
    label.save(tmp_path / "p.png")
    assert read_label(tmp_path / "p.png", num_classes=3).tolist() == [[2, 0]]


def test_id_outside_the_class_list(tmp_path: Path) -> None:
    data = dataset(tmp_path, np.full((4, 6), 7, np.uint8))
    with pytest.raises(InputError, match="must hold ids 0 to 2 or 255 for void, got 7") as caught:
        data[0]
    one_sentence(caught, tmp_path / "labels/a.png")


def test_sizes_differ(tmp_path: Path) -> None:
    data = dataset(tmp_path, np.zeros((4, 5), np.uint8))
    with pytest.raises(InputError, match="must have the size of its image, got 5x4 for an image of 6x4") as caught:
        data[0]
    one_sentence(caught, tmp_path / "labels/a.png")


def test_colour_label(tmp_path: Path) -> None:
    data = dataset(tmp_path, np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(InputError, match="must be a one-channel label map, got mode RGB") as caught:
        data[0]
    one_sentence(caught, tmp_path / "labels/a.png")


def test_unreadable_missing_and_truncated_files(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("no image")
    good = write(tmp_path, "good.png", np.random.default_rng(0).integers(0, 255, (30, 30, 3)).astype(np.uint8))
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:500])
    for name in ("bad.png", "cut.png", "none.png"):
        with pytest.raises(InputError) as caught:
            read_image(tmp_path / name)
        one_sentence(caught, tmp_path / name)


def test_empty_folder_missing_folder_missing_label(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must hold png or jpg images, got none"):
        list_entries(tmp_path / "empty", None)
    with pytest.raises(InputError, match="must be a folder"):
        list_entries(tmp_path / "nowhere", None)
    write(tmp_path / "images", "a.png", np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(InputError, match=r"must hold a label for every image, got none for a \(1 of 1 missing\)"):
        list_entries(tmp_path / "images", tmp_path / "empty")


def test_one_name_twice(tmp_path: Path) -> None:
    for name in ("a.png", "a.jpg"):
        write(tmp_path, name, np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(InputError, match="must hold one file per name"):
        list_entries(tmp_path, None)


def test_class_lists(tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    path.write_text("road\n\nsky \n")
    assert read_classes(path) == ("road", "sky")
    path.write_text("road\nroad\n")
    with pytest.raises(InputError, match="'road' twice"):
        read_classes(path)
    path.write_text("\n")
    with pytest.raises(InputError, match="empty file"):
        read_classes(path)
    with pytest.raises(InputError, match="must be a readable list"):
        read_classes(tmp_path / "none.txt")


def test_held_out_part_is_disjoint(tmp_path: Path) -> None:
    for index in range(25):
        write(tmp_path, f"{index:02d}.png", np.zeros((2, 2, 3), np.uint8))
    train, val = Dataset("t", ("a",), list_entries(tmp_path, None)).held_out()
    names = [entry.name for entry in train.entries], [entry.name for entry in val.entries]
    assert names[1] == ["09", "19"]
    assert sorted(names[0] + names[1]) == [f"{index:02d}" for index in range(25)]
