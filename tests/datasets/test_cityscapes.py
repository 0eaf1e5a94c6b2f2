"""Cityscapes and ACDC in their published folders."""

import numpy as np
import pytest

from certiseg.datasets import open_dataset

LABEL = np.array([[0, 3, 7, 8, 11, 24], [26, 33, 31, 23, 255, 5]] * 2, np.uint8)
TRAIN = [[255, 255, 0, 1, 2, 11], [13, 18, 16, 10, 255, 255]] * 2


def add_city(save, name: str, *, split: str = "val", label: np.ndarray | None = LABEL, kind: str = "labelIds") -> None:
    city = name.split("_")[0]
    save(f"leftImg8bit/{split}/{city}/{name}_leftImg8bit.png")
    if label is not None:
        save(f"gtFine/{split}/{city}/{name}_gtFine_{kind}.png", label)
        save(f"gtFine/{split}/{city}/{name}_gtFine_color.png")


def add_acdc(save, condition: str, name: str, *, split: str = "val", kind: str = "labelIds") -> None:
    sequence, reference = name.split("_")[0], "_ref" if split.endswith("_ref") else ""
    save(f"rgb_anon/{condition}/{split}/{sequence}/{name}_rgb{reference}_anon.png")
    label = LABEL if kind == "labelIds" else np.array(TRAIN, np.uint8)
    save(f"gt/{condition}/{split}/{sequence}/{name}_gt{reference}_{kind}.png", label)


def test_label_ids_become_train_ids(tmp_path, save) -> None:
    add_city(save, "munster_000001_000019")
    add_city(save, "frankfurt_000000_000294")
    add_city(save, "ulm_000000_000019", split="train")
    data = open_dataset("cityscapes", tmp_path)
    assert data.names == ("frankfurt/frankfurt_000000_000294", "munster/munster_000001_000019")
    assert (data.split, data.hierarchy, data.classes[0], len(data.classes)) == ("val", "cityscapes", "road", 19)
    sample = data[0]
    assert sample.image.shape == (4, 6, 3)
    assert sample.label is not None
    assert sample.label.tolist() == TRAIN
    assert open_dataset("cityscapes", tmp_path, split="train").names == ("ulm/ulm_000000_000019",)
    assert open_dataset("cityscapes", tmp_path, first=1).names == data.names[:1]


def test_train_ids_are_taken_where_only_they_are_there(tmp_path, save) -> None:
    add_city(save, "lindau_000000_000019", label=np.array(TRAIN, np.uint8), kind="labelTrainIds")
    add_city(save, "munster_000001_000019")
    save("gtFine/val/munster/munster_000001_000019_gtFine_labelTrainIds.png", np.zeros((4, 6), np.uint8))
    for sample in open_dataset("cityscapes", tmp_path):
        assert sample.label is not None
        assert sample.label.tolist() == TRAIN


def test_instance_ids_from_1000_on_are_objects(tmp_path, save) -> None:
    add_city(save, "munster_000001_000019")
    add_city(save, "munster_000001_000029")
    marked = np.array([[7, 24001, 26000, 26001, 26, 0]] * 4, np.uint16)
    save("gtFine/val/munster/munster_000001_000019_gtFine_instanceIds.png", marked)
    first, second = open_dataset("cityscapes", tmp_path)
    assert first.instances is not None
    assert first.instances.tolist() == [[0, 1, 2, 3, 0, 0]] * 4, "26 is a group of cars"
    assert second.instances is None


def test_faults_of_one_sample_leave_the_others(tmp_path, save, refuse) -> None:
    add_city(save, "a_0")
    add_city(save, "b_0", label=None)
    add_city(save, "c_0", label=np.full((4, 6), 34, np.uint8))
    add_city(save, "d_0", label=LABEL[:, :5])
    add_city(save, "e_0", label=np.full((4, 6), 19, np.uint8), kind="labelTrainIds")
    add_city(save, "f_0")
    (tmp_path / "leftImg8bit/val/f/f_0_leftImg8bit.png").write_bytes(b"no image")
    data = open_dataset("cityscapes", tmp_path)
    assert data[0].label is not None
    refuse(lambda: data[1], tmp_path / "gtFine/val/b/b_0_gtFine_labelIds.png", "which is not there")
    refuse(lambda: data[2], "c_0_gtFine_labelIds.png must hold label ids 0 to 33, or -1 or 255 for void, got 34")
    refuse(lambda: data[3], "d_0_gtFine_labelIds.png must have the size of its image, got 5x4 for an image of 6x4")
    refuse(lambda: data[4], "e_0_gtFine_labelTrainIds.png must hold ids 0 to 18 or 255 for void, got 19")
    refuse(lambda: data[5], "f_0_leftImg8bit.png")


def test_faults_of_the_whole(tmp_path, save, refuse) -> None:
    refuse(lambda: open_dataset("cityscapes", tmp_path), tmp_path, "the folder leftImg8bit/, got an empty folder")
    save("leftImg8bit/val/ulm/ulm_1_leftImg8bit.png")
    refuse(lambda: open_dataset("cityscapes", tmp_path), tmp_path, "must hold the folder gtFine/, got leftImg8bit/")
    save("gtFine/val/ulm/ulm_1_gtFine_color.png")
    refuse(lambda: open_dataset("cityscapes", tmp_path), "must hold label maps such as ulm/ulm_1_gtFine_labelIds.png")
    refuse(lambda: open_dataset("cityscapes", tmp_path, split="dev"), "split must be one of val, got 'dev'")
    (tmp_path / "leftImg8bit/test").mkdir()
    refuse(lambda: open_dataset("cityscapes", tmp_path, split="test"), "gtFine must hold the folder test/, got val/")
    (tmp_path / "gtFine/test").mkdir()
    refuse(lambda: open_dataset("cityscapes", tmp_path, split="test"), "must hold the images of the data set")


def test_acdc(tmp_path, save) -> None:
    add_acdc(save, "snow", "GOPR0604_frame_000010")
    add_acdc(save, "fog", "GOPR0477_frame_000020", kind="labelTrainIds")
    add_acdc(save, "fog", "GOPR0476_frame_000030")
    add_acdc(save, "fog", "GOPR0475_frame_000001", split="train")
    add_acdc(save, "fog", "GOPR0476_frame_000030", split="val_ref")
    data = open_dataset("acdc", tmp_path)
    assert data.names == ("fog/GOPR0476_frame_000030", "fog/GOPR0477_frame_000020", "snow/GOPR0604_frame_000010")
    assert (data.hierarchy, len(data.classes)) == ("acdc", 19)
    for sample in data:
        assert sample.label is not None
        assert sample.label.tolist() == TRAIN
    assert open_dataset("acdc", tmp_path, split="snow/val").names == data.names[2:]
    assert open_dataset("acdc", tmp_path, split="train").names == ("fog/GOPR0475_frame_000001",)
    assert open_dataset("acdc", tmp_path, split="fog/val_ref")[0].label is not None


def test_acdc_faults(tmp_path, save, refuse) -> None:
    save("rgb_anon/dust/val/A/A_frame_1_rgb_anon.png")
    refuse(lambda: open_dataset("acdc", tmp_path), "must hold the folder gt/, got rgb_anon/")
    (tmp_path / "gt").mkdir()
    refuse(lambda: open_dataset("acdc", tmp_path), "rgb_anon must hold the folder fog/, got dust/")
    add_acdc(save, "rain", "A_frame_1")
    refuse(lambda: open_dataset("acdc", tmp_path, split="fog/val"), "condition must be one of rain, got 'fog'")
    refuse(lambda: open_dataset("acdc", tmp_path, split="rain/dev"), "split must be one of val, got 'dev'")
    save("rgb_anon/rain/test/A/A_frame_1_rgb_anon.png")
    refuse(lambda: open_dataset("acdc", tmp_path, split="test"), "gt/rain must hold the folder test/, got val/")
    (tmp_path / "gt/rain/val/A/A_frame_1_gt_labelIds.png").unlink()
    save("gt/rain/val/B/B_frame_1_gt_labelIds.png", LABEL)
    save("rgb_anon/rain/val/B/B_frame_1_rgb_anon.png")
    data = open_dataset("acdc", tmp_path)
    refuse(lambda: data[0], "A_frame_1_gt_labelIds.png", "which is not there")
    assert data[1].label is not None


@pytest.mark.parametrize("value", [-1, 33])
def test_wide_files_may_hold_minus_one(tmp_path, save, value: int) -> None:
    from certiseg.datasets.cityscapes import label_ids

    assert label_ids().decode(np.array([[value]], np.int32), "x")[0, 0] == (255 if value < 0 else 18)
