"""Runs with objects: values by draw are the same bytes however they were drawn, and every bound is bound to its run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.analysis.objects import recall_table
from certiseg.datasets.base import Sample
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.prepare import scan, with_keys
from certiseg.runs.sealed import read_sealed
from certiseg.runs.task import Task
from certiseg.runs.verify import verify_run
from certiseg.runs.worker import Worker
from tests.runs.small import Images, build, hashes, manifest_of, plain_run, sharded_run, spread_run

IMAGES = Images(2)
ASKED: dict[str, Any] = {
    "sigmas": (0.1,),
    "settings": ((60, 0.75), (40, 0.6)),
    "methods": ("segcertify",),
    "objects": ("construction", "vehicle", "ground"),
    "least_area": 20,
}


ALONG: dict[str, Any] = {
    **ASKED,
    "sigmas": (0.05,),
    "settings": ((60, 0.75),),
    "threat": threats.fog(0.5, airlight=0.7),
    "up_to": 0.6,
    "keep_maps": True,
}
"""The same with kept maps along a threat, at two anchors."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("measured") / "run")
    plain_run(folder.path, IMAGES, manifest_of(IMAGES, **ASKED))
    return folder


def test_rows_are_the_bounds_of_found_and_true_objects(run: RunFolder) -> None:
    name = IMAGES.names[0]
    setting = run.manifest.each_setting()[0]
    votes, rows = run.votes(name, setting), run.receipt(name).measures
    bounds = cs.bound(votes, tau=setting.tau, alpha=run.manifest.alpha_per_image)
    of_setting = [row for row in rows if row["setting"] == str(setting)]
    assert [row["bound"] for row in of_setting] == bounds.lower.tolist()
    label = run.label(name)
    true = [row for row in of_setting if row["name"].startswith("true ")]
    members = run.manifest.tree.members
    expected = 0
    from scipy.ndimage import label as connected

    for vertex in ASKED["objects"]:
        under = np.isin(label, np.flatnonzero(members[run.manifest.tree.id(vertex)])) & (label != 255)
        numbered, _ = connected(under, np.ones((3, 3)))
        expected += int((np.bincount(numbered.ravel())[1:] >= 20).sum())
    assert len(true) == expected > 0
    assert all(0 <= row["iou"] <= 1 for row in of_setting if "iou" in row)
    assert {row["kind"] for row in of_setting} >= {"kept", "accuracy", "dice", "free", "share", "overlap"}


def test_workers_shards_and_resumes_give_the_same_bytes(run: RunFolder, tmp_path: Path) -> None:
    manifest, expected = run.manifest, hashes(run.path)
    assert spread_run(tmp_path / "spread", IMAGES, manifest) == expected
    assert sharded_run(tmp_path / "shards", IMAGES, manifest) == expected


class Marked(Images):
    """The same images, two objects marked side by side in each, and nothing in the lowest rows."""

    def __getitem__(self, index: int) -> Sample:
        sample = super().__getitem__(index)
        assert sample.label is not None
        marked = np.zeros(sample.label.shape, np.uint16)
        height, width = marked.shape
        marked[: height - 6] = np.where(np.arange(width) < width // 2, 1, 300)
        return replace(sample, instances=marked)


@pytest.fixture(scope="module")
def marked_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    images, folder = Marked(2), RunFolder(tmp_path_factory.mktemp("marked") / "run")
    manifest = manifest_of(images, **ASKED, instances=True)
    plain_run(folder.path, images, with_keys(manifest, scan(images, instances=True)))
    return folder


def test_true_objects_are_the_marked_ones_and_parts_of_the_rest(marked_run: RunFolder) -> None:
    from scipy.ndimage import label as connected

    folder, name = marked_run, IMAGES.names[0]
    setting, tree = folder.manifest.each_setting()[0], folder.manifest.tree
    true = {
        (row["label"], row["pixels"])
        for row in folder.receipt(name).measures
        if row["setting"] == str(setting) and row["name"].startswith("true ")
    }
    label, marked = folder.label(name), folder.instances(name)
    assert marked is not None
    assert sorted(np.unique(marked)) == [0, 1, 300]
    expected = set()
    for vertex in ASKED["objects"]:
        under = np.isin(label, np.flatnonzero(tree.members[tree.id(vertex)])) & (label != 255)
        numbered, _ = connected(under & (marked == 0), np.ones((3, 3)))
        areas = [(under & (marked == number)).sum() for number in (1, 300)] + np.bincount(numbered.ravel())[1:].tolist()
        expected |= {(vertex, int(area)) for area in areas if area >= 20}
    assert true == expected
    assert verify_run(folder).passed
    assert "True objects are those that the data set marks" in recall_table(folder, setting).note


def test_a_worker_elsewhere_is_given_the_marks(marked_run: RunFolder) -> None:
    manifest, sample = marked_run.manifest, Marked(2)[0]
    assert sample.label is not None
    worker = Worker(build, manifest, number=0, place="there")
    try:
        ranges = tuple(worker.folder.missing_draws(sample.name, 0.1))
        answer = worker.work(Task(0, sample.name, sample.image, sample.label, ranges, 60.0, {}, sample.instances))
    finally:
        worker.close()
    written = {path: (marked_run.path / path).read_bytes() for path in answer.files}
    assert marked_run.relative(marked_run.instances_path(sample.name)) in written
    assert answer.files == written


def test_marks_are_bound_to_the_run(marked_run: RunFolder, tmp_path: Path) -> None:
    folder = RunFolder(shutil.copytree(marked_run.path, tmp_path / "forged"))
    name, marked = IMAGES.names[0], marked_run.instances(IMAGES.names[0])
    assert marked is not None
    folder.write_map(folder.instances_path(name), name, np.where(marked == 300, 1, marked))
    with pytest.raises(cs.InputError, match="its bytes are not those that were written"):
        folder.instances(name)
    receipt = folder.receipt(name)
    folder.write_receipt(name, receipt.rows, receipt.measures)
    problems = verify_run(folder).problems
    assert problems
    assert "must be the ground truth" in problems[0].what


def test_images_without_marks_are_left_out_or_refused(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="must come with a map of instances, got none; leave out --instances"):
        scan(IMAGES, instances=True)
    images, manifest = Marked(2), manifest_of(IMAGES, **ASKED, instances=True)

    class Half(Marked):
        def __getitem__(self, index: int) -> Sample:
            return super().__getitem__(index) if index else IMAGES[index]

    found = scan(Half(2), instances=True)
    assert found.label_keys == (None, scan(images, instances=True).label_keys[1])
    left_out = evaluate_dataset(RunFolder(tmp_path / "half"), with_keys(manifest, found), Half(2), build(0))
    assert list(left_out) == [IMAGES.names[0]]
    with pytest.raises(cs.InputError, match="instances must come with objects"):
        manifest_of(IMAGES, **{**ASKED, "objects": None}, instances=True)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.progress import Progress
from tests.runs import test_measured as t
class Killed(Progress):
    def drew(self, draws):
        super().drew(draws)
        if self.new_draws > {after}:
            os.kill(os.getpid(), signal.SIGKILL)
manifest = t.manifest_of(t.IMAGES, **t.{asked})
evaluate_dataset(RunFolder(Path({path!r})), manifest, t.IMAGES, t.build(0), progress=Killed())
"""


def test_a_run_killed_by_signal_9_goes_on_to_the_same_bytes(run: RunFolder, tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    codes = {
        asked: KILLED.format(root=root, path=str(tmp_path / asked), asked=asked, after=after)
        for asked, after in (("ASKED", 90), ("ALONG", 160))  # in the midst of the second image's draws
    }
    killed = [subprocess.Popen([sys.executable, "-c", code]) for code in codes.values()]
    assert [process.wait() for process in killed] == [-signal.SIGKILL] * 2
    for asked in codes:
        there = list((tmp_path / asked / "partial").rglob("*.npz")) + list((tmp_path / asked / "rows").iterdir())
        assert there, "what was drawn before the kill is kept"
        plain_run(tmp_path / asked, IMAGES, manifest_of(IMAGES, **globals()[asked]))
    assert hashes(tmp_path / "ASKED") == hashes(run.path)
    assert hashes(tmp_path / "ALONG") == plain_run(tmp_path / "whole", IMAGES, manifest_of(IMAGES, **ALONG))


def test_batches_workers_and_shards_along_a_threat_give_the_same_values(tmp_path: Path) -> None:
    manifest = manifest_of(IMAGES, **ALONG)
    expected = plain_run(tmp_path / "whole", IMAGES, manifest)
    assert spread_run(tmp_path / "spread", IMAGES, manifest) == expected
    assert sharded_run(tmp_path / "shards", IMAGES, manifest) == expected
    plain_run(tmp_path / "batched", IMAGES, manifest_of(IMAGES, **ALONG, batch_size=7))  # another manifest
    for name in IMAGES.names:
        one, seven = (RunFolder(tmp_path / each).all_votes(name, 0.05) for each in ("whole", "batched"))
        assert one.record is not None
        assert seven.record is not None
        assert one.record.digest() == seven.record.digest()
        assert one.record.maps == seven.record.maps
        rows = [RunFolder(tmp_path / each).receipt(name).measures for each in ("whole", "batched")]
        assert rows[0] == rows[1]


def test_a_whole_run_with_measures_is_verified(run: RunFolder) -> None:
    outcome = verify_run(run)
    assert outcome.passed, outcome.problems


@pytest.mark.parametrize("what", ["bound", "value", "measures", "explored"])
def test_forged_measures_are_found(run: RunFolder, tmp_path: Path, what: str) -> None:
    shutil.copytree(run.path, tmp_path / "forged")
    folder, name = RunFolder(tmp_path / "forged"), IMAGES.names[0]
    sigma = folder.manifest.sigmas[0]
    votes = folder.all_votes(name, sigma)
    assert votes.record is not None
    if what == "value":
        votes.record.numerators[3, 0] -= 1
    elif what == "measures":
        first, *others = votes.measures
        object.__setattr__(votes.record, "measures", (replace(first, label="another"), *others))
    elif what == "explored":
        object.__setattr__(votes.record, "explored", True)
    if what != "bound":
        votes.save(folder.votes_path(name, sigma))
        for setting in folder.manifest.each_setting():
            path = folder.certificate_path(name, setting, "segcertify")
            made = folder.certify(votes.first(setting.n), setting, "segcertify")
            made.save(path, votes_path=f"../votes/{folder.votes_path(name, sigma).name}")
    receipt = read_sealed(folder.rows_path(name), "rows of an image")
    rows = receipt["measures"]
    rows[0]["bound"] += 0.01 if what == "bound" else 0
    folder.write_receipt(name, receipt["rows"], rows)
    problems = verify_run(folder).problems
    assert problems
    assert name.replace("/", "__") in problems[0].what


def test_votes_of_a_run_without_objects_are_refused(run: RunFolder, tmp_path: Path) -> None:
    plain = RunFolder(tmp_path / "plain")
    plain_run(plain.path, IMAGES, manifest_of(IMAGES, **{**ASKED, "objects": None}))
    assert plain.receipt(IMAGES.names[0]).measures == []
    shutil.copytree(run.path, tmp_path / "mixed")
    mixed, name = RunFolder(tmp_path / "mixed"), IMAGES.names[0]
    shutil.copy(plain.votes_path(name, 0.1), mixed.votes_path(name, 0.1))
    mixed.rows_path(name).unlink()
    with pytest.raises(cs.InputError, match="its measures is False, not True"):
        mixed.all_votes(name, 0.1)


def test_bad_objects_are_one_sentence() -> None:
    with pytest.raises(cs.InputError, match="nobody"):
        manifest_of(IMAGES, **{**ASKED, "objects": ("nobody",)})
    with pytest.raises(cs.InputError, match="objects must be different labels"):
        manifest_of(IMAGES, **{**ASKED, "objects": ()})
    with pytest.raises(cs.InputError, match="least_area must be at least 1"):
        manifest_of(IMAGES, **{**ASKED, "least_area": 0})


def test_a_run_along_a_threat_bounds_the_worst_anchor(tmp_path: Path) -> None:
    images, folder = Images(1), RunFolder(tmp_path / "run")
    along: dict[str, Any] = {"sigmas": (0.0,), "settings": ((60, 0.75),), "threat": threats.fog(0.5), "up_to": 0.6}
    plain_run(folder.path, images, manifest_of(images, **{**ASKED, **along}))
    votes = folder.all_votes(images.names[0], 0.0)
    assert len(votes.anchors) == 2
    found = cs.bound(votes, tau=0.75, alpha=folder.manifest.alpha_per_image)
    assert [row["bound"] for row in folder.receipt(images.names[0]).measures] == found.lower.tolist()
    assert verify_run(folder).passed


def test_kept_maps_are_those_of_the_draws_however_they_were_drawn(tmp_path: Path) -> None:
    images = Images(1)
    manifest = manifest_of(images, **{**ASKED, "objects": None, "keep_maps": True})
    folder = RunFolder(tmp_path / "run")
    plain_run(folder.path, images, manifest)
    votes = folder.all_votes(images.names[0], 0.1)
    assert votes.record is not None
    maps = np.stack([votes.record.label_map(draw) for draw in range(votes.n)])
    counted = (maps[..., None] == np.arange(votes.num_classes)).sum(axis=0)
    np.testing.assert_array_equal(counted, votes.counts)
    assert spread_run(tmp_path / "spread", images, manifest) == hashes(folder.path)
    assert verify_run(folder).passed


def test_votes_without_maps_do_not_belong_to_a_run_that_keeps_them(run: RunFolder, tmp_path: Path) -> None:
    keeping = RunFolder(tmp_path / "keeping", replace(run.manifest, keep_maps=True))
    keeping.create()
    name = IMAGES.names[0]
    shutil.copy(run.votes_path(name, 0.1), keeping.votes_path(name, 0.1))
    with pytest.raises(cs.InputError, match="its maps is False, not True"):
        keeping.all_votes(name, 0.1)
