"""make results: the commands, the votes that one run lends another, and a document that follows from the runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import certiseg as cs
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting
from experiments import results, results_document
from experiments.results_plan import ResultsPlan
from tests.analysis.conftest import Images, make_run

SETTINGS = ((60, 0.6), (80, 0.6), (100, 0.6), (100, 0.75))
METHODS = ("segcertify", "level:1", "level:2", "level:3", "adaptive:0,0.1,0.4", "nested", "sets")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """The three runs of a small plan, on the same four images."""
    runs = tmp_path_factory.mktemp("results") / "torch"
    plan = ResultsPlan(Path("data"), runs, "torch", sigmas=(0.03, 0.05), few=(60, 0.6), many=(100, 0.75), between=(80,))
    make_run(runs / "some-4", settings=SETTINGS, methods=METHODS)
    make_run(runs / "more-noise-4", settings=(plan.few, plan.many), sigmas=(0.05,), methods=METHODS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "image_names", lambda _: Images.names)
        assert results.lend_votes(replace(plan, every=1), plan.all_images) == 4
    make_run(runs / "all", settings=(plan.few,), methods=METHODS)
    return plan


def test_the_plan_is_that_of_the_document():
    plan = ResultsPlan(Path("camvid"), Path("runs"), "torch")
    assert plan.main == Setting(0.25, 100, 0.75)
    commands = {name: " ".join(command) for name, command in plan.commands().items()}
    assert list(commands) == ["some-4", "all", "more-noise-4"]
    assert "--every" not in commands["all"]
    assert "--setting 100:0.75 --model" in commands["all"]
    assert "--every 4 --sigma 0.33 0.5 --setting 100:0.75 500:0.95 --model" in commands["more-noise-4"]
    assert "--sigma 0.25 --setting 100:0.75 200:0.75 300:0.75 500:0.75 500:0.95 --model" in commands["some-4"]
    assert len(plan.paper_settings) == 6
    assert plan.folder_of(plan.main).path.name == "all"
    assert plan.folder_of(Setting(0.25, 500, 0.95)).path.name == "some-4"
    assert plan.folder_of(Setting(0.5, 100, 0.75)).path.name == "more-noise-4"


def test_commands_are_understood_by_the_command_line():
    from certiseg.cli import build_parser

    for command in ResultsPlan(Path("camvid"), Path("runs"), "torch", first=8).commands().values():
        assert build_parser().parse_args(command).model == "compact"


def test_lent_votes_are_the_very_bytes_that_would_have_been_drawn(plan, tmp_path):
    alone = make_run(tmp_path / "alone", settings=(plan.few,), methods=METHODS)
    for name in alone.finished():
        lent = plan.all_images.votes_path(name, 0.03).read_bytes()
        assert lent == alone.votes_path(name, 0.03).read_bytes()
        assert lent != plan.some_images.votes_path(name, 0.03).read_bytes()


def test_fewer_images_lend_to_more_and_nobody_to_himself(plan, monkeypatch):
    monkeypatch.setattr(results, "image_names", lambda _: Images.names)
    more = replace(plan, every=2)
    assert results.lend_votes(more, more.some_images) == 2
    assert results.lend_votes(more, more.some_images) == 0
    assert results.lend_votes(more, more.more_noise) == 2
    for name in Images.names[::2]:
        lent, drawn = (folder.votes_path(name, 0.05).read_bytes() for folder in (more.more_noise, plan.more_noise))
        assert lent == drawn


def test_steps_are_run_once_and_their_times_kept(plan, tmp_path, monkeypatch):
    calls = []

    def run(command, **_):
        calls.append(command)
        return type("Done", (), {"returncode": 0 if "good" in command else 2})

    monkeypatch.setattr(results.subprocess, "run", run)
    results.run_step(plan, "all", ["good"])
    assert calls == []  # its table is there
    fresh = replace(plan, runs=tmp_path)
    results.run_step(fresh, "all", ["good"])
    with pytest.raises(cs.InputError, match="exit code 2"):
        results.run_step(fresh, "some", ["bad"])
    assert len(calls) == 2
    times = fresh.times()
    assert [end is None for end in times["all"].values()] == [False]
    assert [end is None for end in times["some"].values()] == [True]


def test_the_document_holds_every_table_and_figure_and_no_photograph(plan, tmp_path):
    (plan.runs / "times.json").write_text(json.dumps({"all": {"1.0": 61.0, "0.5": None}}))
    path = results_document.write_document(plan, tmp_path)
    text = path.read_text("utf-8")
    for heading in (
        "What they show",
        "Scores on all images",
        "Scores on every fourth image",
        "Against tuned thresholds",
    ):
        assert f"## {heading}\n" in text
    for heading in ("By class", "By level and set size", "Boundaries", "Threshold functions", "Hierarchy"):
        assert f"## {heading}\n" in text
    linked = {part.split(")")[0] for part in text.split("](results/")[1:]}
    assert {p.name for p in (tmp_path / "results").iterdir()} == linked
    assert len([name for name in linked if name.endswith(".png")]) == 13
    assert "hierarchy.svg" in linked
    assert "CamVid is not among the paper's data sets" in text
    assert "1 minutes; 1 interrupted start not counted" in text
    assert "nan" not in text.lower().split()
    model = cs.load_certificate(plan.all_images.certificate_path("drive/0", plan.main, "nested"))
    assert model.votes.n == 60
    scores = ScoredRun(plan.all_images).sums("segcertify", plan.main).scores()
    assert f"SegCertify certifies {1 - scores.abstain:.1%}" in text
    assert "seeds: 0" in text.lower()
