"""What the page draws is what the library certifies: maps, numbers, lists, highlights and reasons."""

import io

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.certify import certify
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import MethodChoice, Setting
from certiseg.viewer.cache import BoundedCache
from certiseg.viewer.reasons import REASONS, draws_needed
from certiseg.words import LOW_AGREEMENT
from tests.viewer.conftest import unpack

CHOICES = [
    {"method": "segcertify"},
    {"method": "level", "level": 2},
    {"method": "adaptive", "thresholds": "0,0.1,0.4"},
    {"method": "nested", "correction": "holm"},
    {"method": "sets", "max_set": 2},
    {"method": "segcertify", "correction": "kfwer", "k": 20},
    {"method": "nested", "test": "anytime", "tau": 0.6},
    {"method": "sets", "tau": 0.99},
]


def certificate_of(run, choice):
    options = {k: v for k, v in choice.items() if k not in ("image", "sigma", "n")}
    if "thresholds" in options:
        options["thresholds"] = tuple(float(t) for t in options["thresholds"].split(","))
    votes = cs.load_votes(run.votes_path(choice["image"], choice["sigma"])).first(choice["n"])
    return certify(votes, run.manifest.tree, **options)


@pytest.mark.filterwarnings("ignore::certiseg.certify.NothingCertifiable")
@pytest.mark.parametrize("changes", CHOICES)
def test_map_and_numbers_are_the_library_s(client, run, changes):
    facts, maps = client.map(layers="vertex,radius", **changes)
    expected = certificate_of(run, client.choice(**changes))
    scores = cs.score(expected, run.label("scene 0"))
    np.testing.assert_array_equal(maps["vertex"], expected.vertex)
    np.testing.assert_allclose(maps["radius"], expected.radius_map, rtol=1e-6)
    assert facts["abstain"] == expected.abstain_rate
    assert (facts["cig"], facts["accuracy"], facts["wrong"]) == (scores.cig, scores.accuracy, scores.wrong)
    assert facts["set_size"] == (None if np.isnan(scores.set_size) else scores.set_size)
    assert facts["agreement"] == expected.agreement
    assert facts["agrees_little"] == (expected.agreement is not None and expected.agreement < LOW_AGREEMENT)
    assert (facts["radius"], facts["critical"], facts["n"]) == (expected.radius, expected.critical, 100)
    assert facts["claim"] == expected.claim()
    assert facts["radius_statement"] == expected.radius_map_statement
    share = [float((expected.vertex == v).mean()) for v in range(len(expected.hierarchy.vertices))]
    np.testing.assert_allclose(facts["shares"], share)


def test_a_map_without_a_certificate_touches_no_warning_filter(client, monkeypatch):
    """Filters belong to the process: a thread that sets them back would let the warning of another one through."""
    client.map()  # reads the pictures, which Pillow warns about
    with monkeypatch.context() as patched:
        patched.setattr("warnings.catch_warnings", None)
        facts, maps = client.map(method="sets", tau=0.99)
    assert facts["critical"] is None
    assert (maps["vertex"] == cs.ABSTAIN).all()


def test_fewer_draws_are_the_kept_prefix(client, run):
    _, maps = client.map(n=60, method="segcertify")
    np.testing.assert_array_equal(maps["vertex"], certificate_of(run, client.choice(n=60, method="segcertify")).vertex)


@pytest.mark.parametrize("method", ["nested", "sets"])
@pytest.mark.parametrize("side", ["within", "excludes"])
def test_highlight_is_what_the_certificate_says(client, run, method, side):
    expected = certificate_of(run, client.choice(method=method))
    vertex = expected.hierarchy.id("obstacle" if side == "within" else "Pedestrian")
    _, maps = client.map(method=method, highlight=vertex, side=side)
    mask = getattr(expected, side)(vertex)
    np.testing.assert_array_equal(maps["mask"], mask)
    assert 0 < mask.mean() < 1


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_reasons_of_every_abstention(client, run, method):
    changes = {"method": method} | ({"max_set": 1} if method == "sets" else {})
    _, maps = client.map(layers="vertex,reason", **changes)
    expected = certificate_of(run, client.choice(**changes))
    nested, sets = (certificate_of(run, client.choice(method=m)) for m in ("nested", "sets"))
    seen = set()
    for row, column in np.ndindex(expected.vertex.shape):
        code = int(maps["reason"][row, column])
        seen.add(code)
        if not expected.abstained[row, column]:
            assert code == 0
        elif not nested.abstained[row, column]:
            assert code == 1
        elif not sets.abstained[row, column]:
            assert code == 2
        else:
            needed = draws_needed(expected, hits_at(expected, row, column))
            times = np.inf if needed is None else needed / 100
            assert code == (3 if times <= 2 else 4 if times <= 4 else 5 if times <= 16 else 6)
    assert len(seen) > 1
    assert seen - {0} <= {reason.code for reason in REASONS}


def hits_at(certificate, row, column):
    votes, tree = certificate.votes, certificate.hierarchy
    if certificate.settings.method == "sets":
        return int(votes.counts[row, column][votes.ranking[row, column, : certificate.settings.max_set]].sum())
    vertex = tree.ancestor(int(votes.candidate[row, column]), int(certificate.level[row, column]))
    return int(votes.counts[row, column][tree.members[vertex]].sum())


def test_more_draws_at_the_same_share_would_certify(run, client):
    certificate = certificate_of(run, client.choice(method="segcertify"))
    for hits in (80, 85, 88):
        draws = draws_needed(certificate, hits)
        level = certificate.settings.alpha / certificate.tested
        assert cs.critical_count(draws, 0.75, level) <= hits / 100 * draws
        assert cs.critical_count(int(draws * 0.9), 0.75, level) > hits / 100 * int(draws * 0.9)
    assert draws_needed(certificate, 75) is None


def test_ground_truth_and_prediction(client, run):
    for which, stored in (("truth", run.label("scene 1")), ("prediction", run.prediction("scene 1"))):
        answer = client.http.get("/api/labels", params={"image": "scene 1", "which": which})
        _, maps = unpack(answer.content)
        np.testing.assert_array_equal(maps["vertex"], np.where(stored == 255, -1, stored.astype(int)))


def test_list_has_the_scores_of_the_table(client, run):
    listed = client.http.get("/api/images").json()
    assert [image["name"] for image in listed] == ["scene 0", "scene 1", "scene 2"]
    pool = ScoredRun(run).sums("nested", Setting(0.25, 60, 0.75))
    for image in listed:
        scores = pool.only([image["name"]]).scores()
        assert image["scores"]["0.25 60 0.75 nested"] == pytest.approx([scores.cig, scores.abstain, scores.wrong])


def test_overview_names_what_the_page_needs(client, run):
    facts = client.http.get("/api/run").json()
    assert [method["text"] for method in facts["methods"]] == list(run.manifest.methods)
    assert facts["methods"][4]["settings"]["max_set"] == 3
    assert len(facts["vertices"]) == len(run.manifest.tree.vertices)
    assert facts["pictures_missing"] is None
    assert len(facts["colours"]["heat"]) == 256


def test_photographs_come_from_the_data_set(client, data):
    shown = client.http.get("/api/picture", params={"image": "scene 2"}).content
    stored = Image.open(data / "images" / "scene 2.png")
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(shown))), np.asarray(stored))
    small = Image.open(io.BytesIO(client.http.get("/api/thumbnail", params={"image": "scene 2"}).content))
    assert small.size == (32, 24)


def test_without_the_data_set_thumbnails_show_the_ground_truth(run):
    from certiseg.viewer.app import make_app
    from tests.viewer.conftest import Client

    client = Client(make_app(run))
    assert "--root" in client.http.get("/api/run").json()["pictures_missing"]
    assert client.http.get("/api/picture", params={"image": "scene 0"}).status_code == 404
    small = np.asarray(Image.open(io.BytesIO(client.http.get("/api/thumbnail", params={"image": "scene 0"}).content)))
    assert tuple(small[0, 0]) == (60, 60, 66)


def test_another_image_of_the_same_name_is_not_shown(run, data, tmp_path):
    import shutil

    from certiseg.viewer.app import make_app
    from tests.viewer.conftest import Client

    shutil.copytree(data, tmp_path / "other")
    Image.new("RGB", (32, 24), (9, 9, 9)).save(tmp_path / "other/images/scene 0.png")
    client = Client(make_app(run, root=str(tmp_path / "other")))
    answer = client.http.get("/api/picture", params={"image": "scene 0"})
    assert answer.status_code == 404
    assert "its pixels are others" in answer.json()["error"]


def test_methods_of_the_run_are_its_certificates(client, run):
    for text in run.manifest.methods:
        options = MethodChoice(text).options
        if "thresholds" in options:
            options["thresholds"] = ",".join(str(t) for t in options["thresholds"])
        facts, maps = client.map(**options)
        assert facts["differs"] == []
        assert facts["role"] == ("promise" if text == "nested" else "comparison")
        np.testing.assert_array_equal(maps["vertex"], run.certificate("scene 0", Setting(0.25, 100, 0.75), text).vertex)


def test_caches_stay_within_their_bounds():
    kept = BoundedCache(10, len)
    for size in (4, 4, 4, 30):
        assert kept.get(size, lambda size=size: b"x" * size) == b"x" * size
    made = []
    assert kept.get(30, lambda: made.append(1)) == b"x" * 30
    assert made == []
    kept.get(4, lambda: made.append(1) or b"yyyy")
    assert made == [1]


def test_a_method_has_one_name_in_every_place(client):
    run = client.http.get("/api/run").json()
    for method in run["methods"]:
        facts, _ = client.map(**{k: _listed(v) for k, v in method["settings"].items()})
        pixel = client.http.get(
            "/api/pixel",
            params=client.choice(**{k: _listed(v) for k, v in method["settings"].items()})
            | {"lane": "p", "request": client.asked, "row": 3, "column": 4},
        ).json()
        assert facts["name"] == pixel["name"] == method["name"]
        button = next(known["name"] for known in run["all_methods"] if known["method"] == method["settings"]["method"])
        assert method["name"].startswith(button)


def _listed(value):
    return ",".join(map(str, value)) if isinstance(value, list) else value
