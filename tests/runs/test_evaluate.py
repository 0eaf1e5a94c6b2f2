"""Runs: one pass for everything, the same bytes however often they are killed, and scores that pool."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.datasets.base import Sample
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, load_manifest
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.progress import Progress
from certiseg.runs.run import Run
from certiseg.runs.settings import MethodChoice, Setting, parse_settings
from certiseg.runs.table import UNCERTIFIED

METHODS = ("segcertify", "level:1", "adaptive:0,0,0.25", "nested", "sets:3")
HIERARCHY = cs.load_hierarchy("camvid")


class Images:
    """Random images with blocky labels; some of them with void, one of them broken if asked."""

    def __init__(self, count, *, broken=None):
        self.count, self.broken = count, broken
        self.names = tuple(f"drive/{index:03d}" for index in range(count))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.broken:
            raise cs.InputError(f"{self.names[index]}.png: label must have the size of its image")
        rng = np.random.default_rng(index)
        label = np.kron(rng.integers(0, 31, (3, 4)), np.ones((8, 8), int)).astype(np.uint8)
        label[:2, :3] = 255
        return Sample(self.names[index], rng.integers(0, 256, (24, 32, 3), dtype=np.uint8), label)


class CountingModel(torch.nn.Module):
    """A small network that counts how often it is called."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Conv2d(8, 31, 1))
        self.calls = 0

    def forward(self, images):
        self.calls += 1
        return self.layers(images) * 8


def make_manifest(images, **changes):
    model = cs.Segmenter(CountingModel(), class_names=HIERARCHY.classes)
    manifest = Manifest(
        dataset="blocks",
        split=None,
        images=images.names,
        model=model.name,
        model_sha256=model.fingerprint(),
        classes=HIERARCHY.classes,
        hierarchy=json.loads(json.dumps(HIERARCHY.as_dict())),
        sigmas=(0.1, 0.3),
        settings=((60, 0.75), (100, 0.8)),
        methods=METHODS,
        alpha=0.01,
        correction="bonferroni",
        k=1,
        test="fixed",
        family="image",
        n0=5,
        seed=0,
        temperature=1.0,
        batch_size=1,
        threads=1,
        backend="torch",
        device="cpu",
        versions={},
    )
    return replace(manifest, **changes), model


def hashes(folder):
    """Every file of a run with its hash, except the lock."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run over four images."""
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    images = Images(4)
    manifest, model = make_manifest(images)
    assert evaluate_dataset(folder, manifest, images, model) == {}
    return folder


def test_one_pass_per_sigma_serves_every_setting_and_method(tmp_path, monkeypatch):
    monkeypatch.setattr("certiseg.runs.local.CHECKPOINT_SECONDS", 1e9)  # a task that goes on looks at the model anew
    images = Images(2)
    manifest, model = make_manifest(images)
    progress = Progress()
    evaluate_dataset(RunFolder(tmp_path), manifest, images, model, progress=progress)
    draws = len(images) * len(manifest.sigmas) * (manifest.n0 + 100)
    looks = len(images) * len(manifest.sigmas) + 1  # without noise; two for the first image
    assert model.model.calls == draws + looks
    assert (progress.new_draws, progress.found_draws, progress.new_images) == (draws, 0, len(images))


def test_a_second_start_calls_no_model_and_changes_no_byte(finished):
    before = hashes(finished.path)
    images = Images(4)
    manifest, model = make_manifest(images)
    evaluate_dataset(RunFolder(finished.path), manifest, images, model)
    assert model.model.calls == 0
    assert hashes(finished.path) == before


def test_every_certificate_verifies_and_equals_certify(finished):
    images = Images(4)
    name, setting = images.names[1], Setting(0.3, 60, 0.75)
    for method in METHODS:
        path = finished.certificate_path(name, setting, method)
        assert cs.verify(path).passed
        votes = cs.sample(make_manifest(images)[1], images[1].image, sigma=0.3, n0=5, n=60)
        again = cs.certify(votes, HIERARCHY, tau=0.75, alpha=0.01, **MethodChoice(method).options)
        stored = finished.certificate(name, setting, method)
        assert np.array_equal(stored.vertex, again.vertex)
        assert np.array_equal(stored.set_size, again.set_size)


def test_pooled_scores_equal_evaluate_over_all_images(finished):
    images = Images(4)
    labels = [images[index].label for index in range(4)]
    scored = ScoredRun(finished)
    for setting in finished.manifest.each_setting():
        for method in METHODS:
            certificates = [finished.certificate(name, setting, method) for name in images.names]
            expected = cs.score(certificates, labels)
            found = scored.sums(method, setting).scores()
            for field in ("cig", "ccig", "abstain", "class_abstain", "accuracy"):
                assert getattr(found, field) == pytest.approx(getattr(expected, field), abs=1e-12)
            assert found.miou == pytest.approx(expected.miou) if expected.miou is not None else found.miou is None
            assert np.allclose(found.per_level, expected.per_level)


def test_boundary_and_the_rest_add_up(finished):
    scored, setting = ScoredRun(finished), Setting(0.1, 100, 0.8)
    parts = [scored.sums("nested", setting, boundary=flag).total() for flag in (True, False)]
    whole = scored.sums("nested", setting).total()
    assert np.array_equal(parts[0].pixels + parts[1].pixels, whole.pixels)
    assert np.allclose(parts[0].gain + parts[1].gain, whole.gain)


def test_the_uncertified_model_has_a_row_of_its_own(finished):
    images = Images(4)
    model = make_manifest(images)[1]
    right = total = 0
    for index in range(4):
        sample = images[index]
        known = sample.label != 255
        right += (model.predict(sample.image)[known] == sample.label[known]).sum()
        total += known.sum()
    assert ScoredRun(finished).sums(UNCERTIFIED).scores().accuracy == pytest.approx(right / total)
    assert Run(finished).scores()[0]["method"] == UNCERTIFIED


def test_intervals_hold_the_value_and_shrink_to_it_for_one_image(finished, tmp_path, monkeypatch):
    monkeypatch.setattr("certiseg.runs.pooling.LEAST_IMAGES", 1)
    row = ScoredRun(finished).sums("nested", Setting(0.1, 60, 0.75)).row(["cig"], draws=200)
    assert row["cig_low"] <= row["cig"] <= row["cig_high"]
    images = Images(1)
    manifest, model = make_manifest(images, sigmas=(0.1,))
    evaluate_dataset(RunFolder(tmp_path), manifest, images, model)
    single = ScoredRun(RunFolder(tmp_path)).sums("nested", Setting(0.1, 60, 0.75))
    assert list(single.row(["cig"], draws=20).values()) == pytest.approx([single.scores().cig] * 3)


def test_a_broken_image_is_left_out_and_named(tmp_path):
    images = Images(3, broken=1)
    manifest, model = make_manifest(images, sigmas=(0.1,))
    left_out = evaluate_dataset(RunFolder(tmp_path), manifest, images, model)
    assert list(left_out) == ["drive/001"]
    assert "size of its image" in left_out["drive/001"]
    assert RunFolder(tmp_path).left_out() == left_out
    assert ScoredRun(RunFolder(tmp_path)).images == ("drive/000", "drive/002")


def test_an_image_that_fails_halfway_leaves_no_files(tmp_path):
    images = Images(2)
    manifest, model = make_manifest(images)
    whole, limit = model.model.forward, 1 + 2 * (manifest.n0 + 100)  # in the middle of the second sigma

    def poisoned(batch):
        return whole(batch) * float("nan" if model.model.calls == limit else 1)

    model.model.forward = poisoned
    folder = RunFolder(tmp_path)
    assert list(evaluate_dataset(folder, manifest, images, model)) == ["drive/000"]
    assert not [path for path in tmp_path.rglob("*") if "drive__000" in path.name]
    assert folder.finished() == ["drive/001"]


def test_other_settings_in_the_same_folder_are_refused_with_the_difference(finished):
    images = Images(4)
    manifest, model = make_manifest(images, alpha=0.05)
    with pytest.raises(cs.InputError, match=r"alpha: 0\.01 there, 0\.05 asked"):
        evaluate_dataset(RunFolder(finished.path), manifest, images, model)


def test_a_second_writer_is_refused(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create()
    images = Images(1)
    manifest, model = make_manifest(images)
    with folder.locked(), pytest.raises(cs.InputError, match="another process"):
        evaluate_dataset(RunFolder(tmp_path), manifest, images, model)


def test_family_dataset_divides_alpha(tmp_path):
    images = Images(2)
    manifest, model = make_manifest(images, sigmas=(0.1,), family="dataset")
    evaluate_dataset(RunFolder(tmp_path), manifest, images, model)
    certificate = RunFolder(tmp_path).certificate(images.names[0], Setting(0.1, 60, 0.75), "nested")
    assert certificate.settings.alpha == 0.005
    assert "all 2 images at once" in manifest.guarantee()


def test_manifest_round_trip_and_damage(finished, tmp_path):
    assert load_manifest(finished.manifest_path) == finished.manifest
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(cs.InputError, match="manifest"):
        load_manifest(tmp_path / "manifest.json")
    with pytest.raises(cs.InputError, match="no manifest"):
        load_manifest(tmp_path / "none" / "manifest.json")


@pytest.mark.parametrize("text", ["100", "a:0.5", "100:", "0.5:100:1"])
def test_odd_settings_are_refused(text):
    with pytest.raises(cs.InputError, match="n:tau"):
        parse_settings([text])


@pytest.mark.parametrize("text", ["level", "level:x", "nothing", "nested:3", "sets:x", "adaptive:a"])
def test_odd_methods_are_refused(text):
    with pytest.raises(cs.InputError, match="method must be"):
        _ = MethodChoice(text).options


STARTER = """
import os, sys
sys.path.insert(0, {tests!r})
from tests.runs.test_evaluate import Images, make_manifest
from certiseg.runs.progress import Progress
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
import certiseg.runs.local
certiseg.runs.local.CHECKPOINT_SECONDS = 0.0
for line in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("end", flush=True)
        continue
    print(os.getpid(), flush=True)
    images = Images(6)
    manifest, model = make_manifest(images, sigmas=(0.1,), **{changes!r})
    progress = Progress()
    progress.show = lambda: print("more", flush=True)
    evaluate_dataset(RunFolder(line.strip()), manifest, images, model, progress=progress)
    print(f"calls {{model.model.calls}}", flush=True)
    os._exit(0)
"""


@contextlib.contextmanager
def starting(**changes):
    """A process that has everything loaded and forks one that evaluates for every folder it reads."""
    code = STARTER.format(tests=str(Path(__file__).parents[2]), changes=changes)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as process:
        yield process
        process.communicate(timeout=60)


def run_child(starter, folder, *, kill_after=None):
    """Evaluate to the end and return the number of model calls, or kill it after so many lines: None."""
    starter.stdin.write(f"{folder}\n")
    starter.stdin.flush()
    child, calls = int(starter.stdout.readline()), None
    for number, line in enumerate(iter(starter.stdout.readline, "end\n")):
        assert line, "the starter ended"
        if number == kill_after:
            time.sleep(random.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        if line.startswith("calls"):
            calls = int(line.split()[1])
    return calls


@pytest.mark.parametrize(
    "changes", [{}, {"settings": ((160, 0.75),), "test": "anytime", "stop_undecided": 0.1}], ids=["all n", "stopped"]
)
def test_killed_ten_times_and_resumed_gives_the_same_bytes_with_fewer_calls(changes, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with starting(**changes) as starter:
        calls = run_child(starter, whole)
        chooser = random.Random(0)
        for _ in range(10):
            assert run_child(starter, killed, kill_after=chooser.randrange(5, 90)) is None
        assert run_child(starter, killed) < calls
    assert hashes(killed) == hashes(whole)
