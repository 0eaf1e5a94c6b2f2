"""Panoptic labels in the format of COCO: segments become classes, and those of things instances."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certiseg.datasets import open_dataset

CATEGORIES = [
    {"id": 200, "name": "rug-merged", "isthing": 0},
    {"id": 1, "name": "person", "isthing": 1},
    {"id": 3, "name": "car", "isthing": 1},
]
IDS = np.array([[0, 5, 5, 70_000, 70_000, 256]] * 4)
SEGMENTS = [
    {"id": 5, "category_id": 1, "iscrowd": 0},
    {"id": 70_000, "category_id": 200, "iscrowd": 0},
    {"id": 256, "category_id": 1, "iscrowd": 1},
]


def colours(ids: np.ndarray) -> np.ndarray:
    return np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1).astype(np.uint8)


def fill(tmp_path: Path, save, split: str = "val2017", **changes: Any) -> Path:
    save(f"{split}/000000000139.jpg")
    save(f"annotations/panoptic_{split}/000000000139.png", colours(IDS))
    content = {
        "images": [{"id": 139, "file_name": "000000000139.jpg", "height": 4, "width": 6}],
        "annotations": [{"image_id": 139, "file_name": "000000000139.png", "segments_info": SEGMENTS}],
        "categories": CATEGORIES,
    } | changes
    path = tmp_path / f"annotations/panoptic_{split}.json"
    path.write_text(json.dumps(content))
    return path


def test_segments_become_classes_and_things_instances(tmp_path: Path, save) -> None:
    fill(tmp_path, save)
    fill(tmp_path, save, "train2017")
    data = open_dataset("coco_panoptic", tmp_path)
    assert (data.split, data.names, data.classes) == ("val2017", ("000000000139",), ("person", "car", "rug-merged"))
    sample = data[0]
    assert sample.label is not None
    assert sample.label[0].tolist() == [255, 0, 0, 2, 2, 0], "a crowd has a class"
    assert sample.instances is not None
    assert sample.instances[0].tolist() == [0, 1, 1, 0, 0, 0], "but is no object, and neither is stuff"
    assert open_dataset("coco_panoptic", tmp_path, split="train2017").split == "train2017"


def test_pngs_and_images_may_lie_elsewhere(tmp_path: Path, save) -> None:
    fill(tmp_path, save)
    (tmp_path / "annotations/panoptic_val2017").rename(tmp_path / "panoptic_val2017")
    (tmp_path / "images").mkdir()
    (tmp_path / "val2017").rename(tmp_path / "images/val2017")
    assert open_dataset("coco_panoptic", tmp_path)[0].label is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"annotations": []}, "got no annotation"),
        ({"images": []}, "images, annotations and categories, got: no 139"),
        ({"categories": "person"}, "images, annotations and categories, got: string indices"),
        ({"categories": [{**one, "name": "x"} for one in CATEGORIES]}, "got two categories of one name"),
        ({"categories": CATEGORIES[1:]}, "categories, got: no 200"),
        ({"images": [{"id": 139, "file_name": "../secret.jpg"}]}, "must name files below its folder, got '../secret.j"),
        ({"images": [{"id": 139, "file_name": "/etc/passwd"}]}, "must name files below its folder, got '/etc/passwd'"),
    ],
)
def test_a_file_of_another_kind(tmp_path: Path, save, refuse, changes, words: str) -> None:
    path = fill(tmp_path, save, **changes)
    refuse(lambda: open_dataset("coco_panoptic", tmp_path), path, words)


def test_faults_of_the_whole_and_of_one_sample(tmp_path: Path, save, refuse) -> None:
    path = fill(tmp_path, save)
    refuse(lambda: open_dataset("coco_panoptic", tmp_path, split="val"), "split must be one of val2017, got 'val'")
    save("annotations/panoptic_val2017/000000000139.png", colours(np.where(IDS == 5, 6, IDS)))
    refuse(lambda: open_dataset("coco_panoptic", tmp_path)[0], "must hold the segments of its annotation", "got 6;")
    save("annotations/panoptic_val2017/000000000139.png", IDS.astype(np.uint8))
    refuse(lambda: open_dataset("coco_panoptic", tmp_path)[0], "must be an RGB map of segments, got mode L")
    (tmp_path / "annotations/panoptic_val2017/000000000139.png").unlink()
    refuse(lambda: open_dataset("coco_panoptic", tmp_path), "must hold the PNGs of panoptic_val2017.json, got an empty")
    (tmp_path / "annotations/panoptic_val2017").rmdir()
    refuse(lambda: open_dataset("coco_panoptic", tmp_path), "panoptic_val2017 must be a folder, got nothing there")
    path.write_text("[1]")
    (tmp_path / "panoptic_val2017").mkdir()
    refuse(lambda: open_dataset("coco_panoptic", tmp_path), path, "must be a JSON object, got list")
    path.write_text("{")
    refuse(lambda: open_dataset("coco_panoptic", tmp_path), path, "must be readable JSON, got: ")
