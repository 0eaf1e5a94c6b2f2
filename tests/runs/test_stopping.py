"""Runs that stop early: the same bytes whoever draws and whoever is killed, and no way around the anytime test."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.analysis.tables import gain_table, score_table
from certiseg.analysis.thresholds import search_thresholds
from certiseg.report.run_report import run_report
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes
from certiseg.runs.looks import looks_of, rule_of
from certiseg.runs.manifest import KIND, load_manifest
from certiseg.runs.merge import merge_runs
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.progress import Progress
from certiseg.runs.run import Run
from certiseg.runs.sealed import write_sealed
from certiseg.runs.settings import EngineSettings, RunSettings, Shard
from certiseg.runs.task import Answer, Engine, Task
from certiseg.runs.verify import verify_run
from certiseg.runs.worker import Worker
from certiseg.settings import stored
from certiseg.stopping import MeasureRule, UndecidedRule
from certiseg.viewer.choice import command, role
from certiseg.viewer.run_reader import RunReader
from tests.runs.small import Images, build, hashes, manifest_of, plain_run

IMAGES = Images(4)
STOPS: dict[str, Any] = {
    "sigmas": (0.1, 0.3),
    "settings": ((200, 0.75), (200, 0.6)),
    "methods": ("segcertify", "level:1", "nested", "sets:3"),
    "test": "anytime",
    "stop_undecided": 0.06,
}
OTHERS: dict[str, dict[str, Any]] = {
    "one sigma": {"sigmas": (0.1,), "settings": ((160, 0.75),), "stop_undecided": 0.1},
    "along fog": {
        **{"threat": threats.fog(0.5, airlight=0.7), "up_to": 0.9, "radius": 0.02, "sigmas": (0.1,)},
        **{"settings": ((160, 0.75),), "stop_undecided": 0.1, "methods": ("nested",), "batch_size": 3},
    },
    "objects": {
        **{"objects": ("construction", "vehicle"), "least_area": 20, "keep_maps": True, "sigmas": (0.1,)},
        **{"methods": ("nested",), "settings": ((160, 0.75),), "stop_undecided": 0.1},
    },
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("stopped") / "run")
    plain_run(folder.path, IMAGES, manifest_of(IMAGES, **STOPS))
    return folder


@pytest.fixture(scope="module", params=list(OTHERS))
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run of three images, of one kind or another."""
    folder = RunFolder(tmp_path_factory.mktemp("stopped") / "run")
    plain_run(folder.path, Images(3), manifest_of(Images(3), **STOPS | OTHERS[request.param]))
    return folder


class Shuffled(Engine):
    """Several workers of this process that answer in a random order; killed after so many answers, if asked."""

    def __init__(self, manifest: Any, *, seed: int, workers: int, kill_after: int | None = None) -> None:
        super().__init__()
        self.workers, self.ahead, self.random = workers, workers, random.Random(seed)
        self.draws_per_task = self.random.choice([None, 7, 20, 90])
        self.worker, self.tasks, self.answers = Worker(build, manifest, number=0, place="here"), list[Task](), 0
        self.kill_after = kill_after

    @property
    def seconds(self) -> float:
        return self.random.choice([0.0, 0.02, 60.0])

    @property
    def free(self) -> int:
        return self.workers - len(self.tasks)

    def submit(self, task: Task) -> None:
        self.tasks.append(task)

    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        if self.answers == self.kill_after:
            raise KeyboardInterrupt
        self.answers += 1
        task = self.tasks.pop(self.random.randrange(len(self.tasks)))
        answer = self.worker.work(task)
        self.places["here"] += answer.draws
        each(answer.draws)
        return task, answer

    def close(self) -> None:
        self.worker.close()


def shuffled_run(path: Path, like: RunFolder, seed: int) -> Progress:
    """The run by engines in a random order, most of them killed, until one comes to the end."""
    images, manifest = Images(len(like.manifest.images)), like.manifest
    for attempt in range(100):
        kill_after = None if attempt > 5 else seed + 3 * attempt
        engine, progress = Shuffled(manifest, seed=seed + attempt, workers=3, kill_after=kill_after), Progress()
        try:
            evaluate_dataset(RunFolder(path), manifest, images, engine=engine, progress=progress)
            return progress
        except KeyboardInterrupt:
            continue
        finally:
            engine.close()
    raise AssertionError("it never came to its end")


def test_images_end_where_little_is_undecided_and_not_before(finished: RunFolder) -> None:
    manifest, ends = finished.manifest, set()
    for name in finished.finished():
        for sigma, n in finished.draws(name).items():
            votes, looks = finished.all_votes(name, sigma), looks_of(manifest)
            rule = rule_of(manifest, sigma)
            assert rule is not None
            assert votes.n == n
            assert votes.stopped
            assert n == 200 or rule(votes)
            before = looks[looks.index(n) - 1]
            whole = cs.sample(build(0), read(name), sigma=sigma, n0=5, n=n, snapshots=(before,))
            assert not rule(replace(whole.first(before), stopped=True)), "it would have ended earlier"
            ends.add(n)
    assert len(ends) > 1, "images of different n, or this shows little"


def test_a_run_asks_for_every_method_and_tau_and_for_its_measures() -> None:
    manifest = manifest_of(IMAGES, **STOPS | {"objects": ("vehicle",), "family": "dataset"})
    rule = rule_of(manifest, 0.3)
    assert rule is not None
    pixels = [each for each in rule.rules if isinstance(each, UndecidedRule)]
    asked = {(each.settings["method"], each.settings["tau"], each.settings["alpha"]) for each in pixels}
    methods = ("segcertify", "level", "nested", "sets")
    assert asked == {(method, tau, manifest.alpha / 4) for method in methods for tau in (0.75, 0.6)}
    measures = [each for each in rule.rules if isinstance(each, MeasureRule)]
    assert [(each.tau, each.alpha) for each in measures] == [(0.75, manifest.alpha / 4), (0.6, manifest.alpha / 4)]
    assert {each.share for each in rule.rules} == {0.06}
    assert {each.n_max for each in rule.rules} == {200}
    assert rule_of(manifest_of(IMAGES), 0.1) is None


def read(name: str) -> Any:
    return IMAGES[IMAGES.names.index(name)].image


def test_the_draws_are_a_prefix_of_those_of_a_fixed_n(finished: RunFolder) -> None:
    name = IMAGES.names[2]
    stopped = finished.all_votes(name, 0.3)
    fixed = cs.sample(build(0), read(name), sigma=0.3, n0=5, n=200, snapshots=(stopped.n,))
    prefix = fixed.first(stopped.n)
    assert stopped.n < 200
    for array in ("counts", "candidate", "gap", "ranking"):
        assert np.array_equal(getattr(stopped, array), getattr(prefix, array)), array


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_any_kill_give_the_same_bytes(other: RunFolder, seed: int, tmp_path: Path) -> None:
    progress = shuffled_run(tmp_path / "run", other, seed)
    assert hashes(tmp_path / "run") == hashes(other.path)
    assert progress.draws == progress.found_draws + progress.new_draws
    assert progress.seconds_left in (0, None)


def test_two_processes_and_shards_give_the_same_bytes(finished: RunFolder, tmp_path: Path) -> None:
    manifest = finished.manifest
    engine = Processes(build, manifest, EngineSettings(workers=2))
    try:
        evaluate_dataset(RunFolder(tmp_path / "two"), manifest, IMAGES, engine=engine)
    finally:
        engine.close()
    assert hashes(tmp_path / "two") == hashes(finished.path)
    shards = [RunFolder(tmp_path / f"shard{i}") for i in (1, 2)]
    for i, shard in enumerate(shards, 1):
        evaluate_dataset(shard, manifest_of(IMAGES, **STOPS), IMAGES, build(0), shard=Shard(i, 2))
    merge_runs(shards, RunFolder(tmp_path / "merged"))
    assert hashes(tmp_path / "merged") == hashes(finished.path)


def test_a_stopped_run_verifies_and_is_redrawn_to_its_own_number(finished: RunFolder) -> None:
    assert verify_run(finished).passed
    name = next(name for name in finished.finished() if finished.draws(name)[0.1] < 200)
    path = finished.certificate_path(name, finished.manifest.each_setting()[0], "nested")
    model = build(0)
    outcome = cs.verify(path, model=model, image=read(name))
    assert outcome.passed
    assert outcome.redrawn
    assert model.model.calls < 5 + 200
    assert model.model.calls >= 5 + finished.draws(name)[0.1]


def test_scores_say_how_many_draws_the_images_had(finished: RunFolder) -> None:
    scores = Run(finished).scores()
    made = [finished.draws(name)[0.1] for name in finished.finished()]
    row = next(row for row in scores if row.get("sigma") == 0.1)
    assert (row["draws"], row["draws_least"], row["draws_most"]) == (sum(made) / 4, min(made), max(made))
    assert row["n"] == 200
    assert f"({min(made)} to {max(made)})" in str(scores)
    assert "n up to 200" in scores.title


def test_progress_counts_what_is_spared_and_expects_as_much_of_the_rest(tmp_path: Path) -> None:
    manifest, expected = manifest_of(IMAGES, **STOPS), list[int]()

    class Watched(Progress):
        def finished(self, sums: Any, *, unmade: int = 0) -> None:
            super().finished(sums, unmade=unmade)
            expected.append(self.new_draws + self.draws_left)

    progress = Watched()
    evaluate_dataset(RunFolder(tmp_path), manifest, IMAGES, build(0), progress=progress)
    assert progress.new_draws == progress.draws == sum(RunFolder(tmp_path).drawn(name) for name in IMAGES.names)
    assert progress.spared == 4 * manifest.draws_per_image - progress.new_draws > 0
    assert abs(expected[0] - progress.new_draws) < abs(4 * manifest.draws_per_image - progress.new_draws)
    again = Progress()
    evaluate_dataset(RunFolder(tmp_path), manifest, IMAGES, build(0), progress=again)
    assert (again.found_draws, again.draws, again.draws_left) == (progress.new_draws, progress.new_draws, 0)


def test_tables_report_viewer_and_tune_know_that_images_have_different_n(finished: RunFolder) -> None:
    manifest, run = finished.manifest, ScoredRun(finished)
    setting = manifest.each_setting()[0]
    made = [finished.draws(name)[0.1] for name in finished.finished()]
    shown = f"{sum(made) / 4:.0f} ({min(made)} to {max(made)})"
    for table in (score_table(run), gain_table(run)):
        assert next(row for row in table.rows if row.get("sigma") == 0.1)["stopped"] == shown
        assert "draws" in [column.head for column in table.columns]
    page = run_report(finished, images=2)
    assert f"{min(made)} to {max(made)}" in page
    assert "n up to 200" in page
    assert "n = 200" not in page.replace("sigma = 0.1, n up to 200", "")
    search = search_thresholds(finished, setting, functions=[(0.0, 0.1, 0.2)])
    flat = search.sums(0, slice(None)).scores()
    assert flat.abstain == run.sums("segcertify", setting).scores().abstain, "each image against its own n"
    reader = RunReader(finished)
    for name in finished.finished():
        votes = reader.votes(name, 0.1, 200)
        certificate = finished.certificate(name, setting, "segcertify")
        assert votes.n == finished.draws(name)[0.1]
        assert role(certificate, reader.fixed(name, votes)) == {"role": "promise", "differs": []}
    assert "--setting 200:0.75 --stop-undecided 0.06" in command(reader, name, certificate, selection=[], model=[])


# -- no way around the anytime test ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"test": "fixed"}, "test must be anytime with stop_undecided, got 'fixed'"),
        ({"settings": ((100, 0.75), (200, 0.75))}, "settings must have one n with stop_undecided"),
        ({"stop_undecided": 1.0}, r"stop_undecided must lie in \[0, 1\), got 1.0"),
        ({"stop_undecided": "0.1"}, r"stop_undecided must lie in \[0, 1\), got '0.1'"),
    ],
)
def test_what_does_not_go_with_stopping_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cs.InputError, match=sentence):
        RunSettings(**{"settings": ((200, 0.75),), "test": "anytime", "stop_undecided": 0.1} | changes)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_max": 300}, "n_max must come with stop_undecided, got 300 alone"),
        (
            {"n_max": 300, "stop_undecided": 0.1, "setting": "100:0.75"},
            "setting must have n = n_max = 300, got 100:0.75",
        ),
        ({"stop_undecided": 0.1, "test": "fixed"}, "test must be anytime"),
    ],
)
def test_evaluate_refuses_before_it_reads_anything(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match=sentence):
        cs.evaluate("camvid", root=tmp_path, out=tmp_path / "run", **options)


@pytest.mark.parametrize("changes", [{"test": "fixed"}, {"test": "fixed", "stop_undecided": None}])
def test_a_manifest_made_to_say_fixed_is_noticed(changes: dict[str, Any], finished: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(finished.path, tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    write_sealed(path, KIND, stored(finished.manifest) | changes)
    if "stop_undecided" not in changes:
        with pytest.raises(cs.InputError, match="test must be anytime"):
            load_manifest(path)
        return
    manifest = load_manifest(path)
    assert not verify_run(RunFolder(tmp_path / "run")).passed
    with pytest.raises(cs.InputError, match="must belong to this run"):
        evaluate_dataset(RunFolder(tmp_path / "run"), manifest, IMAGES, build(0))


def test_stopped_votes_are_refused_by_a_fixed_run_and_by_the_fixed_test(finished: RunFolder, tmp_path: Path) -> None:
    name = IMAGES.names[0]
    votes = finished.all_votes(name, 0.1)
    with pytest.raises(cs.InputError, match="test must be 'anytime'"):
        cs.certify(votes, finished.manifest.tree, test="fixed")
    # Votes of the stopped run, the rows removed, under a manifest of a fixed n that is what was drawn.
    fixed = manifest_of(IMAGES, **STOPS | {"test": "fixed", "stop_undecided": None, "settings": ((votes.n, 0.75),)})
    folder = RunFolder(tmp_path / "run", fixed)
    folder.create()
    for marked in (votes, replace(votes, stopped=False)):
        marked.save(folder.votes_path(name, 0.1))
        with pytest.raises(cs.InputError, match="its stop"):
            folder.all_votes(name, 0.1)
    replace(votes, stopped=False).save(folder.votes_path(name, 0.1))
    with pytest.raises(cs.InputError, match="its stop"):
        evaluate_dataset(folder, fixed, IMAGES, build(0))


def test_votes_that_end_elsewhere_are_noticed(finished: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(finished.path, tmp_path / "run")
    folder, name = RunFolder(tmp_path / "run"), IMAGES.names[1]
    votes = folder.all_votes(name, 0.1)
    looks = looks_of(folder.manifest)
    early = cs.sample(build(0), read(name), sigma=0.1, n0=5, n=looks[0])
    early = replace(early, stopped=True, provenance=votes.provenance)
    for path in [folder.rows_path(name), *folder.files_of(name)]:
        path.unlink(missing_ok=True)
    early.save(folder.votes_path(name, 0.1))
    folder.table_path.unlink()
    evaluate_dataset(folder, folder.manifest, IMAGES, build(0))
    outcome = verify_run(RunFolder(tmp_path / "run"))
    assert "rule of stopping" in " ".join(problem.what for problem in outcome.problems)
