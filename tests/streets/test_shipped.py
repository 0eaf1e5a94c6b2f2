"""The scenes that ship with certiseg are what the generator draws today."""

import numpy as np
import pytest

from certiseg.datasets import open_dataset, scene_lane
from certiseg.datasets.streets import SCENES
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from streets.__main__ import SHIPPED, main, write
from streets.draws import stream
from streets.layout import draw_plan

LIMIT = 3_000_000


def test_two_dozen_scenes_with_labels_and_lanes_in_three_splits() -> None:
    seeds = [seed for split in SHIPPED.values() for seed in split]
    assert len(seeds) == len(set(seeds)) == 24
    for split, of_split in SHIPPED.items():
        data = open_dataset("streets", split=split)
        assert data.names == tuple(f"street_{seed:05d}" for seed in of_split)
        for sample in data:
            assert sample.label is not None
            assert sample.image.shape == (360, 480, 3)
            assert scene_lane(sample.name).shape == (360, 480)


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in SCENES.rglob("*") if path.is_file()) <= LIMIT


@pytest.mark.parametrize("split", SHIPPED)
def test_every_split_has_sun_clouds_and_dusk(split: str) -> None:
    assert {draw_plan(stream(seed, 1)).weather.name for seed in SHIPPED[split]} == {"sunny", "overcast", "dusk"}


def test_they_show_all_classes_that_the_generator_knows() -> None:
    seen = {name: np.zeros(31, bool) for name in SHIPPED}
    for split in SHIPPED:
        for sample in open_dataset("streets", split=split):
            seen[split] |= np.bincount(sample.label.ravel(), minlength=31) > 0
    assert seen["test"].sum() >= 25
    assert seen["train"].sum() >= 25
    camvid = load_hierarchy("camvid").classes
    never = [camvid[i] for i in np.flatnonzero(~(seen["test"] | seen["val"] | seen["train"]))]
    assert never == ["Tunnel", "OtherMoving"]


@pytest.mark.parametrize(("split", "seed"), [("test", 7), ("train", 80)])
def test_rendering_them_again_gives_the_same_files(tmp_path, split: str, seed: int) -> None:
    write(tmp_path, seed, "jpg")
    found = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.*"))
    assert len(found) == 3
    for path in found:
        assert (tmp_path / path).read_bytes() == (SCENES / split / path).read_bytes(), path


def test_other_scenes_become_a_folder_that_certiseg_reads(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["streets", "--out", str(tmp_path), "--first", "7", "--count", "2"])
    assert main() == 0
    data = open_dataset("folder", tmp_path)
    assert (data.names, data.hierarchy) == (("street_00007", "street_00008"), "camvid")
    shipped = open_dataset("streets")
    known = shipped[shipped.names.index("street_00007")]
    np.testing.assert_array_equal(data[0].label, known.label)
    assert np.abs(data[0].image.astype(int) - known.image).mean() < 2


def test_a_lane_of_no_scene() -> None:
    with pytest.raises(InputError, match="name must be a scene of streets, got 'x'; for example street_00001"):
        scene_lane("x")
