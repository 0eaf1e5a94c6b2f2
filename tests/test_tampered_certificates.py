"""Nothing is accepted silently: certificates flipped, cut, removed, or with votes of another image, seed or model."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import certiseg as cs
from tests.mutation.reference import _image, _network, tree

FLIPS, CUTS = range(48), (0, 1, 100, 0.25, 0.5, 0.9, 0.999)
SWAPS = ("image", "seed", "sigma", "model", "another kind")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates that refer to votes beside them, each with one thing changed."""
    folder = tmp_path_factory.mktemp("made")
    model = cs.Segmenter(_network("logits"), num_classes=6)
    other = cs.Segmenter(lambda images: _network("logits")(images).flip(1), num_classes=6)
    changes = {"own": {}, "image": {}, "seed": {"seed": 1}, "sigma": {"sigma": 0.3}, "model": {}}
    for name, change in changes.items():
        image = _image()[::-1].copy() if name == "image" else _image()
        settings = {"sigma": 0.2, "n0": 4, "n": 60} | change
        votes = cs.sample(other if name == "model" else model, image, **settings)
        (folder / name).mkdir()
        votes.save(folder / name / "votes.npz")
        cs.certify(votes, tree(), method="nested", alpha=0.5).save(folder / name / "c.npz", votes_path="votes.npz")
        assert cs.verify(folder / name / "c.npz").passed
    return folder


def accepted(path: Path) -> bool:
    """Whether the checker lets a file pass."""
    try:
        return bool(cs.verify(path).passed)
    except cs.InputError:
        return False


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "own", tmp_path / "own"))


@pytest.mark.parametrize("name", ["c.npz", "votes.npz"])
@pytest.mark.parametrize("place", FLIPS)
def test_a_flipped_bit(name: str, place: int, copied: Path) -> None:
    content = bytearray((copied / name).read_bytes())
    where = int(np.random.default_rng(place).integers(len(content)))
    content[where] ^= 1 << place % 8
    (copied / name).write_bytes(content)
    assert not accepted(copied / "c.npz")


@pytest.mark.parametrize("name", ["c.npz", "votes.npz"])
@pytest.mark.parametrize("kept", CUTS)
def test_a_file_that_was_cut(name: str, kept: float, copied: Path) -> None:
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    assert not accepted(copied / "c.npz")


@pytest.mark.parametrize("name", ["c.npz", "votes.npz"])
def test_a_file_that_is_gone(name: str, copied: Path) -> None:
    (copied / name).unlink()
    assert not accepted(copied / "c.npz")


@pytest.mark.parametrize("what", SWAPS)
def test_votes_of_something_else(what: str, made: Path, copied: Path) -> None:
    source = copied / "c.npz" if what == "another kind" else made / what / "votes.npz"
    shutil.copyfile(source, copied / "votes.npz")
    assert not accepted(copied / "c.npz")
