"""One run, one promise: it is named before the first draw, and all else from the same draws is a comparison."""

import json

import numpy as np
import pytest

import certiseg as cs
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import load_manifest
from certiseg.runs.prepare import scan, with_keys
from certiseg.runs.settings import RunSettings, Setting, parse_setting
from certiseg.runs.verify import verify_run
from certiseg.words import LOW_AGREEMENT
from tests.runs.test_evaluate import Images, make_manifest

PAIRS = {"sigmas": (0.1, 0.3), "settings": ((60, 0.75), (100, 0.8)), "methods": ("segcertify", "nested")}


def test_the_promise_is_the_first_method_at_the_first_setting_unless_another_is_named():
    assert RunSettings(**PAIRS).promised == ("segcertify", Setting(0.1, 60, 0.75))
    asked = RunSettings(**PAIRS, promise="nested@0.3:100:0.8")
    assert asked.promised == ("nested", Setting(0.3, 100, 0.8))
    single = RunSettings(**PAIRS | {"sigmas": (0.3,)}, promise="nested@100:0.8")
    assert single.promised == asked.promised
    assert parse_setting(asked.promised[1].typed) == asked.promised[1]


@pytest.mark.parametrize(
    "promise", ["sets@0.1:60:0.75", "nested@0.2:60:0.75", "nested@60:0.75", "nested@0.1:60", "nested", "@", "a@b:c:d"]
)
def test_a_promise_that_the_run_does_not_have_is_refused(promise):
    with pytest.raises(cs.InputError, match=r"must be (METHOD@)?SIGMA:N:TAU"):
        RunSettings(**PAIRS, promise=promise)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    images, folder = Images(2), RunFolder(tmp_path_factory.mktemp("run"))
    manifest, model = make_manifest(images, promise="nested@0.3:60:0.75")
    evaluate_dataset(folder, manifest, images, model)
    return cs.open_run(folder.path)


def test_one_row_of_the_table_is_the_promise_and_the_others_are_a_comparison(run):
    scores = run.scores()
    assert [row.get("role") for row in scores].count("promise") == 1
    (promised,) = (row for row in scores if row.get("role") == "promise")
    assert (promised["method"], promised["sigma"], promised["n"], promised["tau"]) == ("nested", 0.3, 60, 0.75)
    assert {row["role"] for row in scores[1:]} == {"promise", "comparison"}
    assert "promise: nested at sigma = 0.3, n = 60, tau = 0.75, guaranteed per image with probability 0.99" in str(
        scores
    )
    assert sum(line.endswith("  promise") for line in str(scores).splitlines()) == 1
    assert run["drive/000"].certificate().settings.method == "nested"
    assert run["drive/000"].certificate().votes.sigma == 0.3


def test_the_promise_belongs_to_the_run_and_another_one_is_refused_on_resume(run):
    assert load_manifest(run.folder.manifest_path).promise == "nested@0.3:60:0.75"
    assert verify_run(RunFolder(run.path)).passed
    images = Images(2)
    manifest, model = make_manifest(images, promise="segcertify@0.3:60:0.75")
    with pytest.raises(cs.InputError, match=r"its own settings, got others \(promise: nested@"):
        evaluate_dataset(RunFolder(run.path), with_keys(manifest, scan(images)), images, model)


def test_scores_say_what_is_certified_and_wrong_and_how_far_it_agrees_with_the_noise_free_prediction(run):
    for row in run.scores()[1:]:
        assert row["abstain"] + row["accuracy"] + row["wrong"] == pytest.approx(1)
    row = next(row for row in run.scores() if row.get("role") == "promise")
    setting, same, certified, size = Setting(0.3, 60, 0.75), 0, 0, 0
    for image in run:
        certificate, known = image.certificate("nested", setting), image.label != 255
        for i, j in np.argwhere(known & (certificate.vertex >= 0)):
            under = np.flatnonzero(certificate.hierarchy.members[certificate.vertex[i, j]])
            same, certified, size = same + (image.prediction[i, j] in under), certified + 1, size + len(under)
    assert certified > 100
    assert row["agreement"] == pytest.approx(same / certified)
    assert row["set_size"] == pytest.approx(size / certified)


def test_a_model_that_noise_destroys_is_warned_of(run):
    scores = run.scores()
    low = [row for row in scores[1:] if row["agreement"] is not None and row["agreement"] < LOW_AGREEMENT]
    assert len(scores.warnings) == len(low)
    scores[1]["agreement"] = 0.0
    assert "WARNING: noise of this size changes what the model answers" in scores.warnings[0]
    assert "WARNING" in str(scores)
    scores[1]["agreement"] = None
    assert json.loads(json.dumps(scores, allow_nan=False))[1]["agreement"] is None
