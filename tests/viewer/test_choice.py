"""Exploring is told apart from a certificate, and the printed command makes one."""

import shlex

import pytest

from certiseg.cli import main
from certiseg.runs.folder import RunFolder
from certiseg.viewer.pictures import _first_and_every


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"tau": 0.8}, ["tau 0.8 instead of 0.75"]),
        ({"alpha": 0.02}, ["alpha 0.02 instead of 0.01"]),
        ({"correction": "holm"}, ["correction holm instead of bonferroni"]),
        ({"test": "anytime"}, ["test anytime instead of fixed"]),
        ({"method": "sets", "max_set": 2}, ["max_set 2 instead of 3"]),
        ({"method": "level", "level": 2}, ["level 2 instead of 1"]),
        ({"method": "adaptive", "thresholds": "0,0,0.3"}, ["thresholds (0, 0, 0.3) instead of (0, 0, 0.25)"]),
    ],
)
def test_what_differs_from_the_run(client, changes, words):
    facts, _ = client.map(**changes)
    assert facts["differs"] == words
    assert facts["role"] == ("exploration" if words else "promise")


def test_the_printed_command_certifies_what_was_explored(client, data, run):
    changes = {"method": "sets", "max_set": 2, "tau": 0.7, "alpha": 0.02, "correction": "holm"}
    line = client.http.get("/api/recipe", params=client.choice(**changes)).json()["command"]
    words = shlex.split(line)
    assert words[:3] == ["certiseg", "evaluate", "folder"]
    assert main(words[1:]) == 0
    made = RunFolder(words[words.index("--out") + 1])
    old, new = run.manifest, made.manifest
    assert (new.images, new.model_sha256, new.n0) == (old.images, old.model_sha256, old.n0)
    assert (new.settings, new.sigmas, new.methods) == (((100, 0.7),), (0.25,), ("sets:2",))
    assert (new.alpha, new.correction, new.seed) == (0.02, "holm", old.seed + 1)
    before, after = (folder.votes(old.images[0], new.each_setting()[0]) for folder in (run, made))
    assert (before.counts != after.counts).any()


@pytest.mark.parametrize(
    ("chosen", "options"),
    [
        ("abcdef", []),
        ("abc", ["--first", "3"]),
        ("ace", ["--first", "5", "--every", "2"]),
        ("a", ["--first", "1"]),
        ("ad", ["--first", "4", "--every", "3"]),
        ("bd", ["--first", "2"]),
    ],
)
def test_options_that_choose_the_images(chosen, options):
    assert _first_and_every(tuple("abcdef"), tuple(chosen)) == options


ODD = [
    ({"tau": "nan"}, "tau must be a number"),
    ({"tau": "1e999"}, "tau must be a number"),
    ({"tau": "0.2"}, "tau must lie in [0.5, 1)"),
    ({"alpha": "0"}, "alpha must lie in (0, 1)"),
    ({"method": "x"}, "method must be one of"),
    ({"correction": "by"}, "correction must be bonferroni or holm"),
    ({"n": "-1"}, "n must be a whole number"),
    ({"n": "99"}, "sigma and n must be of the run"),
    ({"n": "²"}, "n must be a whole number"),
    ({"n": "9" * 300}, "at most 200 characters"),
    ({"sigma": "0.26"}, "sigma and n must be of the run"),
    ({"method": "adaptive", "thresholds": "1,0"}, "must not decrease"),
    ({"method": "adaptive", "thresholds": "0,0,0,0"}, "at most 3"),
    ({"method": "adaptive", "thresholds": ""}, "thresholds must be a number"),
    ({"method": "level", "level": "9"}, "level must be in 0..3"),
    ({"method": "sets", "max_set": "6"}, "max_set must be in 1..5"),
    ({"correction": "kfwer", "method": "segcertify", "k": "999999"}, "k must be at most"),
    ({"layers": "vertex,passwd"}, "layers must be among"),
    ({"highlight": "4000", "side": "within"}, "vertex must be in"),
    ({"highlight": "1", "side": "left"}, "side must be one of"),
    ({"folder": "/etc"}, "query must use known names"),
    ({"request": "-5"}, "request must be a whole number"),
]


@pytest.mark.parametrize(("changes", "sentence"), ODD)
def test_odd_values_are_one_sentence(client, changes, sentence):
    assert sentence in client.refused(**changes)
    assert client.map()[0]["differs"] == []


def test_the_command_draws_enough_to_certify(client, run):
    choice = client.choice(tau=0.97, alpha=0.001)
    assert client.map(tau=0.97, alpha=0.001)[0]["critical"] is None
    words = shlex.split(client.http.get("/api/recipe", params=choice).json()["command"])
    n, tau = words[words.index("--setting") + 1].split(":")
    assert (int(n) > 100, tau) == (True, "0.97")
    assert main(words[1:]) == 0


def test_settings_that_no_draws_can_certify_have_no_command(client):
    answer = client.http.get("/api/recipe", params=client.choice(tau=0.9999, alpha=1e-9))
    assert answer.status_code == 400
    assert "tau and alpha must allow a certificate" in answer.json()["error"]
