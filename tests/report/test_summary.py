"""The first page: what is promised and what is not, by class, the worst images, objects, truth, and how to check it."""

import json
import re
import shlex

import numpy as np
import pytest

import certiseg as cs
from certiseg.cli import main
from certiseg.hierarchy import VOID
from certiseg.report.run_report import run_report
from certiseg.report.summary import by_class, worst_images
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.sealed import write_sealed
from certiseg.truth.calibration import Calibration
from certiseg.truth.identity import ModelIdentity
from certiseg.truth.settings import CalibrationSettings

from ..analysis.conftest import make_run
from .conftest import Page


@pytest.fixture(scope="module")
def measured_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("measured") / "run"
    return make_run(path, settings=((60, 0.75),), methods=("nested",), objects=("vehicle", "human"), least_area=4)


def rows_of(body):
    """Name and cells of every row of a table of bars."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', str(body), re.S)
    return {re.sub(r"<small>.*", "", name).strip(): re.findall(r'class="number">(.*?)<', cells) for name, cells in rows}


def test_the_first_page_comes_first_and_the_experiments_only_if_asked(run_page, short_page):
    keys = [section["id"] for section in short_page.all("section")]
    assert keys[:5] == ["promise", "not-promised", "classes", "worst", "verify"]
    assert len(keys) < len(run_page.all("section")) - 10
    assert "Threshold functions" not in short_page.text
    assert "No intervals: they need at least 20 images." in short_page.text
    assert "<small>[" not in short_page.source


def test_shares_by_class_are_counted_and_people_come_first(small_run):
    method, setting = small_run.manifest.promised
    counts = np.zeros((31, 3), int)
    for name in small_run.finished():
        label, certificate = small_run.label(name), small_run.certificate(name, setting, method)
        known = label != VOID
        right = certificate.holds(np.where(known, label, 0))
        for column, mask in enumerate((right, ~right & ~certificate.abstained, certificate.abstained)):
            counts[:, column] += np.bincount(label[known & mask], minlength=31)[:31]
    shown = rows_of(by_class(ScoredRun(small_run)))
    tree = small_run.manifest.tree
    assert set(shown) == {tree.classes[k] for k in np.flatnonzero(counts.sum(axis=1))}
    for name, cells in shown.items():
        row = counts[tree.id(name)]
        assert cells == [*(f"{share:.1%}" for share in row / row.sum()), f"{row.sum():,}"]
    people = {"Pedestrian", "Child", "CartLuggagePram", "Animal", "Bicyclist", "MotorcycleScooter"} & set(shown)
    assert people
    assert set(list(shown)[: len(people)]) == people


def test_the_worst_images_are_those_most_certified_and_wrong(small_run):
    body = worst_images(ScoredRun(small_run))
    wrong = [float(cells[1].rstrip("%")) for cells in rows_of(body).values()]
    assert len(wrong) == 4
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[0] > wrong[-1]


def test_what_is_not_promised_is_said_with_its_numbers(small_run, short_page):
    scores = ScoredRun(small_run).sums(*small_run.manifest.promised).scores()
    assert (
        f"That a label is true. {scores.wrong:.1%} of the labelled pixels are certified and wrong." in short_page.text
    )
    assert f"Anything where it abstains: {scores.abstain:.1%} of the labelled pixels." in short_page.text
    assert "Anything but perturbations of l2 size up to R = " in short_page.text
    assert "All 4 images at once." in short_page.text


def test_the_command_of_the_page_checks_the_run(small_run, short_page, capsys):
    commands = re.findall(r"<code>certiseg (.*?)</code>", short_page.source)
    assert main(shlex.split(commands[0])) == 0
    assert "verified" in capsys.readouterr().out
    assert shlex.split(commands[1])[1].endswith(".npz")


def test_objects_and_whole_images_have_a_promise_of_their_own(measured_run):
    page = Page(run_report(measured_run, images=0))
    assert "objects" in [section["id"] for section in page.all("section")]
    rows = [row for name in measured_run.finished() for row in measured_run.receipt(name).measures]
    least = min(row["bound"] for row in rows if row["kind"] == "kept")
    assert f"{np.floor(1000 * least) / 10:.1f} % of the worst" in page.text
    assert "beside the alpha of its pixels" in page.text


def write_reached(folder, sha256, **changes):
    """A truth.json over a calibration with made-up scores: three of four images are covered."""
    size, scores = (8, 8), np.full((20, 1), 1000, np.uint32)
    model = ModelIdentity("model", sha256, {}, 3, None, size, None)
    keys = tuple(map(str, range(20)))
    calibration = Calibration(CalibrationSettings(), model, "", 0, scores, {}, keys=keys, sizes=(size,))
    held = (0.96, 1.0, 0.95, 0.94)
    images = [
        {
            "name": str(k),
            "labelled": 100,
            "covered": share >= 0.95,
            "held": share,
            "mean_set_size": 2.5,
            "singletons": 0.4,
        }
        for k, share in enumerate(held)
    ]
    rows = [{"multiple": multiple, "by_image": images} for multiple in (0.0, 2.0)]
    content = {"calibration": calibration.content(), "reached": rows} | changes
    write_sealed(folder / "truth.json", "reached", json.loads(json.dumps(content)))
    return images


def test_calibrated_sets_are_a_promise_about_truth(small_run, tmp_path):
    own = small_run.manifest.model_sha256
    images = write_reached(tmp_path, own)
    page = Page(run_report(small_run, images=0, truth=str(tmp_path)))
    assert "a promise about truth" in page.text
    for text in (
        "With probability at least 0.9 - over the 20 calibration images",
        "75.0%",
        "at least 0.9",
        "nothing",
    ):
        assert text in page.text
    write_reached(tmp_path, "another")
    with pytest.raises(cs.InputError, match="of the model of the run"):
        run_report(small_run, truth=str(tmp_path))
    all_covered = [{"multiple": 0.0, "by_image": [image | {"covered": True} for image in images]}]
    odd = [
        {"reached": [{"multiple": 0.0, "by_image": [{**images[0], **lie}]}]}
        for lie in ({"labelled": 0}, {"mean_set_size": -3}, {"singletons": 7}, {"held": 1e400}, {"labelled": 10**400})
    ]
    odd += [{"reached": [{"multiple": m, "by_image": images}]} for m in (-3, 10**400)]
    odd += [{"reached": []}, {"reached": [{"multiple": 0, "by_image": []}]}]
    odd += [{"reached": [{"multiple": 0, "by_image": images[:1] * 5}]}]
    for lie in (*odd, {"reached": 3}, {"reached": all_covered}, {"calibration": 1}, {"calibration": {}}):
        write_reached(tmp_path, own, **lie)
        with pytest.raises(cs.InputError, match="must be"):
            run_report(small_run, truth=str(tmp_path))
    write_reached(tmp_path, own)
    text = (tmp_path / "truth.json").read_text()
    for content in ("{", "[]", text.replace("0.94", "0.96")):
        (tmp_path / "truth.json").write_text(content)
        with pytest.raises(cs.InputError, match=r"do not match its SHA-256|without one, or cut off"):
            run_report(small_run, truth=str(tmp_path))
    with pytest.raises(cs.InputError, match="--truth must be"):
        run_report(small_run, truth=str(tmp_path / "nowhere"))


def test_maps_may_be_in_six_colours(small_run):
    page = Page(run_report(small_run, colours="groups"))
    names = {entry["data-name"] for tag, entry in page.elements if "data-name" in entry}
    assert names >= {"vehicles", "several groups", "abstained", "certified and wrong"}
    assert not names & set(small_run.manifest.tree.classes) - {"Sky"}
