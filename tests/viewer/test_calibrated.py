"""Calibrated sets beside a run: those of the file, bound to the image, and a promise only with fresh noise."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.render.pictures import SIZE_BANDS
from certiseg.viewer.app import make_app
from tests.viewer.conftest import Client, unpack
from tests.viewer.tiny import model, write_sets


@pytest.fixture
def sets(tmp_path, data):
    return write_sets(tmp_path / "truth", data, "scene 0")


@pytest.fixture
def viewing(run, data, tmp_path, sets):
    return Client(make_app(run, root=str(data), load_model=model, truth=str(tmp_path / "truth")))


def ask(client, path="/api/truth", *, status=200, **query):
    answer = client.http.get(path, params={"image": "scene 0", **query})
    assert answer.status_code == status, answer.text
    return answer


def test_sizes_and_members_are_those_of_the_file(viewing, sets, run):
    facts, maps = unpack(ask(viewing).content)
    low, high = (
        np.array([-1 if b is None else b for b in ends])[maps["band"]] for ends in zip(*SIZE_BANDS, strict=True)
    )
    assert ((sets.size >= low) & ((sets.size <= high) | (high < 0))).all()
    assert facts["role"] == "promise"
    assert facts["claim"] == sets.claim()
    truth = run.label("scene 0")
    known = truth != 255
    held = [sets.members[row, column, truth[row, column]] for row, column in np.argwhere(known)]
    assert facts["held"] == pytest.approx(np.mean(held))
    assert sum(entry["share"] for entry in facts["legend"]) == pytest.approx(1)
    found = ask(viewing, "/api/truth/pixel", row=9, column=30).json()
    assert tuple(found["members"]) == sets.labels_at(9, 30)
    assert found["truth"] == run.manifest.tree.classes[truth[9, 30]]
    assert ask(viewing, "/api/truth/pixel", row=0, column=0).json()["truth"] is None


def test_a_given_seed_is_exploration(viewing, data, tmp_path):
    write_sets(tmp_path / "truth", data, "scene 0", fresh=False)
    assert unpack(ask(viewing).content)[0]["role"] == "exploration"


def test_an_image_without_sets_and_sets_of_another_image_are_one_sentence(viewing, tmp_path):
    assert "scene 1.truth.npz" in ask(viewing, image="scene 1", status=404).json()["error"]
    folder = tmp_path / "truth"
    (folder / "scene 0.truth.npz").rename(folder / "scene 1.truth.npz")
    assert "must be of the pixels of scene 1" in ask(viewing, image="scene 1", status=400).json()["error"]


@pytest.mark.parametrize("name", ["../truth/scene 0", "scene 0.truth.npz", "/etc/passwd", ""])
def test_no_other_name_becomes_a_path(viewing, name):
    assert "image must be one of the run's" in ask(viewing, image=name, status=404).json()["error"]


@pytest.mark.parametrize("place", [{"row": 24, "column": 0}, {"row": -1, "column": 0}, {"row": "x", "column": 0}, {}])
def test_other_pixels_are_one_sentence(viewing, place):
    ask(viewing, "/api/truth/pixel", status=400, **place)


def test_a_damaged_file_is_one_sentence(viewing, tmp_path):
    (tmp_path / "truth" / "scene 0.truth.npz").write_bytes(b"PK\3\4 no archive")
    assert "scene 0.truth.npz" in ask(viewing, status=400).json()["error"]


def test_without_a_folder_there_is_none_and_an_empty_one_is_refused(client, run, tmp_path):
    assert client.http.get("/api/run").json()["calibrated"] is False
    ask(client, status=404)
    with pytest.raises(cs.InputError, match="--truth must be a folder"):
        make_app(run, load_model=model, truth=str(tmp_path))
