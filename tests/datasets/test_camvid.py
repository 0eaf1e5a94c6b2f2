"""CamVid and comma10k in their layouts; the real files are used where they are present."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from certiseg.datasets import open_dataset, open_training_pair
from certiseg.datasets.camvid import colours, published_split
from certiseg.errors import InputError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the data in {SHARED}")
IDS = np.array([[8, 0, 20, 255, 30, 1]] * 4, np.uint8)


def coloured(ids: np.ndarray) -> np.ndarray:
    """The published colours of a map of ids."""
    palette = np.zeros((256, 3), np.uint8)
    for colour, i in colours().table.items():
        palette[i] = colour
    return palette[ids]


def test_ids_in_folders(tmp_path: Path, save, refuse) -> None:
    for split in ("train", "val"):
        save(f"{split}/images/0001TP_1.jpg")
        save(f"{split}/labels/0001TP_1.png", IDS)
    train, val = open_training_pair("camvid", tmp_path)
    assert (len(train), len(val), len(train.classes), train.hierarchy) == (1, 1, 31, "camvid")
    assert train[0].name == "0001TP_1"
    assert train[0].label is not None
    assert train[0].label.tolist() == IDS.tolist()
    refuse(lambda: open_dataset("camvid", tmp_path, split="dev"), "split must be one of train, val, got 'dev'")
    refuse(lambda: open_dataset("camvid", tmp_path), "split must be one of train, val, got 'test'")
    (tmp_path / "classes.txt").write_text("Road\nSky\n")
    refuse(lambda: open_dataset("camvid", tmp_path, split="train"), "must list the 31 CamVid classes in order")
    refuse(lambda: open_dataset("camvid", tmp_path / "train"), "train must hold the folder test/, got images/, labels/")


def test_original_folders_and_colours(tmp_path: Path, save, refuse) -> None:
    names = ("0016E5_07959", "0001TP_006690", "Seq05VD_f00030", "Seq05VD_f00000")
    for name in names:
        save(f"701_StillsRaw_full/{name}.png")
        save(f"LabeledApproved_full/{name}_L.png", coloured(IDS))
    data = open_dataset("camvid", tmp_path)
    assert (data.names, data.split) == (("Seq05VD_f00000", "Seq05VD_f00030"), "test")
    assert open_dataset("camvid", tmp_path, split="val").names == names[:1]
    assert open_dataset("camvid", tmp_path, split="train").names == names[1:2]
    assert open_dataset("camvid", tmp_path, split="all").names == tuple(sorted(names))
    assert data[0].label is not None
    assert data[0].label.tolist() == IDS.tolist()
    save("LabeledApproved_full/Seq05VD_f00030_L.png", IDS)
    refuse(lambda: data[1], "Seq05VD_f00030_L.png must be an RGB colour-coded label map, got mode L")
    save("LabeledApproved_full/Seq05VD_f00030_L.png", coloured(IDS)[:3])
    refuse(lambda: data[1], "Seq05VD_f00030_L.png must have the size of its image, got 6x3 for an image of 6x4")
    (tmp_path / "LabeledApproved_full/Seq05VD_f00030_L.png").unlink()
    refuse(lambda: data[1], "Seq05VD_f00030_L.png', which is not there")


def test_colours_in_folders_per_split(tmp_path: Path, save, refuse) -> None:
    save("test/0001TP_1.png")
    save("test_labels/0001TP_1_L.png", coloured(IDS))
    data = open_dataset("camvid", tmp_path)
    assert data[0].label is not None
    assert data[0].label.tolist() == IDS.tolist()
    refuse(lambda: open_dataset("camvid", tmp_path, split="val"), "split must be one of test, got 'val'")


def test_comma10k(tmp_path: Path, save, refuse) -> None:
    for index in range(12):
        save(f"images/{index:02d}.png")
        save(f"labels/{index:02d}.png", np.full((4, 6), 4, np.uint8))
    assert open_dataset("comma10k", tmp_path).names == ("09",)
    sizes = {split: len(open_dataset("comma10k", tmp_path, split=split)) for split in ("train", "val", "all", None)}
    assert sizes == {"train": 11, "val": 1, "all": 12, None: 1}
    refuse(lambda: open_dataset("comma10k", tmp_path, split="test"), "split must be one of train, val, all, got 'test'")


@needs_shared
@pytest.mark.shared
def test_real_camvid() -> None:
    splits = ("train", "val", "test", "full_size")
    sizes = {split: len(open_dataset("camvid", SHARED / "camvid", split=split)) for split in splits}
    assert sizes == {"train": 367, "val": 101, "test": 117, "full_size": 8}
    data = open_dataset("camvid", SHARED / "camvid", first=100)
    assert (data.split, len(data), data.names[0]) == ("test", 100, "0001TP_008550")
    for sample in data.subset([0, 50, 99]):
        assert sample.image.shape == (360, 480, 3)
        assert sample.label is not None
        assert set(np.unique(sample.label)) <= {*range(31), 255}
    assert open_dataset("camvid", SHARED / "camvid", split="full_size")[0].image.shape == (720, 960, 3)


@needs_shared
@pytest.mark.shared
def test_the_split_by_name_is_the_usual_one() -> None:
    for split in ("train", "val", "test"):
        names = open_dataset("camvid", SHARED / "camvid", split=split).names
        assert Counter(map(published_split, names)) == {split: len(names)}


@needs_shared
@pytest.mark.shared
def test_real_labels_survive_the_way_through_colours(tmp_path: Path, save) -> None:
    real = open_dataset("camvid", SHARED / "camvid", split="full_size")[0]
    assert real.label is not None
    save(f"701_StillsRaw_full/{real.name}.png", real.image)
    save(f"LabeledApproved_full/{real.name}_L.png", coloured(real.label))
    again = open_dataset("camvid", tmp_path, split="all")[0]
    np.testing.assert_array_equal(again.image, real.image)
    np.testing.assert_array_equal(again.label, real.label)


@needs_shared
@pytest.mark.shared
def test_real_comma10k() -> None:
    train, val = open_training_pair("comma10k", SHARED / "comma10k")
    assert (len(train), len(val)) == (810, 90)
    assert len(open_dataset("comma10k", SHARED / "comma10k", split="all")) == 900
    label = val[0].label
    assert label is not None
    assert label.max() < 5


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="root must be a folder"):
        open_dataset("camvid", tmp_path / "none")
