"""Right, wrong and abstained, the table, and two maps or two runs side by side, against slow loops over pixels."""

from dataclasses import replace

import numpy as np
import pytest

import certiseg as cs
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.runs.folder import RunFolder
from certiseg.scores import verdict_map
from certiseg.viewer.app import make_app
from certiseg.viewer.difference import difference_map
from tests.viewer import tiny
from tests.viewer.conftest import Client, unpack
from tests.viewer.test_map import certificate_of


@pytest.fixture(scope="module")
def second(tmp_path_factory, data):
    """The same images at another sigma, but for one that was changed and one that is missing."""
    other = tiny.write_images(tmp_path_factory.mktemp("data") / "set", 2)
    picture = tiny.Image.open(other / "images/scene 1.png")
    picture.putpixel((0, 0), (1, 2, 3))
    picture.save(other / "images/scene 1.png")
    path = tmp_path_factory.mktemp("runs") / "other"
    return tiny.make_run(path, other, sigmas=(0.5,), settings=((60, 0.7),), promise="nested@0.5:60:0.7")


@pytest.fixture
def both(run, second, data):
    return Client(make_app(run, second, root=str(data), load_model=tiny.model))


def classes_at(certificate, row, column):
    tree, labels = certificate.hierarchy, certificate.labels_at(row, column)
    return {leaf for label in labels for leaf in np.flatnonzero(tree.members[tree.id(label)])}


def counted(codes, truth):
    """[class, pixels, right, wrong, abstained], the most wrong pixels first."""
    classes = [c for c in np.unique(truth) if c != VOID]
    rows = [
        [int(c), *(int(((truth == c) & where).sum()) for where in (codes > 0, codes == 1, codes == 2, codes == 3))]
        for c in classes
    ]
    return sorted(rows, key=lambda row: (-row[3], -row[1]))


def chosen(client, **changes):
    return certificate_of(client.viewer.reader.folder, client.choice(**changes))


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_verdicts_are_those_of_a_slow_loop_and_add_up_to_the_scores(client, run, method):
    certificate, truth = chosen(client, method=method), run.label("scene 0")
    codes = verdict_map(certificate, truth)
    for (row, column), code in np.ndenumerate(codes):
        held, wanted = classes_at(certificate, row, column), truth[row, column]
        expected = 0 if wanted == VOID else 3 if not held else 1 if wanted in held else 2
        assert code == expected
    rows, scores = np.array(counted(codes, truth)), cs.score(certificate, truth)
    assert rows[:, 1].sum() == scores.pixels
    shares = rows[:, 2:].sum(axis=0) / scores.pixels
    assert shares == pytest.approx([scores.accuracy, scores.wrong, scores.abstain])
    assert list(rows[:, 3]) == sorted(rows[:, 3], reverse=True)
    facts, maps = client.map(method=method, layers="vertex,verdict")
    assert facts["by_class"] == rows.tolist()
    np.testing.assert_array_equal(maps["verdict"], codes)


def test_the_table_is_what_the_run_counted(client, run):
    told = client.http.get("/api/table", params={"sigma": 0.25, "n": 60, "tau": 0.75}).json()
    image, truth = told["images"].index("scene 1"), run.label("scene 1")
    for method in ("nested", "sets:3"):
        certificate = run.certificate("scene 1", tiny_setting(run), method)
        counts = {row[0]: row[1:] for row in counted(verdict_map(certificate, truth), truth)}
        rows = [row for row in told["rows"] if (row[0], row[2]) == (image, told["methods"].index(method))]
        assert {row[1]: row[3:] for row in rows} == counts
    assert client.http.get("/api/table", params={"sigma": 0.25, "n": 61, "tau": 0.75}).status_code == 400


def tiny_setting(run):
    return next(setting for setting in run.manifest.each_setting() if setting.n == 60)


@pytest.mark.parametrize(("first", "then"), [("nested", "segcertify"), ("sets", "nested"), ("sets", "adaptive")])
def test_differences_are_those_of_a_slow_loop(client, first, then):
    a, b = chosen(client, method=first), chosen(client, method=then)
    codes = difference_map(a, b)
    for (row, column), code in np.ndenumerate(codes):
        one, two = classes_at(a, row, column), classes_at(b, row, column)
        if not one or not two:
            assert code == (8 if not one and not two else 6 if one else 7)
        else:
            assert code == (1 if one == two else 2 if two < one else 3 if one < two else 4 if one & two else 5)
    assert len(np.unique(codes)) > 1
    asked = {f"b_{name}": value for name, value in client.choice(method=then).items()}
    query = {**client.choice(method=first), **asked, "b_run": "first", "lane": "t", "request": 1}
    facts, maps = unpack(client.http.get("/api/difference", params=query).content)
    np.testing.assert_array_equal(maps["difference"], codes)
    assert sum(facts["shares"].values()) == pytest.approx(1)
    assert facts["role"] == ("exploration" if first == "sets" else "comparison")  # the run's sets have 3 classes
    refused = client.http.get("/api/difference", params={**query, "b_run": "second"})
    assert "start `certiseg view` with two runs" in refused.json()["error"]


def test_two_runs_show_the_images_they_share(both, second):
    assert [image["name"] for image in both.http.get("/api/images").json()] == ["scene 0"]
    run = both.http.get("/api/run").json()
    assert (run["only_here"], run["second"]["only_here"]) == (2, 1)
    assert (run["second"]["name"], run["second"]["sigmas"]) == ("other", [0.5])
    query = both.choice(sigma=0.5, n=60, tau=0.7, lane="t", request=1)
    facts, maps = unpack(both.http.get("/second/api/map", params=query).content)
    assert facts["role"] == "promise"
    expected = certificate_of(second, both.choice(sigma=0.5, n=60, tau=0.7))
    np.testing.assert_array_equal(maps["vertex"], expected.vertex)
    asked = {f"b_{name}": value for name, value in both.choice(sigma=0.5, n=60, tau=0.7).items()}
    query = {**both.choice(), **asked, "b_run": "second", "lane": "t", "request": 2}
    facts, maps = unpack(both.http.get("/api/difference", params=query).content)
    np.testing.assert_array_equal(maps["difference"], difference_map(chosen(both), expected))
    assert facts["role"] == "comparison"
    query = {**query, "tau": 0.6, "request": 3}
    assert unpack(both.http.get("/api/difference", params=query).content)[0]["role"] == "exploration"


def test_the_second_run_takes_no_uploads_and_no_other_names(both):
    header = {"x-certiseg": "1"}
    assert both.http.post("/second/api/drop", content=b"", headers=header).status_code == 404
    answer = both.http.get("/second/api/labels", params={"image": "../manifest", "which": "truth"})
    assert answer.status_code == 404
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"keys": ("0", "1")}, "must have images in common"),
        ({"hierarchy": cs.load_hierarchy("cityscapes").as_dict()}, "must be over the classes of"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(run, second, changes, words):
    folder = RunFolder(second.path, replace(second.manifest, **changes))
    with pytest.raises(InputError, match=words):
        make_app(run, folder)
