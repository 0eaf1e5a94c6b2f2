"""Folders written by the `datasets` library."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg import load_hierarchy
from certiseg.datasets import open_dataset

datasets = pytest.importorskip("datasets", reason="needs the package datasets")
pytestmark = pytest.mark.filterwarnings("ignore")
LABEL = np.array([[0, 1, 2, 255, 0, 1]] * 4, np.uint8)


def png(array: np.ndarray) -> dict[str, object]:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def table(labels: list[object], images: list[object] | None = None, *, names: tuple[str, str] = ("image", "label")):
    pictures = images or [png(np.full((4, 6, 3), 10 * i, np.uint8)) for i in range(len(labels))]
    features = datasets.Features({names[0]: datasets.Image(), names[1]: datasets.Image()})
    return datasets.Dataset.from_dict({names[0]: pictures, names[1]: labels}, features=features)


def write_classes(root: Path) -> None:
    root.mkdir(exist_ok=True)
    (root / "classes.txt").write_text("x\ny\nz\n")


def test_one_table(tmp_path: Path) -> None:
    table([png(LABEL)] * 12, names=("pixel_values", "annotation")).save_to_disk(tmp_path)
    write_classes(tmp_path)
    data = open_dataset("huggingface", tmp_path)
    assert (data.classes, data.hierarchy, data.split) == (("x", "y", "z"), None, None)
    assert data.names[:3] == ("00", "01", "02")
    sample = data[11]
    assert (sample.image == 110).all()
    assert sample.label is not None
    assert sample.label.tolist() == LABEL.tolist()
    assert open_dataset("huggingface", tmp_path, first=2).names == ("00", "01")


def test_splits(tmp_path: Path, refuse) -> None:
    parts = {"train": table([png(LABEL)] * 2), "validation": table([png(LABEL)])}
    datasets.DatasetDict(parts).save_to_disk(tmp_path)
    (tmp_path / "id2label.json").write_text('{"0": "x", "1": "y", "2": "z"}')
    assert open_dataset("huggingface", tmp_path).names == ("validation/0",)
    assert open_dataset("huggingface", tmp_path, split="train").names == ("train/0", "train/1")
    refuse(lambda: open_dataset("huggingface", tmp_path, split="test"), "one of train, validation, got 'test'")
    (tmp_path / "id2label.json").write_text('{"1": "x"}')
    refuse(lambda: open_dataset("huggingface", tmp_path), "id2label.json must name the ids 0, 1, 2 and so on, got 1")


def test_matrices_of_class_labels(tmp_path: Path) -> None:
    classes = list(load_hierarchy("cityscapes").classes)
    rows = datasets.Sequence(datasets.Sequence(datasets.ClassLabel(names=classes)))
    features = datasets.Features({"image": datasets.Image(), "label": rows})
    label = np.minimum(LABEL, 18).tolist()
    picture = png(np.zeros((4, 6, 3), np.uint8))
    datasets.Dataset.from_dict({"image": [picture], "label": [label]}, features=features).save_to_disk(tmp_path)
    data = open_dataset("huggingface", tmp_path)
    assert data.hierarchy == "cityscapes"
    assert data[0].label is not None
    assert data[0].label.tolist() == label


def test_faults_of_one_row(tmp_path: Path, refuse) -> None:
    text = {"bytes": b"no image", "path": None}
    labels = [png(LABEL), None, png(LABEL + 3), png(LABEL[:3]), png(np.zeros((4, 6, 3), np.uint8)), text]
    images = [png(np.zeros((4, 6, 3), np.uint8))] * 6
    table(labels, images).save_to_disk(tmp_path)
    write_classes(tmp_path)
    data = open_dataset("huggingface", tmp_path)
    assert data[0].label is not None
    refuse(lambda: data[1], f"{tmp_path}, row 1, label must")
    refuse(lambda: data[2], f"{tmp_path}, row 2, label must hold ids 0 to 2 or 255 for void, got 3, 4, 5")
    refuse(lambda: data[3], f"{tmp_path}, row 3, label must have the size of its image, got 6x3")
    refuse(lambda: data[4], f"{tmp_path}, row 4, label must be a one-channel label map, got mode RGB")
    refuse(lambda: data[5], f"{tmp_path}, row 5, label must be a readable image")


def test_files_beside_the_table_but_no_addresses(tmp_path: Path, save, refuse) -> None:
    column = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    cells = [{"bytes": None, "path": path} for path in ("pictures/a.png", "https://example.org/a.png", None)]
    features = datasets.Features({"image": column, "label": datasets.Image()})
    rows = {"image": cells, "label": [png(LABEL)] * 3}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path)
    write_classes(tmp_path)
    save("pictures/a.png")
    data = open_dataset("huggingface", tmp_path)
    assert (data[0].image == 90).all()
    refuse(lambda: data[1], f"{tmp_path}, row 1, image must be stored in", "got 'https://example.org/a.png'")
    refuse(lambda: data[2], f"{tmp_path}, row 2, image must be stored in", "got None")


def test_faults_of_the_whole(tmp_path: Path, refuse) -> None:
    def opened() -> object:
        return open_dataset("huggingface", tmp_path)

    refuse(opened, "must be a folder written by save_to_disk, got an empty folder")
    table([png(LABEL)]).save_to_disk(tmp_path)
    refuse(opened, "must hold classes.txt or id2label.json, got neither")
    write_classes(tmp_path)
    refuse(lambda: open_dataset("huggingface", tmp_path, split="val"), "split must be left out, got 'val'")
    table([png(LABEL)], names=("image", "depth")).save_to_disk(tmp_path)
    refuse(opened, "must have a column for the label", "got image, depth")
    (tmp_path / "state.json").write_text("{")
    refuse(opened, tmp_path, "written by save_to_disk")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["../x"]}')
    refuse(opened, "dataset_dict.json must list the splits")
