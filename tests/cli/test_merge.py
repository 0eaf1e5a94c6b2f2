"""certiseg merge: shards become the run that one process makes, and what does not fit is one sentence."""

import json
import shutil

import pytest

from certiseg.cli import main
from tests.cli.test_evaluate import data, evaluate  # noqa: F401 - a fixture
from tests.runs.test_evaluate import hashes

OPTIONS = ["--setting", "60:0.75", "--sigma", "0.1", "--threads", "1"]


def merge(*arguments):
    """Exit code of a merge."""
    try:
        return main(["merge", *arguments])
    except SystemExit as stop:
        return stop.code


@pytest.fixture
def shards(data):  # noqa: F811
    """The folders of three shards of one image each."""
    for number in (1, 2, 3):
        assert evaluate(*OPTIONS, "--out", f"shard{number}", "--shard", f"{number}/3") == 0
    return ["shard1", "shard2", "shard3"]


def test_shards_become_one_run_byte_for_byte_whatever_their_order(shards, data, capsys):  # noqa: F811
    assert evaluate(*OPTIONS) == 0
    assert evaluate(*OPTIONS, "--out", "shard3", "--shard", "3/3") == 0
    assert "shard 3/3 of folder: 1 images done, 0 left out" in capsys.readouterr().out
    assert merge("shard3", "shard1", "shard2", "--out", "joined", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["scores"]) == 6
    assert hashes("joined") == hashes("run")
    assert merge(*shards, "--out", "joined") == 0
    shutil.rmtree("shard1")
    assert evaluate(*OPTIONS, "--out", "joined") == 0
    assert hashes("joined") == hashes("run")


def test_an_image_that_a_shard_left_out_is_left_out_of_the_whole(data, capsys):  # noqa: F811
    (data / "data/labels/1.png").unlink()
    for number, code in ((1, 0), (2, 3), (3, 0)):
        assert evaluate(*OPTIONS, "--out", f"shard{number}", "--shard", f"{number}/3") == code
    assert evaluate(*OPTIONS) == 3
    assert merge("shard1", "shard2", "shard3", "--out", "joined") == 3
    assert "left out: 1:" in capsys.readouterr().out
    assert hashes("joined") == hashes("run")


def test_what_does_not_fit_is_one_sentence_and_writes_nothing(shards, data, capsys):  # noqa: F811
    assert evaluate(*OPTIONS, "--alpha", "0.01", "--out", "other", "--shard", "1/3") == 0
    shutil.copytree("shard1", "twice")
    shutil.copytree("shard3", "torn")
    next((data / "torn/votes").iterdir()).unlink()
    capsys.readouterr()
    for runs, sentence in (
        (["shard1", "shard2"], "got 1 of 3 in none (first: '2')"),
        (["shard1", "shard2", "shard3", "twice"], "each image must be in one run, got '0' in shard1 and twice"),
        (["other", "shard2", "shard3"], "alpha: 0.01 other, 0.001 shard2"),
        (["shard1", "shard2", "nowhere"], "nowhere: must be a run folder"),
        (["shard1", "shard1", "shard3"], "different folders"),
        (["shard1", "shard2", "torn"], "torn/votes/2.sigma0.1.npz: must be there, but is missing"),
    ):
        assert merge(*runs, "--out", "joined") == 2
        error = capsys.readouterr().err.strip()
        assert sentence in error
        assert "\n" not in error
        assert not (data / "joined").exists()
