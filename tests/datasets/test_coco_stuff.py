"""COCO-Stuff-10K: the published .mat files and the converted PNGs."""

import numpy as np
import pytest
from scipy.io import savemat

from certiseg.datasets import open_dataset

STORED = np.array([[0, 1, 13, 90, 92, 182]] * 4)
TRAIN = [[255, 0, 11, 79, 80, 170]] * 4
SHIFTED = np.array([[0, 1, 12, 80, 81, 171]] * 4, np.uint8)


def write_list(tmp_path, split: str, names: str) -> None:
    (tmp_path / "imageLists").mkdir(exist_ok=True)
    (tmp_path / "imageLists" / f"{split}.txt").write_text(names)


def add(tmp_path, save, name: str, stored: np.ndarray = STORED) -> None:
    save(f"images/{name}.jpg")
    (tmp_path / "annotations").mkdir(exist_ok=True)
    extra = {"names": np.array(["unlabeled", "person"], object), "captions": np.array(["a man"], object)}
    savemat(tmp_path / "annotations" / f"{name}.mat", {"S": stored, **extra}, do_compression=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_published_files(tmp_path, save, dtype: type) -> None:
    for name in ("COCO_train2014_02", "COCO_train2014_01", "COCO_train2014_03"):
        add(tmp_path, save, name, STORED.astype(dtype))
    write_list(tmp_path, "test", "COCO_train2014_02\nCOCO_train2014_01\n")
    write_list(tmp_path, "train", "COCO_train2014_03\n")
    data = open_dataset("coco_stuff", tmp_path)
    assert data.names == ("COCO_train2014_01", "COCO_train2014_02")
    assert (data.split, data.hierarchy, len(data.classes)) == ("test", "coco_stuff", 171)
    assert data[1].label is not None
    assert data[1].label.tolist() == TRAIN
    assert open_dataset("coco_stuff", tmp_path, split="train").names == ("COCO_train2014_03",)


@pytest.mark.parametrize("listed", [True, False])
def test_converted_files(tmp_path, save, listed: bool) -> None:
    save("images/test2014/b.jpg")
    save("annotations/test2014/b_labelTrainIds.png", SHIFTED)
    save("images/train2014/a.jpg")
    save("annotations/train2014/a_labelTrainIds.png", SHIFTED)
    if listed:
        write_list(tmp_path, "test", "b\n")
        write_list(tmp_path, "train", "a\n")
    for split, name in (("test", "b"), ("train", "a")):
        data = open_dataset("coco_stuff", tmp_path, split=split)
        assert data.names == (name,)
        assert data[0].label is not None
        assert data[0].label.tolist() == TRAIN


def test_converted_files_beside_the_images(tmp_path, save) -> None:
    save("images/a.jpg")
    save("annotations/a_labelTrainIds.png", SHIFTED)
    write_list(tmp_path, "test", "a")
    assert open_dataset("coco_stuff", tmp_path)[0].label is not None


def test_faults(tmp_path, save, refuse) -> None:
    def opened(split: str | None = None) -> object:
        return open_dataset("coco_stuff", tmp_path, split=split)

    refuse(opened, "must hold the folder images/")
    add(tmp_path, save, "a")
    add(tmp_path, save, "b", np.full((4, 6), 12))
    add(tmp_path, save, "c", np.full((5, 6), 1))
    save("images/d.jpg")
    save("images/e.jpg")
    save("annotations/e_labelTrainIds.png", np.full((4, 6), 172, np.uint8))
    refuse(opened, "must hold imageLists/test.txt or images/test2014/, got annotations/, images/")
    write_list(tmp_path, "test", "a\nb\nc\nd\ne\n")
    refuse(lambda: opened("val"), "split must be one of test, got 'val'")
    data = open_dataset("coco_stuff", tmp_path)
    assert data[0].label is not None
    refuse(lambda: data[1], "b.mat must hold the 171 label ids between 1 and 182, or 0 for void, got 12")
    refuse(lambda: data[2], "c.mat must have the size of its image, got 6x5 for an image of 6x4")
    refuse(lambda: data[3], "annotations/d.mat", "which is not there")
    refuse(lambda: data[4], "e_labelTrainIds.png must hold ids 1 to 171, or 0 or 255 for void, got 172")
