"""What is asked about objects and areas: the library's own bounds, and never a bound from counts."""

import json
import shlex

import numpy as np
import pytest

import certiseg as cs
from certiseg import measures
from certiseg.measures.files import read_area, read_instances
from certiseg.runs.folder import RunFolder
from certiseg.viewer.app import make_app
from certiseg.viewer.ask import MOST_BYTES, NO_MAPS, NO_MEASURES
from tests.viewer.conftest import Client
from tests.viewer.test_uploads import drop, follow, picture
from tests.viewer.tiny import make_run, model

BOX = [[4, 3], [20, 3], [20, 15], [4, 15]]
OBJECTS = ("obstacle", "ground")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data) -> RunFolder:
    """A run that measures objects and keeps its label maps."""
    return make_run(tmp_path_factory.mktemp("asked") / "run", data, objects=OBJECTS, least_area=10, keep_maps=True)


@pytest.fixture
def asking(folder, data) -> Client:
    return Client(make_app(folder, root=str(data), load_model=model))


def ask(client, question, *, status=200, **changes):
    client.asked += 1
    query = client.choice(lane="t", request=client.asked, **changes)
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    answer = client.http.post("/api/ask", params=query, content=body, headers={"x-certiseg": "1"})
    assert answer.status_code == status, answer.text
    return answer.json()


def objects(client, **changes):
    client.asked += 1
    answer = client.http.get("/api/objects", params=client.choice(lane="t", request=client.asked, **changes))
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def label(folder):
    """The class that most pixels of the box have."""
    candidate = folder.all_votes("scene 0", 0.25).candidate[3:16, 4:21]
    return folder.manifest.tree.vertices[int(np.bincount(candidate.ravel()).argmax())]


@pytest.mark.parametrize("kind", ["share", "free"])
def test_a_region_is_bounded_as_the_library_does(asking, folder, label, kind, tmp_path):
    answer = ask(asking, {"kind": kind, "label": label, "corners": BOX})
    path = tmp_path / "region.json"
    path.write_text(json.dumps(answer["file"]))
    mask, tree = read_area(str(path), (24, 32)), folder.manifest.tree
    assert answer["pixels"] == mask.sum() == 17 * 13
    (instance,) = read_instances(str(path), (24, 32), tree)
    np.testing.assert_array_equal(instance.mask, mask)
    votes = folder.all_votes("scene 0", 0.25)
    asked = (
        [measures.share(mask, label), measures.overlap(mask, label)]
        if kind == "share"
        else [measures.free(mask, label)]
    )
    expected = cs.bound(votes.ask(measures.kept(), *asked, hierarchy=tree), tau=0.75, alpha=0.01)
    assert [each["bound"] for each in answer["bounds"]] == expected.lower[1:].tolist()
    assert answer["role"] == "exploration"
    assert answer["claim"].startswith("Exploration, not a promise")
    maps = np.stack([votes.record.label_map(draw) for draw in range(votes.n)])
    mean = (maps[:, mask] == tree.id(label)).mean()
    assert answer["seen"]["in the draws, on average"] == pytest.approx(mean)


def test_the_command_promises_the_same_region(asking, label, data, tmp_path, monkeypatch):
    from certiseg.cli import main

    answer = ask(asking, {"kind": "free", "label": label, "corners": BOX})
    monkeypatch.chdir(tmp_path)
    (tmp_path / answer["file_name"]).write_text(json.dumps(answer["file"]))
    words = shlex.split(answer["command"])
    assert words[:3] == ["certiseg", "certify", str(data / "images" / "scene 0.png")]
    words[words.index("--model") + 1] = "torch:tests.viewer.tiny:model"
    assert main(words[1:]) == 0
    found = cs.load_bounds(tmp_path / words[-1] / "scene 0.bounds.npz")
    kinds = [(measure.kind, measure.inside.area) for measure in found.measures]
    assert kinds == [("kept", 24 * 32), ("free", answer["pixels"])]
    assert not found.record.explored
    assert found.draws.seed != 5


def test_an_object_is_a_part_of_the_candidate_map(asking, folder, tmp_path):
    votes, tree = folder.all_votes("scene 0", 0.25), folder.manifest.tree
    answer = ask(asking, {"kind": "share", "label": None, "at": [12, 16]})
    own = tree.vertices[int(votes.candidate[12, 16])]
    assert answer["label"] == own
    path = tmp_path / "region.json"
    path.write_text(json.dumps(answer["file"]))
    (instance,) = read_instances(str(path), (24, 32), tree)
    assert instance.mask[12, 16]
    assert instance.mask.sum() == answer["pixels"]
    assert (votes.candidate[instance.mask] == votes.candidate[12, 16]).all()
    other = next(name for name in tree.classes if name != own)
    assert "label must fit" in ask(asking, {"kind": "share", "label": other, "at": [12, 16]}, status=400)["error"]


def test_without_maps_there_is_no_bound_but_the_command(client, label):
    answer = ask(client, {"kind": "share", "label": label, "corners": BOX})
    assert answer["why"] == NO_MAPS
    assert answer["bounds"] == []
    assert "--instances region.json" in answer["command"]
    assert 0 <= answer["seen"]["in the draws, on average"] <= 1


def test_objects_of_the_run_are_its_promise_and_nothing_else_is(asking, folder):
    found = objects(asking)
    assert found["role"] == "promise"
    setting = folder.manifest.promised[1]
    stored = [row for row in folder.receipt("scene 0").measures if row["setting"] == str(setting)]
    from certiseg.measures.measure import percent

    told = {(row["name"], row["label"], kind): bound for row in found["rows"] for kind, bound in row["bounds"].items()}
    assert told == {(row["name"], row["label"], row["kind"]): percent(row["bound"]) for row in stored}
    assert objects(asking, n=60)["role"] == "comparison"
    for changes in ({"tau": 0.8}, {"alpha": 0.02}, {"test": "anytime"}):
        assert objects(asking, **changes)["role"] == "exploration"
    outlined = [row for row in found["rows"] if row["outline"]]
    assert {row["found"] for row in outlined} == {True, False}


def test_an_outline_surrounds_its_object(asking, folder):
    votes = folder.all_votes("scene 0", 0.25)
    row = next(row for row in objects(asking)["rows"] if row["outline"] and row["found"])
    mask = next(m.inside.mask for m in votes.measures if m.name == row["name"] and m.kind == "share")
    import re

    across = np.zeros((25, 32), int)
    for x, y, step in re.findall(r"M(\d+) (\d+)h(\d+)", row["outline"]):
        across[int(y), int(x) : int(x) + int(step)] += 1
    np.testing.assert_array_equal(np.cumsum(across, axis=0)[:-1] % 2 == 1, mask)


def test_a_run_without_measures_says_so(client):
    found = objects(client)
    assert found == {"role": None, "rows": [], "why": NO_MEASURES}


NAN = b'{"kind": "share", "label": "Sky", "corners": [[NaN, 1], [2, 3], [4, 1]]}'


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (b"\xff\xfe", "question must be JSON"),
        (b"[1, 2]", "question must be JSON"),
        (b"[" * 50_000, "question must be JSON"),
        ({"kind": "kept", "label": "Sky", "corners": BOX}, "kind must be share or free"),
        ({"kind": ["share"], "label": "Sky", "corners": BOX}, "kind must be share or free"),
        ({"kind": "share", "label": "../Sky", "corners": BOX}, "label must be a class or vertex"),
        ({"kind": "share", "label": [1], "corners": BOX}, "label must be a class or vertex"),
        ({"kind": "share", "label": None, "corners": BOX}, "label must be chosen"),
        ({"kind": "share", "label": "Sky"}, "corners must be 3 to 500 points"),
        ({"kind": "share", "label": "Sky", "corners": BOX[:2]}, "corners must be 3 to 500 points"),
        ({"kind": "share", "label": "Sky", "corners": [[1, 1]] * 501}, "corners must be 3 to 500 points"),
        (NAN, "inside the image"),
        ({"kind": "share", "label": "Sky", "corners": [[0, 0], [33, 0], [3, 3]]}, "inside the image"),
        ({"kind": "share", "label": "Sky", "corners": [[0, 0], [-1, 0], [3, 3]]}, "inside the image"),
        ({"kind": "share", "label": "Sky", "corners": [[0, 0], ["a", 0], [3, 3]]}, "inside the image"),
        ({"kind": "share", "label": "Sky", "corners": [[0, 0], [True, 0], [3, 3]]}, "inside the image"),
        ({"kind": "share", "label": "Sky", "corners": [[0, 0], [1e308, 0], [3, 3]]}, "inside the image"),
        ({"kind": "share", "label": "Sky", "at": [24, 0]}, "at must be a pixel"),
        ({"kind": "share", "label": "Sky", "at": [1.5, 0]}, "at must be a pixel"),
        ({"kind": "free", "label": "Sky", "at": [1, 0]}, "kind must be share for an object"),
    ],
)
def test_hostile_questions_are_one_sentence(client, question, words):
    assert words in ask(client, question, status=400)["error"]


def test_a_million_corners_are_refused_by_their_size(client):
    body = json.dumps({"kind": "share", "label": "Sky", "corners": [[1, 1]] * 1_000_000}).encode()
    assert len(body) > MOST_BYTES
    assert "at most 64 kB" in ask(client, body, status=413)["error"]


def test_questions_of_other_pages_are_refused(client):
    answer = client.http.post("/api/ask", params=client.choice(lane="t", request=1), content=b"{}")
    assert answer.status_code == 403


def test_an_upload_is_measured_and_can_be_asked(client, run):
    begun = drop(client, picture())
    facts, _ = follow(client, begun.json()["id"])[-1]
    assert facts["state"] == "done", facts["error"]
    name = f"dropped/{facts['name']}"
    stored = cs.load_bounds(run.path / "dropped" / f"{facts['name']}.bounds.npz")
    assert stored.measures[0].kind == "kept"
    assert not stored.record.explored
    assert cs.verify(run.path / "dropped" / f"{facts['name']}.bounds.npz").passed
    choice = {"image": name, "n": stored.draws.n, "test": "anytime"}
    assert objects(client, **choice)["role"] == "promise"
    answer = ask(client, {"kind": "share", "label": "Sky", "corners": BOX}, **choice)
    assert answer["role"] == "exploration"
    assert len(answer["bounds"]) == 2
    again = follow(client, drop(client, picture()).json()["id"])[-1][0]
    assert objects(client, **{**choice, "image": f"dropped/{again['name']}"})["role"] == "comparison"
