"""The report of a run: claim, settings, every table and figure, and a gallery in the order of the gains."""

import re

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis.drawing import method_name
from certiseg.analysis.images import image_scores
from certiseg.analysis.pieces import all_pieces
from certiseg.report.run_report import run_report
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting
from certiseg.words import agreement_words

from ..analysis.conftest import METHODS, SETTING, make_run
from .conftest import Page
from .test_page import NASTY, assert_self_contained

FIRST = Setting(0.03, 60, 0.75)


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes longest, and most tests look at something else."""
    monkeypatch.setattr("certiseg.report.run_report.figure", lambda *_, **__: "")


def cards(page):
    """Name and gains of every card, in order."""
    found = re.findall(r'<article class="card" data-place="(\d+)" data-gains="([^"]*)"><h3>(.*?)</h3>', page.source)
    return [(name, [float(gain) for gain in gains.split()]) for _, gains, name in found]


def test_the_claim_is_that_of_a_certificate_of_the_run(small_run, run_page):
    method, setting = small_run.manifest.promised
    certificate = small_run.certificate("drive/0", setting, method)
    claim = certificate.claim()
    for line in claim.splitlines():
        assert line in run_page.text
    assert f"The promise is {method_name(method)} at {setting.words}, named before the first draw." in run_page.text
    scores = ScoredRun(small_run).sums(method, setting).scores()
    assert f"{scores.accuracy:.1%} are certified and right, {scores.wrong:.1%} certified and wrong" in run_page.text
    assert agreement_words(scores.agreement) in run_page.text
    assert run_page.text.count("(promise) CIG") == len(small_run.finished())
    assert small_run.manifest.guarantee() in run_page.text


def test_settings_tables_and_figures_are_all_there(small_run, run_page):
    for text in ("bonferroni", "0.01 per image", "n 60", "n 100", small_run.manifest.model_sha256, "camvid"):
        assert text in run_page.text
    figures = 0
    for piece in all_pieces(small_run, FIRST, draws=10):
        assert f'<section id="{piece.stem}">' in run_page.source
        assert piece.title in run_page.text
        assert piece.table is None or piece.table.title in run_page.text
        figures += piece.draw is not None
    assert figures >= 12
    assert run_page.source.count('<figure class="wide') == figures
    assert all(method_name(method) in run_page.text for method in METHODS)
    assert "nan" not in re.findall(r"\bnan\b", run_page.text.lower())


def test_the_gallery_has_every_image_by_the_gain_of_nested(small_run, run_page):
    scores = {image.name: image for image in image_scores(ScoredRun(small_run), FIRST)}
    found = cards(run_page)
    assert {name for name, _ in found} == set(scores)
    for name, gains in found:
        expected = [scores[name].gain(m) for m in (METHODS[3], "nested", "sets:3")]
        assert gains == pytest.approx(expected, abs=1e-6)
    leading = [gains[1] for _, gains in found]
    assert leading == sorted(leading, reverse=True)
    assert len(set(leading)) > 2
    assert "<option selected>Nested</option>" in run_page.source
    assert '<option value="worst">worst first</option>' in run_page.source


def test_few_images_are_those_with_the_largest_and_the_least_gain(small_run, run_page, no_figures):
    every = [name for name, _ in cards(run_page)]
    page = Page(run_report(small_run, images=2))
    assert [name for name, _ in cards(page)] == [every[0], every[-1]]
    assert "2 of 4 images" in page.text
    assert "gallery" not in {s.get("id") for s in Page(run_report(small_run, images=0)).all("section")}


def test_another_setting_is_drawn_if_asked_and_refused_if_not_of_the_run(small_run, no_figures):
    page = Page(run_report(small_run, setting=SETTING, images=0, full=True))
    assert f'<section id="levels-{SETTING}">' in page.source
    with pytest.raises(cs.InputError, match="one of the run's"):
        run_report(small_run, setting=Setting(0.5, 100, 0.75))


def test_photographs_are_shown_where_somebody_has_them(small_run, no_figures):
    page = Page(run_report(small_run, images=1, photograph=lambda name: np.zeros((24, 32, 3), np.uint8)))
    assert sum(p["src"].startswith("data:image/jpeg") for p in page.all("img")) == 1


def test_names_from_files_are_text_and_nothing_else(tmp_path, monkeypatch):
    from ..analysis.conftest import Images

    names = (NASTY.replace("/", "\\"), "$\\frac{", "b", "c")
    monkeypatch.setattr(Images, "names", names)
    folder = make_run(tmp_path / "run", dataset=f"set {NASTY}", methods=("segcertify", "nested"))
    folder.write_left_out({names[0]: NASTY})
    page = Page(run_report(folder))
    assert page.source.count("<script") == 1
    assert "onerror" not in {name for _, attributes in page.elements for name in attributes}
    assert_self_contained(page)
    assert {name for name, _ in cards(page)} >= {"b", "c", "$\\frac{"}


def test_runs_with_few_methods_are_reported_too(tmp_path):
    page = Page(run_report(make_run(tmp_path / "run", methods=("sets:2",), settings=((60, 0.75),))))
    assert "Sets (up to 2)" in page.text
    assert '<div class="controls">' not in page.source


def test_folders_that_are_no_finished_run_are_one_sentence(small_run, tmp_path):
    with pytest.raises(cs.InputError, match="run folder"):
        run_report(RunFolder(tmp_path))
    (tmp_path / "manifest.json").write_bytes(small_run.manifest_path.read_bytes())
    with pytest.raises(cs.InputError, match="finished images"):
        run_report(RunFolder(tmp_path))
