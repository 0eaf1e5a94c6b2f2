"""Tables from stored ids and colours to train ids, against the published lists and a pixel-by-pixel statement."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certiseg import load_hierarchy
from certiseg.datasets import cityscapes, coco_stuff, pascal_context
from certiseg.datasets.camvid import colours
from certiseg.datasets.coding import Ids, plain_ids, published_ids, shifted_ids
from certiseg.errors import InputError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "labels"
NAMES = ("camvid", "cityscapes", "coco_stuff", "pascal_context")
SIZES = {"cityscapes": 19, "pascal_context": 59, "coco_stuff": 171}


def text_of(name: str) -> str:
    return files("certiseg.datasets").joinpath("labels", f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the label tables in {SHARED}")
@pytest.mark.parametrize("name", NAMES)
def test_the_package_ships_the_shared_tables(name: str) -> None:
    assert text_of(name) == (SHARED / f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SIZES)
def test_every_class_has_one_id_and_the_name_of_the_preset(name: str) -> None:
    ids = {key: value for key, value in published_ids(name).items() if value != 255}
    assert sorted(ids.values()) == list(range(SIZES[name]))
    commented = dict(re.findall(r"^ +\d+: (\d+) +# (.*)$", text_of(name), re.MULTILINE))
    commented.pop("255", None)
    assert tuple(commented[str(i)] for i in range(SIZES[name])) == load_hierarchy(name).classes


def test_some_published_ids() -> None:
    assert cityscapes.label_ids().table[7] == 0  # road
    assert cityscapes.label_ids().table[33] == 18  # bicycle
    assert pascal_context.original_ids().table[284] == load_hierarchy("pascal_context").classes.index("person")
    assert coco_stuff.original_ids().table[182] == load_hierarchy("coco_stuff").classes.index("wood")
    assert 12 not in coco_stuff.original_ids().table


def test_camvid_colours_follow_the_class_order() -> None:
    table = colours().table
    assert len(table) == 32
    assert [i for i in table.values() if i != 255] == list(range(31))
    assert table[(128, 64, 128)] == load_hierarchy("camvid").classes.index("Road")


tables = st.dictionaries(st.integers(-3, 300), st.integers(0, 254), min_size=1, max_size=12)


@given(
    tables, st.lists(st.integers(-5, 70000), min_size=1, max_size=6), st.sampled_from(["i4", "i8", "u2", "u1", "u8"])
)
def test_ids_equal_a_look_up_pixel_by_pixel(table: dict[int, int], values: list[int], dtype: str) -> None:
    stored = np.array([values]).astype(dtype)
    expected = [table.get(int(value)) for value in stored[0]]
    if None in expected:
        first = min(int(value) for value in stored[0] if int(value) not in table)
        with pytest.raises(InputError, match=f"^here must hold something, got {first}[,;]"):
            Ids(table, "something").decode(stored, "here")
    else:
        label = Ids(table, "something").decode(stored, "here")
        assert label.dtype == np.uint8
        assert label.tolist() == [expected]


def test_extreme_ids_do_not_wrap() -> None:
    for value, dtype in ((1 << 63, np.uint64), ((1 << 32) + 1, np.int64), (-(1 << 63), np.int64)):
        with pytest.raises(InputError, match=rf"got {value};"):
            plain_ids(3).decode(np.array([[value]], dtype), "here")


def test_plain_and_shifted() -> None:
    stored = np.array([[0, 1, 2, 255]], np.uint8)
    assert plain_ids(3).decode(stored, "x").tolist() == [[0, 1, 2, 255]]
    assert shifted_ids(2).decode(stored, "x").tolist() == [[255, 0, 1, 255]]
    with pytest.raises(InputError, match="ids 1 to 2, or 0 or 255 for void, got 3"):
        shifted_ids(2).decode(np.array([[3]], np.uint8), "x")


def test_colours_pixel_by_pixel(save) -> None:
    palette = [*colours().table, (1, 2, 3)]
    choice = np.random.default_rng(0).integers(0, 32, (40, 50))
    choice[0, :3] = 32  # three pixels of no class
    label = colours()(save("l.png", np.array(palette, np.uint8)[choice]))
    expected = [[colours().table.get(palette[i], 255) for i in row] for row in choice]
    assert label.tolist() == expected
    assert label.dtype == np.uint8


def test_a_map_of_other_colours(save, refuse) -> None:
    picture = np.zeros((10, 10, 3), np.uint8)
    picture[:, :2] = (250, 170, 30)
    picture[0, 0] = (1, 2, 3)
    path = save("l.png", picture)
    refuse(lambda: colours()(path), path, "31 CamVid colours", "(250, 170, 30), (1, 2, 3) and others on 20% of the")
