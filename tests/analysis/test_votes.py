"""What is read from stored votes: fluctuation sets, the trade-off over n, thresholds, and `certiseg tune`."""

import argparse
import json
from collections import Counter

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis import fluctuations, thresholds, tradeoff
from certiseg.cli import tune
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting

from .conftest import HIERARCHY, METHODS, SETTING, make_run

SCORES = ("cig", "ccig", "abstain", "class_abstain", "accuracy")


def test_fluctuation_sets_equal_brute_force(run):
    table = fluctuations.fluctuation_table(run, SETTING, most=1000)
    expected = Counter()
    for name in run.finished():
        votes, label = run.votes(name, SETTING), run.label(name)
        abstained = run.certificate(name, SETTING, "segcertify").abstained
        for row, column in np.argwhere(abstained & (label != 255)):
            expected[tuple(np.flatnonzero(votes.counts[row, column]).tolist())] += 1
    named = {", ".join(HIERARCHY.classes[c] for c in classes): classes for classes in expected}
    assert {named[row["classes"]]: row["pixels"] for row in table.rows} == expected
    assert [row["pixels"] for row in table.rows] == sorted(expected.values(), reverse=True)
    covered = 0
    for row in table.rows:
        holders = [
            v for v in HIERARCHY.vertices if set(named[row["classes"]]) <= set(HIERARCHY.leaves(HIERARCHY.id(v)))
        ]
        assert row["cover"] == (min(holders, key=HIERARCHY.generality) if holders else fluctuations.UNCOVERED)
        covered += row["pixels"] if holders else 0
    assert f"{covered / expected.total():.1%} of these pixels fall under one vertex" in table.note
    assert len(fluctuations.fluctuation_table(run, SETTING).rows) == min(20, len(expected))


def test_fluctuations_of_nothing_are_nothing(run, monkeypatch):
    monkeypatch.setattr(fluctuations, "count_abstained_sets", lambda *_: Counter())
    table = fluctuations.fluctuation_table(run, SETTING)
    assert "nowhere" in table.note
    assert fluctuations.draw(table).get_suptitle() == table.title
    assert fluctuations.count_sets(np.zeros((0, 31), bool)) == Counter()


@pytest.mark.parametrize("tau", [0.75, 0.6])
def test_tradeoff_covers_every_level_from_the_table_or_from_votes(run, tau):
    table = tradeoff.tradeoff_table(run, sigma=0.03, tau=tau)
    assert {row["method"] for row in table.rows} == {*METHODS, "level:3"}
    assert [row["n"] for row in table.rows if row["method"] == "level:3"] == [60, 100]
    labels = [run.label(name) for name in run.finished()]
    for row in table.rows:
        setting = Setting(0.03, row["n"], tau)
        certificates = [run.certify(run.votes(name, setting), setting, row["method"]) for name in run.finished()]
        expected = cs.score(certificates, labels)
        assert row["cig"] == pytest.approx(expected.cig)
        assert row["certified"] == pytest.approx(1 - expected.abstain)


def test_draws_that_can_certify_nothing_are_left_out(run):
    assert tradeoff.certifiable_draws(run, 0.75) == [60, 100]
    assert tradeoff.certifiable_draws(run, 0.88) == [100]
    assert tradeoff.certifiable_draws(run, 0.99) == []


@pytest.mark.parametrize("changes", [{}, {"correction": "holm", "family": "dataset"}, {"test": "anytime"}])
def test_tuned_scores_are_those_of_the_runs_own_certificates(tmp_path, changes):
    methods = ("segcertify", "adaptive:0,0.1,0.4", "adaptive:0,0,0.25")
    folder = make_run(tmp_path, methods=methods, **changes)
    search = thresholds.search_thresholds(folder, SETTING, choose_on=1)
    assert len(search.functions) == 121
    for method, function in zip(methods, [(), (0, 0.1, 0.4), (0, 0, 0.25)], strict=True):
        sums = ScoredRun(folder).sums(method, SETTING)
        for part in (search.chosen, search.reported):
            ours = search.scores(part)[search.functions.index(function)]
            expected = sums.only(search.images[part]).scores()
            for name in SCORES:
                assert getattr(ours, name) == pytest.approx(getattr(expected, name), rel=1e-12)


def test_the_choice_is_made_on_one_part_and_reported_on_the_other(run):
    search = thresholds.search_thresholds(run, SETTING)
    chosen, reported = search.scores(search.chosen), search.scores(search.reported)
    best = search.ranked()[0]
    candidates = [i for i, f in enumerate(search.functions) if f != ()]
    assert chosen[best].cig == max(chosen[i].cig for i in candidates)
    assert search.choose_on == 2
    assert search.sums(best, search.reported).images == ("drive/2", "drive/3")
    assert search.sums(best, search.reported).scores().cig == pytest.approx(reported[best].cig)
    table = thresholds.to_table(search, promise=run.manifest.guarantee(), draws=20)
    assert len(table.rows) == 121
    assert table.rows[0]["thresholds"] == "SegCertify"
    assert run.manifest.guarantee() in table.note


@pytest.mark.parametrize("choose_on", [0, 4, -1])
def test_a_part_without_images_is_refused(run, choose_on):
    with pytest.raises(cs.InputError, match="leave one of 4"):
        thresholds.search_thresholds(run, SETTING, choose_on=choose_on)


def test_ties_go_to_fewer_abstentions_then_to_the_first(run):
    search = thresholds.search_thresholds(run, SETTING, functions=[(0.5, 0.5, 0.5), (0, 0, 0)])
    scores = search.scores(search.chosen)
    assert thresholds.rank_functions([(), (1,), (2,)], [[scores[0]] * 3], "cig") == [1, 2]


def ask(run, *arguments):
    parser = argparse.ArgumentParser()
    tune.add_parser(parser.add_subparsers())
    args = parser.parse_args(["tune", str(run.path), *arguments])
    return args.run(args)


def test_tune_writes_tables_and_plots_and_names_its_choice(run, tmp_path, capsys):
    assert ask(run, "--out", str(tmp_path), "--json") == 0
    answers = json.loads(capsys.readouterr().out)
    assert [a["n"] for a in answers] == [60, 100]
    assert all(a["functions"] == 120 and len(a["thresholds"]) == 3 for a in answers)
    assert answers[0]["chosen_on"]["images"] + answers[0]["reported_on"]["images"] == 4
    written = {path.name for path in tmp_path.iterdir()}
    assert {"thresholds-sigma0.03-tau0.75.png", "thresholds-sigma0.03-tau0.75.svg"} <= written
    assert {f"thresholds-sigma0.03-n60-tau0.75.{ending}" for ending in ("csv", "md", "tex")} <= written


def test_tune_takes_any_grid(run, tmp_path, capsys):
    assert ask(run, "--grid", "0,0,0.25", "0.1,0.2", "--choose-on", "3", "--out", str(tmp_path)) == 0
    text = capsys.readouterr().out
    assert "2 threshold functions" in text
    assert "first 3 images" in text
    assert run.manifest.guarantee() in text
    assert ask(run, "--values", "0", "0.5", "--by", "ccig", "--out", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["functions"] == 4


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--grid", "0,a"), "--grid must be like"),
        (("--grid", "0.5,0.1"), "must not decrease"),
        (("--values", "2"), r"must lie in \[0, 1\]"),
        (("--values", "0", "--grid", "0"), "must not be given together"),
        (("--sigma", "0.4"), "--sigma must be one of"),
        (("--tau", "0.8"), "--tau must be one of"),
        (("--choose-on", "4"), "leave one of 4"),
    ],
)
def test_tune_refuses_what_makes_no_sense(run, tmp_path, arguments, message):
    with pytest.raises(cs.InputError, match=message):
        ask(run, *arguments, "--out", str(tmp_path))


def test_tune_wants_a_run_folder(tmp_path):
    with pytest.raises(cs.InputError, match="run folder"):
        ask(RunFolder(tmp_path))
