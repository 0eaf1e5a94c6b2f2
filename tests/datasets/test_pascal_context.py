"""PASCAL-Context: the mmsegmentation layout and the original labels."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from certiseg.datasets import open_dataset

VOC = "VOCdevkit/VOC2010"


def write_list(tmp_path, kind: str, split: str, names: str) -> None:
    path = tmp_path / VOC / "ImageSets" / kind / f"{split}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(names)


def test_converted_labels(tmp_path, save) -> None:
    for name in ("2008_000009", "2008_000002", "2008_000003"):
        save(f"{VOC}/JPEGImages/{name}.jpg")
        save(f"{VOC}/SegmentationClassContext/{name}.png", np.array([[0, 1, 2, 58, 59, 255]] * 4, np.uint8))
    write_list(tmp_path, "SegmentationContext", "val", "2008_000009\n2008_000002\n")
    write_list(tmp_path, "SegmentationContext", "train", "2008_000003\n")
    data = open_dataset("pascal_context", tmp_path)
    assert data.names == ("2008_000002", "2008_000009")
    assert (data.split, data.hierarchy, len(data.classes)) == ("val", "pascal_context", 59)
    assert data[0].label is not None
    assert data[0].label[0].tolist() == [255, 0, 1, 57, 58, 255]
    assert open_dataset("pascal_context", tmp_path / "VOCdevkit", split="train").names == ("2008_000003",)
    assert len(open_dataset("pascal_context", tmp_path / VOC)) == 2


@pytest.mark.parametrize("place", ["trainval", f"{VOC}/trainval", "VOCdevkit/trainval"])
def test_original_labels(tmp_path, save, place: str) -> None:
    save(f"{VOC}/JPEGImages/2008_000002.jpg")
    (tmp_path / place).mkdir()
    stored = np.array([[0, 1, 2, 284, 458, 459]] * 4, np.uint16)
    savemat(tmp_path / place / "2008_000002.mat", {"LabelMap": stored}, do_compression=True)
    write_list(tmp_path, "Main", "val", "2008_000002  1\n")
    label = open_dataset("pascal_context", tmp_path)[0].label
    assert label is not None
    assert label.dtype == np.uint8
    assert label[0].tolist() == [255, 255, 0, 36, 58, 255]


def test_faults_of_one_sample(tmp_path, save, refuse) -> None:
    for name in ("a", "b", "c", "d"):
        save(f"{VOC}/JPEGImages/{name}.jpg")
    (tmp_path / "trainval").mkdir()
    good = np.full((4, 6), 2, np.uint16)
    for name, stored in (("a", good), ("b", good + 458), ("c", good.T), ("e", good)):
        savemat(tmp_path / "trainval" / f"{name}.mat", {"LabelMap": stored})
    write_list(tmp_path, "Main", "val", "a\nb\nc\nd\ne\n")
    data = open_dataset("pascal_context", tmp_path)
    assert data[0].name == "a"
    refuse(lambda: data[1], tmp_path / "trainval/b.mat", "must hold label ids 0 to 459, got 460")
    refuse(lambda: data[2], tmp_path / "trainval/c.mat", "got 4x6 for an image of 6x4")
    refuse(lambda: data[3], tmp_path / "trainval/d.mat", "which is not there")
    refuse(lambda: data[4], tmp_path / VOC / "JPEGImages/e.jpg", "must be a file")


def test_an_id_too_many_in_a_converted_label(tmp_path, save, refuse) -> None:
    save(f"{VOC}/JPEGImages/a.jpg")
    save(f"{VOC}/SegmentationClassContext/a.png", np.full((4, 6), 60, np.uint8))
    write_list(tmp_path, "SegmentationContext", "val", "a")
    data = open_dataset("pascal_context", tmp_path)
    refuse(lambda: data[0], "SegmentationClassContext/a.png must hold ids 1 to 59, or 0 or 255 for void, got 60")


def test_faults_of_the_whole(tmp_path, save, refuse) -> None:
    def opened(split: str | None = None) -> object:
        return open_dataset("pascal_context", tmp_path, split=split)

    refuse(opened, tmp_path, "must hold VOCdevkit/VOC2010/JPEGImages/, got an empty folder")
    save(f"{VOC}/JPEGImages/a.jpg")
    refuse(
        opened,
        "must hold the labels in SegmentationClassContext/ (png) or",
        "trainval/ (mat) or trainval_merged.json, got JPEGImages/",
    )
    (tmp_path / "trainval").mkdir()
    refuse(opened, "ImageSets/SegmentationContext/val.txt or ImageSets/Main/val.txt, got neither")
    write_list(tmp_path, "Main", "val", "a\n")
    refuse(opened, tmp_path / "trainval", "must hold label maps such as a.mat, got an empty folder")
    refuse(lambda: opened("test"), "split must be one of val, got 'test'")
    for names, words in (
        ("\n\n", "at least one image"),
        ("../../a\n", "names without folders"),
        ("a\na\n", "'a' twice"),
    ):
        write_list(tmp_path, "Main", "val", names)
        savemat(tmp_path / "trainval/a.mat", {"LabelMap": np.ones((4, 6))})
        refuse(opened, words)


# -- the one file of PASCAL in Detail ----------------------------------------------------------------------------


def runs(mask: np.ndarray) -> dict[str, Any]:
    """Run lengths down the columns, outside first."""
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(flat, prepend=False, append=False))
    lengths = np.diff([0, *edges, flat.size]).tolist() if edges.size else [flat.size]
    if flat[-1]:
        lengths = np.diff([0, *edges]).tolist()
    return {"size": list(mask.shape), "counts": lengths}


def write_detail(tmp_path, save, **changes: Any) -> None:
    """Two images of val, one of train; the first has a sky, two people, one over the other, and a rare class."""
    for name in ("2008_000002", "2008_000009", "2008_000003"):
        save(f"{VOC}/JPEGImages/{name}.jpg")
    places = np.indices((4, 6))[1]
    masks = [(360, places < 6), (284, places < 3), (284, (places > 1) & (places < 4)), (1, places == 5)]
    segments = [
        {"id": i, "image_id": 1, "category_id": c, "segmentation": runs(m), "iscrowd": 0}
        for i, (c, m) in enumerate(masks)
    ]
    content = {
        "info": {},
        "images": [
            {"image_id": 9, "file_name": "2008_000009.jpg", "phase": "val"},
            {"image_id": 1, "file_name": "2008_000002.jpg", "phase": "val"},
            {"image_id": 3, "file_name": "2008_000003.jpg", "phase": "train"},
        ],
        "categories": [
            {"category_id": 284, "name": "person", "onlysemantic": 0},
            {"category_id": 360, "name": "sky", "onlysemantic": 1},
            {"category_id": 1, "name": "accordion", "onlysemantic": 1},
        ],
        "annos_segmentation": segments,
        "annos_occlusion": [],
        "parts": [],
    } | changes
    (tmp_path / VOC / "trainval_merged.json").write_text(json.dumps(content))


def test_masks_of_the_merged_file_become_labels_and_instances(tmp_path, save) -> None:
    write_detail(tmp_path, save)
    data = open_dataset("pascal_context", tmp_path)
    assert (data.split, data.names) == ("val", ("2008_000002", "2008_000009"))
    person, sky = data.classes.index("person"), data.classes.index("sky")
    sample = data[0]
    assert sample.label is not None
    assert sample.label.tolist() == [[person] * 4 + [sky, 255]] * 4, "the later mask counts; a rare class is void"
    assert sample.instances is not None
    assert sample.instances.tolist() == [[1, 1, 2, 2, 0, 0]] * 4
    empty = data[1]
    assert empty.label is not None
    assert (empty.label == 255).all(), "without a mask there is no label"
    assert open_dataset("pascal_context", tmp_path, split="train").names == ("2008_000003",)
    assert len(open_dataset("pascal_context", tmp_path, split="trainval")) == 3


def test_text_of_coco_is_read_as_run_lengths(tmp_path, save) -> None:
    whole = {"id": 1, "image_id": 1, "category_id": 360, "segmentation": {"size": [4, 6], "counts": "888"}}
    write_detail(tmp_path, save, annos_segmentation=[whole])
    label = open_dataset("pascal_context", tmp_path)[0].label
    assert label is not None
    assert (label != 255).sum() == 8
    assert (label[:, 2:4] != 255).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": {"a": 1}}, "with images, categories and annos_segmentation, got: string indices"),
        ({"annos_segmentation": [{"image_id": 1}]}, "annos_segmentation, got: no 'category_id'"),
        ({"images": [{"image_id": 1, "file_name": "../x.jpg", "phase": "val"}]}, "below its folder, got '../x.jpg'"),
        ({"images": [{"image_id": 1, "file_name": "x.jpg", "phase": "test"}]}, "split must be one of , got 'val'"),
    ],
)
def test_another_file_of_that_name(tmp_path, save, refuse, changes, words: str) -> None:
    write_detail(tmp_path, save, **changes)
    refuse(lambda: open_dataset("pascal_context", tmp_path), words)


@pytest.mark.parametrize(
    ("segmentation", "category", "words"),
    [
        ({"size": [4, 6], "counts": [30]}, 360, "run lengths must be of the size of the image, (4, 6), got others"),
        ({"size": [6, 4], "counts": [24]}, 360, "run lengths must be of the size"),
        ({"size": [4, 6], "counts": [-4, 28]}, 360, "run lengths must be of the size"),
        ({"size": [4, 6], "counts": []}, 360, "run lengths must be of the size"),
        ([[0, 0, 1, 1]], 360, "a mask must be run lengths of COCO, got: "),
        ({"size": [4, 6], "counts": [0, 24]}, 460, "must hold label ids 0 to 459, got 460"),
    ],
)
def test_masks_that_cannot_be_are_an_error_of_their_image(
    tmp_path, save, refuse, segmentation, category: int, words: str
) -> None:
    odd = {"id": 1, "image_id": 1, "category_id": category, "segmentation": segmentation}
    write_detail(tmp_path, save, annos_segmentation=[odd])
    data = open_dataset("pascal_context", tmp_path)
    refuse(lambda: data[0], "trainval_merged.json, 2008_000002", words)
    assert data[1].label is not None
