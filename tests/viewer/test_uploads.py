"""Dropped images: certified with the run's model, growing, stoppable, and checked by `verify`."""

import io
import json
import shlex
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.cli import main
from certiseg.runs.verify import verify_run
from certiseg.viewer.app import make_app
from certiseg.viewer.run_reader import RunReader
from certiseg.viewer.uploads import MAX_BYTES, read_upload
from tests.viewer.conftest import Client, unpack
from tests.viewer.tiny import model

SETTING = {"sigma": 0.25, "n": 100, "tau": 0.75, "method": "nested"}
PAGE = {"X-Certiseg": "1"}


def picture(seed=7, size=(24, 32)):
    rng = np.random.default_rng(seed)
    coarse = np.kron(rng.integers(0, 256, (3, 4, 3)), np.ones((size[0] // 3, size[1] // 4, 1), int))
    written = io.BytesIO()
    Image.fromarray(coarse.astype(np.uint8)).save(written, "PNG")
    return written.getvalue()


def image():
    return Image.open(io.BytesIO(picture()))


def drop(client, content, name="my photo.png", **changes):
    return client.http.post("/api/drop", params={"name": name, **SETTING, **changes}, content=content, headers=PAGE)


def follow(client, number, until=("done", "failed", "cancelled")):
    seen = []
    for _ in range(2000):
        facts, maps = unpack(client.http.get(f"/api/drop/{number}").content)
        seen.append((facts, maps))
        if facts["state"] in until:
            return seen
        time.sleep(0.01)
    raise AssertionError("the dropped image was never done")


class Gate:
    """A model that draws only when it is let."""

    def __init__(self):
        self.inner, self.calls, self.allowed, self.pause = model(), 0, threading.Semaphore(0), 0.0

    def load(self):
        gate, network = self, self.inner.model

        class Slow(type(network)):
            def forward(self, images):
                gate.calls += 1
                assert gate.allowed.acquire(timeout=30)
                time.sleep(gate.pause)
                return super().forward(images)

        slow = Slow().eval()
        slow.load_state_dict(network.state_dict())
        return self.inner.adjusted(model=slow)


@pytest.fixture
def gated(run, data):
    gate = Gate()
    client = Client(make_app(run, root=str(data), load_model=gate.load))
    yield client, gate
    gate.allowed.release(1000)


def test_a_dropped_image_gets_a_certificate_that_verifies(client, run):
    answer = drop(client, picture())
    assert answer.status_code == 202
    facts, maps = follow(client, answer.json()["id"])[-1]
    assert facts["state"] == "done", facts["error"]
    name = f"dropped/{facts['name']}"
    path = run.path / "dropped" / f"{facts['name']}.certificate.npz"
    stored = cs.load_certificate(path)
    draws = stored.votes.n  # fewer than 100 where every pixel was certified before: the seed is a random one
    assert facts["made"] == 8 + draws <= 108
    np.testing.assert_array_equal(maps["vertex"], stored.vertex)
    assert cs.verify(path).passed
    assert (stored.settings.test, stored.settings.method, stored.votes.stopped) == ("anytime", "nested", True)
    assert stored.votes.seed != run.manifest.seed
    fresh = cs.sample(model(), image(), sigma=0.25, n0=8, n=draws, seed=stored.votes.seed, batch_size=4)
    np.testing.assert_array_equal(stored.votes.counts, fresh.counts)
    assert client.http.get("/api/certificate", params={"image": name}).content == path.read_bytes()
    listed = client.http.get("/api/images").json()[-1]
    assert (listed["name"], listed["summary"]["abstain"]) == (name, stored.abstain_rate)
    facts, maps = client.map(image=name, test="anytime")
    np.testing.assert_array_equal(maps["vertex"], stored.vertex)
    assert (facts["differs"], facts["cig"]) == ([], None)
    assert client.map(image=name, test="anytime", tau=0.7)[0]["differs"] == ["tau 0.7 instead of 0.75"]
    shown = client.http.get("/api/picture", params={"image": name}).content
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(shown))), np.asarray(Image.open(io.BytesIO(picture())))
    )
    assert [file.name for file in (run.path / "dropped").iterdir() if file.name.startswith(".")] == []


def test_a_foreign_certificate_among_the_uploads_is_refused_and_found(client, run, tmp_path):
    facts, _ = follow(client, drop(client, picture()).json()["id"])[-1]
    name, path = f"dropped/{facts['name']}", run.path / "dropped" / f"{facts['name']}.certificate.npz"
    assert verify_run(run).passed
    own = path.read_bytes()
    votes = cs.load_certificate(path).votes
    flat = cs.flat_hierarchy(run.manifest.tree.classes)
    for foreign, sentence in (
        (replace(votes, provenance={**votes.provenance, "model_sha256": "0" * 64}), "must be of the model of the run"),
        (votes, "must be over the hierarchy of the run"),
    ):
        tree = flat if foreign is votes else "camvid"
        cs.certify(foreign, tree, test="anytime").save(path)
        assert sentence in client.refused(image=name, test="anytime")
        problems = [problem for problem in verify_run(run).problems if problem.path == path]
        assert sentence in problems[0].what
    path.write_bytes(own)
    noted = path.with_name(f"{facts['name']}.json")
    summary = noted.read_text()
    for key in ("image_key", "abstain"):
        noted.write_text(json.dumps({**json.loads(summary), key: 0}))
        problem = verify_run(run).problems[0]
        assert "tell the image and the abstentions" in problem.what
        assert problem.path == noted, "repair takes away no certificate for it"
    noted.write_text(summary)
    assert verify_run(run).passed
    other = Image.fromarray(255 - np.asarray(Image.open(io.BytesIO(picture()))))
    other.save(path.with_name(f"{facts['name']}.png"))
    fresh = Client(make_app(run))
    assert (
        "must be the image that was certified" in fresh.http.get("/api/picture", params={"image": name}).json()["error"]
    )


def test_the_printed_command_certifies_an_upload_as_it_was_explored(client, run, tmp_path):
    facts, _ = follow(client, drop(client, picture()).json()["id"])[-1]
    explored = {"method": "adaptive", "thresholds": "0,0.125,0.4", "tau": 0.7001, "alpha": 0.02, "correction": "kfwer"}
    chosen = client.choice(image=f"dropped/{facts['name']}", test="anytime", k=3, **explored)
    words = shlex.split(client.http.get("/api/recipe", params=chosen).json()["command"])
    assert words[:2] == ["certiseg", "certify"]
    words[words.index("--out") + 1] = str(tmp_path / "certified")
    assert main(words[1:]) == 0
    made = cs.load_certificate(tmp_path / "certified" / f"{facts['name']}.certificate.npz")
    assert (made.settings.method, made.settings.tau, made.settings.alpha) == ("adaptive", 0.7001, 0.02)
    assert (made.settings.thresholds, made.settings.k, made.settings.test) == ((0, 0.125, 0.4), 3, "anytime")
    assert (made.votes.sigma, made.votes.n0, made.votes.n) == (0.25, 8, facts["made"] - 8)
    assert made.votes.seed == run.manifest.seed + 1


def test_the_map_grows_and_every_step_is_an_anytime_certificate(gated, run):
    client, gate = gated
    gate.pause = 0.01
    gate.allowed.release(1000)
    seen = follow(client, drop(client, picture()).json()["id"])
    assert seen[-1][0]["state"] == "done"
    shown = {facts["shown_draws"]: (facts, maps) for facts, maps in seen if maps}
    assert len(shown) >= 3
    assert list(shown) == sorted(shown)
    path = run.path / "dropped" / f"{seen[-1][0]['name']}.certificate.npz"
    settings, seed = cs.load_certificate(path).settings, cs.load_certificate(path).votes.seed
    for draws, (facts, maps) in shown.items():
        votes = cs.sample(
            *(model(), image()),
            **{"sigma": 0.25, "n0": 8, "n": draws, "seed": seed, "batch_size": 4},
            stop=lambda _: False,
            stop_every=draws,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cs.certify(votes, cs.load_hierarchy("camvid"), **vars(settings))
        np.testing.assert_array_equal(maps["vertex"], expected.vertex)
        assert facts["abstain"] == expected.abstain_rate
    assert seen[-1][0]["abstain"] < 1


def test_an_image_that_was_uploaded_before_gets_fresh_noise_and_is_no_promise(client, run):
    names = []
    for number in range(3):
        facts, _ = follow(client, drop(client, picture(), f"{number}.png").json()["id"])[-1]
        assert (facts["state"], facts["earlier"]) == ("done", number)
        names.append(f"dropped/{facts['name']}")
    seeds = {cs.load_certificate(run.path / f"{name}.certificate.npz").votes.seed for name in names}
    assert len(seeds) == 3
    assert run.manifest.seed not in seeds
    roles = [client.map(image=name, test="anytime")[0]["role"] for name in names]
    assert roles == ["promise", "comparison", "comparison"]
    assert client.map(image=names[1], test="anytime", tau=0.7)[0]["role"] == "exploration"
    assert follow(client, drop(client, picture(8)).json()["id"])[-1][0]["earlier"] == 0
    again = Client(make_app(run, load_model=model))
    assert follow(again, drop(again, picture()).json()["id"])[-1][0]["earlier"] == 3, "known after a restart"


def test_an_upload_that_was_cancelled_counts(gated):
    client, gate = gated
    number = drop(client, picture()).json()["id"]
    client.http.post(f"/api/drop/{number}/cancel", headers=PAGE)
    gate.allowed.release(1000)
    assert follow(client, number)[-1][0]["state"] == "cancelled"
    assert follow(client, drop(client, picture()).json()["id"])[-1][0]["earlier"] == 1


def test_cancel_keeps_nothing_and_draws_no_more(gated, run):
    client, gate = gated
    number = drop(client, picture()).json()["id"]
    gate.allowed.release(3)
    busy = drop(client, picture(8))
    assert busy.status_code == 409
    assert "one image" in busy.json()["error"]
    assert client.http.get("/api/drop/current").json()["id"] == number
    assert client.http.post(f"/api/drop/{number}/cancel", headers=PAGE).status_code == 200
    gate.allowed.release(2)
    assert follow(client, number)[-1][0]["state"] == "cancelled"
    assert gate.calls <= 6
    assert list((run.path / "dropped").iterdir()) == []
    assert client.http.get("/api/drop/current").json() is None
    gate.allowed.release(1000)
    again = drop(client, picture(8)).json()["id"]
    assert follow(client, again)[-1][0]["state"] == "done"


def test_stopping_by_looking_keeps_a_valid_certificate(gated, run):
    client, gate = gated
    number = drop(client, picture()).json()["id"]
    gate.allowed.release(18)
    while gate.calls < 18:
        time.sleep(0.01)
    client.http.post(f"/api/drop/{number}/stop", headers=PAGE)
    gate.allowed.release(100)
    facts, _ = follow(client, number)[-1]
    path = run.path / "dropped" / f"{facts['name']}.certificate.npz"
    stored = cs.load_certificate(path)
    assert 35 <= stored.votes.n < 100  # 40 where the wish comes after the look at 35
    assert cs.verify(path).passed


def test_another_model_is_refused(run, data):
    import torch

    other = model()
    with torch.no_grad():
        other.model.layers[0].bias += 1
    client = Client(make_app(run, root=str(data), load_model=lambda: other))
    facts, _ = follow(client, drop(client, picture()).json()["id"])[-1]
    assert facts["state"] == "failed"
    assert "model must be the run's" in facts["error"]


def test_a_model_that_breaks_is_told(run, data):
    def broken():
        raise RuntimeError("no such device")

    client = Client(make_app(run, root=str(data), load_model=broken))
    facts, _ = follow(client, drop(client, picture()).json()["id"])[-1]
    assert (facts["state"], "no such device" in facts["error"]) == ("failed", True)
    assert client.map()[0]["differs"] == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must be a PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "must be a PNG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "must be a PNG"),
        (picture()[:90], "must be a readable image"),
        (picture()[:-30], "must be a readable image"),
    ],
)
def test_files_that_are_no_image(client, run, content, sentence):
    answer = drop(client, content, name="../../x<b>.png")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("../../x<b>.png must ")
    assert sentence in answer.json()["error"]
    assert str(run.path) not in answer.json()["error"]
    assert list((run.path / "dropped").iterdir()) == []
    assert client.map()[0]["differs"] == []


def test_names_of_dropped_files_stay_in_the_folder(client, run):
    facts = follow(client, drop(client, picture(), name="../../../etc/ü b.png").json()["id"])[-1][0]
    assert facts["name"].startswith("b-")
    assert {file.parent for file in run.path.rglob("b-*")} == {run.path / "dropped"}


def bomb(width, height):
    """A small PNG that unfolds into many pixels."""
    import struct
    import zlib

    def part(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compressobj(9)
    line = b"\0" + b"\0" * (width // 8)
    packed = b"".join(rows.compress(line * 100) for _ in range(height // 100)) + rows.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", packed) + part(b"IEND", b"")


def test_two_hundred_megapixels_are_refused_by_the_header(client):
    content = bomb(20_000, 10_000)
    assert len(content) < 1_000_000
    started = time.monotonic()
    answer = drop(client, content)
    assert answer.status_code == 400
    assert "at most 8,659,208 pixels" in answer.json()["error"]
    assert time.monotonic() - started < 5
    smaller = drop(client, bomb(10_000, 10_000))
    assert "10000x10000" in smaller.json()["error"]


def test_too_few_draws_are_refused_before_the_first(client, run, tmp_path):
    path = tmp_path / "large.png"
    Image.new("RGB", (3000, 2000)).save(path)
    assert read_upload(path.read_bytes(), "large.png", RunReader(run))[1].pixels.shape == (2000, 3000, 3)
    answer = drop(client, path.read_bytes(), n=60)
    assert answer.status_code == 400
    assert "n must be at least" in answer.json()["error"]


def test_only_settings_of_the_run(client):
    for changes in ({"tau": 0.6}, {"n": 99}, {"method": "level:2"}, {"sigma": "inf"}):
        assert drop(client, picture(), **changes).status_code == 400


def test_a_declared_length_is_enough_to_refuse(client):
    headers = {**PAGE, "content-length": str(3 << 30)}
    answer = client.http.post("/api/drop", params={"name": "x", **SETTING}, content=b"x", headers=headers)
    assert answer.status_code == 413
    assert "64 MB" in answer.json()["error"]


def test_an_endless_body_is_cut_off(client, run):
    sent = []

    def endless():
        while True:
            sent.append(1)
            yield b"x" * (1 << 20)

    answer = client.http.post("/api/drop", params={"name": "x", **SETTING}, content=_first(endless(), 80), headers=PAGE)
    assert answer.status_code == 413
    assert not (run.path / "dropped").exists()
    assert MAX_BYTES == 64 << 20


def _first(parts, count):
    for _, part in zip(range(count), parts, strict=False):
        yield part


@pytest.mark.parametrize("missing", ["name", *SETTING])
def test_a_query_without_a_value_is_refused_in_a_sentence(client, missing):
    query = {name: value for name, value in {"name": "a.png", **SETTING}.items() if name != missing}
    answer = client.http.post("/api/drop", params=query, content=picture(), headers=PAGE)
    assert (answer.status_code, answer.json()) == (400, {"error": f"query must have {missing}, got none"})
    assert "content-security-policy" in answer.headers


def test_the_rule_of_stopping_is_told_in_words(client, run):
    follow(client, drop(client, picture()).json()["id"])
    (stored,) = (run.path / "dropped").glob("*.certificate.npz")
    rule = cs.load_certificate(stored).votes.provenance["stop"]["rule"]
    assert rule == "until every pixel is certified, or stopped on the page"
