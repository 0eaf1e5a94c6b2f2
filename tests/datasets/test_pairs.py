"""A table of pairs: files where it says, and one sentence for a table that cannot be followed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certiseg import load_hierarchy
from certiseg.datasets import open_dataset, open_training_pair


@pytest.fixture
def home(tmp_path: Path, save) -> Path:
    """Two images with labels, one of them outside the folder of the table, and the class list."""
    for name in ("data/a/1", "elsewhere/1"):
        save(f"{name}.png")
        save(f"{name}_label.png", np.array([[0, 1, 2, 0, 1, 255]] * 4, np.uint8))
    save("data/a/1_cars.png", np.array([[0, 7, 300, 7, 0, 0]] * 4, np.uint16))
    (tmp_path / "data/classes.txt").write_text("up\ndown\nleft\n")
    return tmp_path / "data"


def table(home: Path, *lines: str, header: str = "image,label") -> str:
    (home / "pairs.csv").write_text("\n".join([header, *lines]) + "\n")
    return str(home / "pairs.csv")


ROW, OTHER = "a/1.png,a/1_label.png", "../elsewhere/1.png,../elsewhere/1_label.png"


def test_paths_are_relative_to_the_table_and_may_lead_elsewhere(home: Path, monkeypatch) -> None:
    absolute = f"{home.parent}/elsewhere/1.png"
    for path in (table(home, ROW, "", OTHER), table(home, ROW, f"{absolute},{absolute[:-4]}_label.png")):
        data = open_dataset(path)
        assert (data.name, data.split, data.classes, len(data)) == ("pairs", None, ("up", "down", "left"), 2)
        assert data.names[0] == "a/1"
        for sample in data:
            assert sample.image.shape == (4, 6, 3)
            assert sample.label is not None
            assert sample.label[0].tolist() == [0, 1, 2, 0, 1, 255]
            assert sample.instances is None
    monkeypatch.chdir(home)
    for name, root in (("pairs.csv", None), ("pairs", "."), ("pairs", home / "pairs.csv")):
        assert open_dataset(name, root, first=1).names == data.names[:1] or len(data) == 2
        assert len(open_dataset(name, root)) == 2


def test_names_and_instances(home: Path) -> None:
    lines = "one,a/1.png,a/1_label.png,a/1_cars.png,x", 'two,"../elsewhere/1.png",../elsewhere/1_label.png,,y'
    data = open_dataset(table(home, *lines, header="name, image,label,instances,remark"))
    assert data.names == ("one", "two")
    first, second = data
    assert first.instances is not None
    assert first.instances[0].tolist() == [0, 1, 2, 1, 0, 0]
    assert second.instances is None


def test_parquet_holds_the_same(home: Path) -> None:
    rows = {"image": ["a/1.png", "../elsewhere/1.png"], "label": ["a/1_label.png", "../elsewhere/1_label.png"]}
    pq.write_table(pa.table({**rows, "instances": [None, ""], "width": [6, 6]}), home / "pairs.parquet")
    data = open_dataset(str(home / "pairs.parquet"))
    assert data.names == ("a/1", "../elsewhere/1")
    assert data[1].label is not None
    for column, wrong in (("label", [1, 2]), ("image", [b"a", b"b"])):
        pq.write_table(pa.table(rows | {column: wrong}), home / "odd.parquet")
        with pytest.raises(ValueError, match=f"{column} must be a column of text, got (int64|binary)"):
            open_dataset(str(home / "odd.parquet"))
    pq.write_table(pa.table({"label": ["x"]}), home / "odd.parquet")
    with pytest.raises(ValueError, match="must have the columns image and label, got label; name the column image"):
        open_dataset(str(home / "odd.parquet"))
    (home / "odd.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ValueError, match="must be a readable parquet table, got: "):
        open_dataset(str(home / "odd.parquet"))


def test_classes_are_those_beside_it_or_given(home: Path, refuse) -> None:
    path, camvid = table(home, ROW), load_hierarchy("camvid").classes
    assert open_dataset(path, classes=camvid).classes == ("up", "down", "left"), "what lies beside the table counts"
    (home / "classes.txt").unlink()
    refuse(lambda: open_dataset(path), home, "must hold classes.txt, got none", "name a hierarchy")
    data = open_dataset(path, classes=camvid)
    assert (data.classes, data.hierarchy) == (camvid, "camvid")


@pytest.mark.parametrize(
    ("lines", "header", "words"),
    [
        ([], "image,label", ["must list at least one pair, got none"]),
        ([ROW], "image,mask", ["must have the columns image and label, got image, mask; name the column label"]),
        ([ROW], "image;label", ["must have the columns image and label, got image;label"]),
        ([f"{ROW},x"], "image,label,image", ["must have each column once, got image twice"]),
        ([f"{ROW},x"], "image,label", ["line 2", "must have the 2 cells of the header, got 3"]),
        ([ROW, "a/2.png,a/1_label.png"], "image,label", ["row 2: image must be a file, got 'a/2.png', which is not"]),
        (["a/1.png,a"], "image,label", ["row 1: label must be a file, got 'a', which is not there"]),
        (["a/1.png,"], "image,label", ["row 1: label must be a path, got an empty cell"]),
        ([ROW, OTHER, "a/../a/1.png,a/1_label.png"], "image,label", ["each image once", "in the rows 1 and 3"]),
        ([f"{ROW},x", f"{OTHER},x"], "image,label,name", ["must give each name once, got 'x' in the rows 1 and 2"]),
        ([f"{ROW},a/0.png"], "image,label,instances", ["row 1: instances must be a file, got 'a/0.png'"]),
        (['"a/1.png,x'], "image,label", ["must be a readable csv table, got: unexpected end of data"]),
    ],
)
def test_a_table_that_cannot_be_followed(home: Path, refuse, lines, header, words) -> None:
    path = table(home, *lines, header=header)
    refuse(lambda: open_dataset(path), path, *words)


def test_what_is_no_table_of_pairs(home: Path, refuse, monkeypatch) -> None:
    path = table(home, ROW)
    refuse(lambda: open_dataset(path, home), "root must be left out with a table of pairs, got", home)
    refuse(lambda: open_dataset(path, split="val"), "split must be left out, got 'val'")
    refuse(lambda: open_dataset(str(home / "none.csv")), "root must be a table or its folder, got", "none.csv")
    refuse(lambda: open_dataset("pairs", home / "classes.txt"), "must end in .csv or .parquet, got '.txt'")
    (home / "pairs.csv").write_bytes(b"image,label\n\xff\xfe,x\n")
    refuse(lambda: open_dataset(path), "must be a readable csv table, got: 'utf-8' codec")
    (home / "pairs.csv").write_text("image,label\n" + "a" * 200_000 + ",x\n")
    refuse(lambda: open_dataset(path), "must be a readable csv table, got: field larger than field limit")
    monkeypatch.setattr("certiseg.datasets.pairs.MOST_ROWS", 1)
    refuse(lambda: open_dataset(table(home, ROW, OTHER)), "must have at most 1 rows, got 2")
    monkeypatch.setattr("certiseg.datasets.pairs.MOST_BYTES", 9)
    refuse(lambda: open_dataset(path), "must be at most 0 MiB")


def test_instances_of_another_size_are_an_error_of_their_sample(home: Path, save, refuse) -> None:
    save("data/a/1_cars.png", np.zeros((4, 5), np.uint8))
    data = open_dataset(table(home, f"{ROW},a/1_cars.png", header="image,label,instances"))
    refuse(lambda: data[0], "the instances of a/1 must have the size of their image, 6x4, got 5x4")


def test_every_tenth_pair_is_held_out_of_training(home: Path) -> None:
    train, val = open_training_pair(table(home, ROW, OTHER), None)
    assert (len(train), len(val)) == (1, 1)
