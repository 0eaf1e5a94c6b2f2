"""What a certificate is about: the pictures are those of the library, and what they say of the range is true."""

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.images import read_image
from certiseg.viewer import tangible
from certiseg.viewer.app import make_app
from tests.viewer.conftest import Client, unpack
from tests.viewer.tiny import make_run, model

FOG = threats.fog(0.5)


@pytest.fixture(scope="module")
def foggy(tmp_path_factory, data):
    along = {"threat": FOG, "sigmas": (0.0,), "settings": ((100, 0.75),), "promise": None}
    return make_run(tmp_path_factory.mktemp("fog") / "run", data, **along)


@pytest.fixture
def fog_client(foggy, data):
    return Client(make_app(foggy, root=str(data), load_model=model))


def look(client, what, amount, *, status=200, **changes):
    client.asked += 1
    query = client.choice(lane="t", request=client.asked, what=what, amount=amount, **changes)
    answer = client.http.get("/api/look", params=query)
    assert answer.status_code == status, answer.text
    return unpack(answer.content) if status == 200 else answer.json()["error"]


def rgb(maps):
    picture = maps["picture"]
    assert (picture >> 24 == 255).all()
    return np.stack([picture & 255, picture >> 8 & 255, picture >> 16 & 255], axis=-1)


def photograph(data):
    return read_image(data / "images" / "scene 0.png")


def bytes_of(pixels):
    return np.rint(np.clip(pixels, 0, 1) * 255)


def test_fog_is_that_of_the_library_and_its_range_that_of_the_certificate(fog_client, data):
    end = 0.5 * np.log(2)
    for t in (0.0, 0.2, end - 1e-9, end + 1e-6, 0.6):
        facts, maps = look(fog_client, "moved", t, sigma=0.0)
        np.testing.assert_array_equal(rgb(maps), bytes_of(FOG.apply(photograph(data), t)))
        assert facts["inside"] == (t <= end)
        assert facts["words"] == f"fog of density {int(100 * (1 - np.exp(-t)) + 1e-6)} %"
        assert facts["extent"] == "fog of density up to 29 %"
    assert fog_client.viewer.tangible.facts()["threat"]["most"] == pytest.approx(2 * end)


def test_a_larger_tau_reaches_further(fog_client):
    assert look(fog_client, "moved", 0.5, sigma=0.0)[0]["inside"] is False
    assert look(fog_client, "moved", 0.5, sigma=0.0, tau=0.85)[0]["inside"] is True


def test_draws_are_those_that_were_made(client, fog_client, data, run, foggy):
    pixels, (height, width) = photograph(data), (24, 32)
    facts, maps = look(client, "draw", 3)
    assert "draw 4 of 100" in facts["words"]
    assert facts["inside"] is None
    votes, seen = run.all_votes("scene 0", 0.25), []

    def spy(images):
        seen.append(images.numpy().copy())
        return np.zeros((len(images), 31, height, width), np.float32)

    settings = {"n0": 1, "n": 4, "seed": votes.seed, "sigma": 0.25}
    cs.sample(cs.Segmenter(spy), pixels, **settings)
    np.testing.assert_array_equal(rgb(maps), bytes_of(seen[-1][0].transpose(1, 2, 0)))
    seen.clear()
    cs.sample(cs.Segmenter(spy), pixels, **{**settings, "sigma": 0.0, "threat": FOG})
    np.testing.assert_array_equal(
        rgb(look(fog_client, "draw", 3, sigma=0.0)[1]), bytes_of(seen[-1][0].transpose(1, 2, 0))
    )


def test_a_random_perturbation_has_its_size(client, data):
    radius = 0.25 * 0.6744897501960817
    facts, _ = look(client, "random", 1)
    assert facts["inside"] is True
    assert f"l2 size {radius:.4f}"[:-2] in facts["words"]
    assert "grey levels RMS" in facts["words"]
    facts, maps = look(client, "random", 256)
    assert facts["inside"] is False
    assert np.abs(rgb(maps) - bytes_of(photograph(data))).max() > 1


def test_an_attack_stays_inside_its_ball_and_says_what_it_changes(client, data):
    for amount, inside in ((1, True), (64, False)):
        query = client.choice(amount=amount)
        answer = client.http.post("/api/attack", params=query, headers={"x-certiseg": "1"})
        assert answer.status_code == 200, answer.text
        facts, maps = unpack(answer.content)
        assert facts["inside"] is inside
        assert 0 <= facts["changed"] <= 1
        assert maps["picture"].shape == (24, 32)


def test_one_attack_at_a_time_and_of_small_images_only(client, monkeypatch):
    client.viewer.tangible._attacking.acquire()
    post = {"params": client.choice(amount=1), "headers": {"x-certiseg": "1"}}
    assert client.http.post("/api/attack", **post).status_code == 409
    client.viewer.tangible._attacking.release()
    monkeypatch.setattr(tangible, "MOST_ATTACKED", 100)
    refused = client.http.post("/api/attack", **post)
    assert "at most 100 pixels" in refused.json()["error"]
    assert client.http.post("/api/attack", params=client.choice(amount=1)).status_code == 403


def test_large_pictures_are_sent_smaller(client, monkeypatch):
    monkeypatch.setattr(tangible, "MOST_SHOWN", 24 * 32 // 4)
    assert look(client, "draw", 0)[1]["picture"].shape == (12, 16)


@pytest.mark.parametrize(
    ("what", "amount", "words"),
    [
        ("moved", 0.1, "what must be draw or random for l2"),
        ("photo", 0.1, "what must be one of"),
        ("draw", 100, "amount must be a draw in 0..99"),
        ("draw", 0.5, "amount must be a draw"),
        ("draw", -1, "amount must be a draw"),
        ("draw", "nan", "amount must be a number"),
        ("random", 0, "amount must be above 0"),
        ("random", 1e9, "amount must be above 0 and at most 1024"),
        ("random", "inf", "amount must be a number"),
    ],
)
def test_other_looks_are_one_sentence(client, what, amount, words):
    assert words in look(client, what, amount, status=400)


@pytest.mark.parametrize("amount", [-0.1, 1e6])
def test_other_parameters_are_one_sentence(fog_client, amount):
    assert "must be" in look(fog_client, "moved", amount, status=400, sigma=0.0)


def test_a_threat_shows_no_perturbation(fog_client):
    assert "must cover perturbations" in look(fog_client, "random", 1, status=400, sigma=0.0)


def test_an_image_that_is_not_there_is_not_found(client):
    assert "image must be one of the run's" in look(client, "draw", 0, status=404, image="../manifest")
