"""Nobody else may ask, and nothing outside the run folder is read."""

import os
import shutil

import pytest
from starlette.testclient import TestClient

import certiseg as cs
from certiseg.viewer.app import make_app
from certiseg.viewer.server import check_token
from tests.viewer.conftest import Client
from tests.viewer.test_uploads import PAGE, SETTING, drop, picture

TOKEN = "correcthorsebattery1"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd",
        "/../../etc/passwd",
        "/api/drop/..%2f..%2fetc%2fpasswd",
        "/static/",
        "/manifest.json",
    ],
)
def test_no_path_leads_out(client, path):
    answer = client.http.get(path)
    assert answer.status_code in (400, 404, 405)
    assert "root:" not in answer.text
    assert "def " not in answer.text


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "scene 0/../../x", "dropped/../manifest", "scene 0\0", "x" * 180, ""]
)
@pytest.mark.parametrize("route", ["picture", "thumbnail", "certificate", "labels"])
def test_only_listed_images(client, name, route):
    answer = client.http.get(f"/api/{route}", params={"image": name, "which": "truth"})
    assert answer.status_code == 404
    assert "must be one of the run's" in answer.json()["error"]


@pytest.mark.parametrize(
    ("part", "route"),
    [("votes/scene 0.sigma0.25.npz", "map"), ("labels/scene 0.png", "labels"), ("rows/scene 0.json", "images")],
)
def test_links_out_of_the_run_are_not_followed(client, run, tmp_path, part, route):
    outside = tmp_path / "outside"
    (run.path / part).rename(outside)
    (run.path / part).symlink_to(outside)
    query = {"image": "scene 0", "which": "truth"} if route == "labels" else client.choice(lane="x", request=1)
    answer = client.http.get(f"/api/{route}", params={} if route == "images" else query)
    assert answer.status_code == 400
    assert "inside the run folder" in answer.json()["error"]


def test_a_linked_drop_folder_takes_nothing(client, run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (run.path / "dropped").symlink_to(tmp_path / "elsewhere")
    answer = drop(client, picture())
    assert answer.status_code == 400
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_dropped_certificate_that_points_elsewhere_is_refused(client, run):
    (run.path / "dropped").mkdir()
    setting = run.manifest.each_setting()[0]
    certificate = run.certificate("scene 0", setting, "nested")
    certificate.save(run.path / "dropped/odd.certificate.npz", votes_path="../votes/scene 0.sigma0.25.npz")
    answer = client.http.get("/api/map", params=client.choice(image="dropped/odd", lane="x", request=1))
    assert answer.status_code == 400
    assert "must hold its votes" in answer.json()["error"]


def test_a_damaged_file_is_one_sentence_and_the_rest_works(client, run):
    path = run.votes_path("scene 0", 0.25)
    path.write_bytes(path.read_bytes()[:-100])
    answer = client.http.get("/api/map", params=client.choice(lane="x", request=1))
    assert answer.status_code == 400
    assert "undamaged" in answer.json()["error"]
    assert client.map(image="scene 1")[0]["n"] == 100


@pytest.mark.parametrize(
    "host", ["evil.example", "a.example:8000", "127.0.0.1.evil.example", "192.168.0.9", "", "[::1"]
)
def test_other_hosts_are_refused(client, host):
    answer = client.http.get("/api/run", headers={"host": host})
    assert answer.status_code == 421
    assert "Host header" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:1", "[::1]:8000", "127.0.0.9"])
def test_loopback_in_all_its_names(client, host):
    assert client.http.get("/api/images", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example", **PAGE},
        {"origin": "null", **PAGE},
        {"origin": "http://127.0.0.1:9", **PAGE},
        {"sec-fetch-site": "cross-site", **PAGE},
        {"sec-fetch-site": "same-site", **PAGE},
    ],
)
def test_cross_site_posts_are_refused(client, run, headers):
    answer = client.http.post("/api/drop", params={"name": "x", **SETTING}, content=picture(), headers=headers)
    assert answer.status_code == 403
    assert not (run.path / "dropped").exists()


def test_cross_site_reading_is_refused(client):
    odd = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.http.get("/api/picture", params={"image": "scene 0"}, headers=odd).status_code == 403
    assert (
        client.http.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200
    )


def test_answers_forbid_other_sources(client):
    for path in ("/", "/static/main.js", "/api/run"):
        headers = client.http.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_addresses_have_a_length(client):
    assert client.http.get("/api/map", params={"image": "x" * 5000}).status_code == 414


def test_methods_other_than_asked_for(client):
    assert client.http.put("/api/drop", headers=PAGE).status_code == 405
    assert client.http.delete("/api/run", headers=PAGE).status_code == 405


def test_the_network_needs_a_token(run):
    with pytest.raises(cs.InputError, match=r"--token must be given for --host 0\.0\.0\.0"):
        check_token("0.0.0.0", None)
    with pytest.raises(cs.InputError, match="at least 12"):
        check_token("127.0.0.1", "short")
    check_token("127.0.0.1", None)
    check_token("::1", None)
    client = TestClient(make_app(run, host="0.0.0.0", token=TOKEN), base_url="http://10.1.2.3:8000")
    assert client.get("/api/run").status_code == 401
    assert client.get("/").status_code == 401
    assert client.get("/", params={"token": TOKEN + "x"}).status_code == 401
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    cookie = client.cookies.jar
    assert [(c.value, c.has_nonstandard_attr("HttpOnly")) for c in cookie] == [(TOKEN, True)]
    assert client.get("/api/images").status_code == 200
    assert client.get("/api/images", headers={"host": "evil.example"}).status_code == 421


def test_answers_over_the_network_are_compressed(run):
    client = Client(make_app(run, host="0.0.0.0", token=TOKEN), "http://10.1.2.3:8000")
    client.http.get("/", params={"token": TOKEN})
    assert client.http.get("/api/run").headers["content-encoding"] == "gzip"
    assert client.map()[0]["n"] == 100


def test_a_folder_that_is_no_run(tmp_path):
    from certiseg.runs.folder import RunFolder

    with pytest.raises(cs.InputError, match="must be a run folder"):
        make_app(RunFolder(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files_are_told(client, run):
    path = run.votes_path("scene 0", 0.25)
    path.chmod(0)
    assert client.http.get("/api/map", params=client.choice(lane="x", request=1)).status_code in (400, 500)


def test_what_nobody_foresaw_is_a_sentence_behind_the_same_policy(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("secret path /home/somebody")

    monkeypatch.setattr(client.viewer.reader, "truth", fail)
    answer = client.http.get("/api/map", params=client.choice(lane="t", request=1))
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server failed; its log says where"}
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "secret path" in caplog.text


def test_a_run_that_is_gone_is_told(client, run):
    shutil.rmtree(run.path)
    answer = client.http.get("/api/images")
    assert answer.status_code == 404
    assert "the run folder must be there, but it is gone" in answer.json()["error"]
