"""The comparison of remedies and the gallery: numbers by hand, and both commands on a small CamVid folder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import certiseg as cs
from certiseg.models.compact import compact
from certiseg.training.checkpoint import save_weights
from experiments import compact_gallery, remedies


class Constant(torch.nn.Module):
    """Class 8 everywhere, whatever the noise."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(len(images), 31, *images.shape[2:])
        scores[:, 8] = 1
        return scores


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three training and two test images."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 3), ("test", 2)):
        for folder in ("images", "labels"):
            (tmp_path / split / folder).mkdir(parents=True)
        for index in range(count):
            name = f"Seq05VD_f{index:05d}"
            pixels = rng.integers(0, 256, (40, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / split / "images" / f"{name}.jpg")
            label = rng.integers(0, 31, (40, 48), dtype=np.uint8)
            label[:3] = 255
            Image.fromarray(label).save(tmp_path / split / "labels" / f"{name}.png")
    return tmp_path


def test_a_constant_answer_is_certified_everywhere_and_right_where_it_is_true() -> None:
    label = np.full((20, 20), 8, np.uint8)
    label[:5] = 0
    scene = remedies.Scene(np.zeros((20, 20, 3), np.float32), label)
    outcome = remedies.measure("constant", cs.Segmenter(Constant()), [scene], sigma=0.25, n=100)
    assert (outcome.segcertify, outcome.nested) == (1, 1)
    assert outcome.accuracy == outcome.cig == 0.75
    assert "| 0.25 | constant | 75.0% | 100.0% | 100.0% | 0.750 |" in remedies.table([outcome])


def test_every_remedy_is_measured_at_both_sigmas(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    torch.manual_seed(0)
    weights, out = tmp_path / "clean.safetensors", tmp_path / "noise.md"
    save_weights(weights, compact(), classes=cs.load_hierarchy("camvid").classes)
    arguments = ["--weights", str(weights), "--root", str(root), "--every", "2", "-n", "60", "--out", str(out)]
    assert remedies.main(arguments) == 0
    printed = capsys.readouterr().out.strip()
    assert len(printed.splitlines()) == 2 + 8
    assert printed in out.read_text()
    assert "1 CamVid test images" in out.read_text()


def test_adapting_changes_the_network_and_the_clean_one_is_left_alone(root: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_weights(tmp_path / "clean.safetensors", compact(), classes=cs.load_hierarchy("camvid").classes)
    images = [np.random.default_rng(seed).random((40, 48, 3), np.float32) for seed in range(3)]
    found = dict(remedies.networks(str(tmp_path / "clean.safetensors"), images, sigma=0.25))
    prints = {name: segmenter.fingerprint() for name, segmenter in found.items()}
    assert len(set(prints.values())) == 4
    assert prints["clean network"] == cs.load_model(f"compact:{tmp_path / 'clean.safetensors'}").fingerprint()


def test_the_gallery_shows_the_label_maps_in_their_colours(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "compact.png"
    assert compact_gallery.main(["--root", str(root), "--images", "0", "1", "--out", str(out)]) == 0
    picture = np.asarray(Image.open(out).convert("RGB"))
    assert picture.shape[1] > 3 * compact_gallery.WIDTH
    # One picture of three maps: the colour of every class of the ground truth occurs.
    present = {tuple(colour) for colour in picture.reshape(-1, 3)}
    from certiseg.render.colours import palette

    colours = palette(cs.load_hierarchy("camvid"))[:31]
    assert sum(tuple(int(c) for c in colour) in present for colour in colours) >= 25
