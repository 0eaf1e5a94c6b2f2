"""CamVid and comma10k in their layouts; the real files are used where they are present."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

import certiseg
from certiseg.datasets import CamVid, Comma10k, open_training_pair
from certiseg.datasets.camvid import CLASSES
from certiseg.errors import InputError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
PRESET = Path(certiseg.__file__).parent / "presets" / "camvid.yaml"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the data in {SHARED}")


def tiny(root: Path, splits: tuple[str, ...] = ("train", "val")) -> Path:
    for split in splits:
        for kind, shape in (("images", (8, 8, 3)), ("labels", (8, 8))):
            (root / split / kind).mkdir(parents=True)
            Image.fromarray(np.zeros(shape, np.uint8)).save(root / split / kind / "0001TP_1.png")
    return root


def test_classes_are_those_of_the_preset_in_order() -> None:
    assert list(CLASSES) == yaml.safe_load(PRESET.read_text())["classes"]


def test_layout(tmp_path: Path) -> None:
    train, val = open_training_pair("camvid", tiny(tmp_path))
    assert (len(train), len(val), len(train.classes)) == (1, 1, 31)
    assert train[0].name == "0001TP_1"
    with pytest.raises(InputError, match="split must be one of train, val, test, full_size, got 'dev'"):
        CamVid(tmp_path, "dev")
    with pytest.raises(InputError, match=r"test/images must be a folder"):
        CamVid(tmp_path, "test")
    (tmp_path / "classes.txt").write_text("Road\nSky\n")
    with pytest.raises(InputError, match="must list the 31 CamVid classes in order"):
        CamVid(tmp_path, "train")


@needs_shared
@pytest.mark.shared
def test_real_camvid() -> None:
    sizes = {split: len(CamVid(SHARED / "camvid", split)) for split in ("train", "val", "test", "full_size")}
    assert sizes == {"train": 367, "val": 101, "test": 117, "full_size": 8}
    sample = CamVid(SHARED / "camvid", "test")[0]
    assert sample.image.shape == (360, 480, 3)
    assert CamVid(SHARED / "camvid", "full_size")[0].image.shape == (720, 960, 3)


@needs_shared
@pytest.mark.shared
def test_real_comma10k() -> None:
    train, val = open_training_pair("comma10k", SHARED / "comma10k")
    assert (len(train), len(val), len(Comma10k(SHARED / "comma10k"))) == (810, 90, 900)
    label = val[0].label
    assert label is not None
    assert label.max() < 5
