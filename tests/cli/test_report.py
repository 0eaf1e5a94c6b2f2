"""certiseg report: files in, one HTML file out; what cannot be reported is one sentence."""

import io
import shutil
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg import measures
from certiseg.cli import main
from certiseg.models.synthetic import synthetic_scene

from ..analysis.conftest import make_run


def report(*arguments):
    try:
        return main(["report", *map(str, arguments)])
    except SystemExit as stop:
        return stop.code


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("cli") / "run", methods=("segcertify", "nested"), settings=((60, 0.75),))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    model, path = synthetic_scene(), tmp_path_factory.mktemp("cli") / "scene.certificate.npz"
    Image.fromarray(np.rint(model.image * 255).astype(np.uint8)).save(path.with_name("scene.png"))
    votes = cs.sample(model, model.image, sigma=0.25, n=60)
    cs.certify(votes, cs.load_hierarchy("camvid"), method="nested").save(path)
    return path


def test_a_run_is_written_beside_itself_or_where_asked(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("certiseg.report.run_report.figure", lambda *_, **__: "")
    assert report(run.path, "--images", 1) == 0
    assert "report.html" in capsys.readouterr().out
    text = (run.path / "report.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "1 of 4 images" in text
    assert report(run.path, "--images", 1, "--setting", "0.03:60:0.75", "--out", tmp_path / "other.html") == 0
    assert (tmp_path / "other.html").read_text("utf-8") == text


def test_a_certificate_is_reported_with_its_photograph(certificate, tmp_path, capsys):
    assert report(certificate) == 0
    page = certificate.with_name("scene.report.html").read_text("utf-8")
    assert "<h1>certiseg: scene</h1>" in page
    assert report(certificate, "--image", certificate.with_name("scene.png"), "--out", tmp_path / "c.html") == 0
    assert "data:image/jpeg" in (tmp_path / "c.html").read_text("utf-8")
    Image.fromarray(np.zeros((*cs.load_certificate(certificate).vertex.shape, 3), np.uint8)).save(tmp_path / "i.png")
    assert report(certificate, "--image", tmp_path / "i.png", "--out", tmp_path / "d.html") == 2
    assert "must be the image that was certified, but its pixels are others" in capsys.readouterr().err


def test_bounds_are_shown_with_the_certificate_of_the_same_draws_and_as_what_they_are(tmp_path):
    hierarchy, scene, path = cs.load_hierarchy("camvid"), synthetic_scene(), tmp_path / "scene.certificate.npz"
    drawn = {"sigma": 0.25, "n": 60, "seed": 3, "hierarchy": hierarchy, "measures": [measures.kept()]}
    votes = cs.sample(scene, scene.image, keep_maps=True, **drawn)
    cs.certify(votes, hierarchy, method="nested").save(path)
    of_another = cs.sample(cs.load_model("compact"), scene.image, **drawn)
    for shown, found in (
        ("Certified bounds", votes),
        ("Exploration, not a promise: these measures", votes.ask(measures.area("Road"), hierarchy=hierarchy)),
        (None, of_another),
    ):
        cs.bound(found).save(tmp_path / "scene.bounds.npz")
        assert report(path, "--out", tmp_path / "page.html") == 0
        page = (tmp_path / "page.html").read_text("utf-8")
        told = [words for words in ("Certified bounds", "Exploration, not a promise: these measures") if words in page]
        assert told == ([] if shown is None else [shown])


def test_several_runs_are_written_side_by_side(run, tmp_path, monkeypatch):
    monkeypatch.setattr("certiseg.report.side_by_side.figure", lambda *_, **__: "")
    shutil.copytree(run.path, tmp_path / "copy")
    assert report(run.path, tmp_path / "copy", "--out", tmp_path / "both.html", "--setting", "0.03:60:0.75") == 0
    text = (tmp_path / "both.html").read_text("utf-8")
    assert "runs side by side" in text
    assert text.count(str(tmp_path / "copy")) > 3
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["RUN/nowhere"], "not there"),
        (["EMPTY"], "run folder"),
        (["TEXT"], "certificate"),
        (["RUN", "--setting", "0.25:100"], "SIGMA:N:TAU"),
        (["RUN", "--setting", "0.5:100:0.75"], "one of the run's"),
        (["RUN", "--images", "-1"], "--images"),
        (["RUN", "--image", "x.png"], "--image"),
        (["RUN", "--root", "EMPTY"], "blocks"),
        (["RUN", "--out", "EMPTY/no/report.html"], "folder that exists"),
        (["CERTIFICATE", "--setting", "0.25:60:0.75"], "--setting"),
        (["CERTIFICATE", "--root", "EMPTY"], "--root"),
        (["CERTIFICATE", "--image", "nowhere.png"], "nowhere.png"),
        (["RUN", "--tables", "EMPTY"], "--tables must be given with several runs"),
        (["RUN", "RUN"], "--out must be given with several runs"),
        (["RUN", "RUN", "--out", "EMPTY/x.html"], "different folders"),
        (["RUN", "CERTIFICATE", "--out", "EMPTY/x.html"], "run folder"),
        (["RUN", "EMPTY/nowhere", "--out", "EMPTY/x.html"], "not there"),
        (["RUN", "EMPTY", "--out", "EMPTY/x.html", "--root", "EMPTY"], "--root must be given with a single run"),
        (["RUN", "EMPTY", "--out", "EMPTY/x.html", "--tables", "TEXT"], "--tables must be a folder"),
    ],
)
def test_bad_input_is_one_sentence(arguments, key, run, certificate, tmp_path, capsys):
    (tmp_path / "text.npz").write_text("no certificate")
    places = {"RUN": run.path, "EMPTY": tmp_path, "TEXT": tmp_path / "text.npz", "CERTIFICATE": certificate}
    for name, path in places.items():
        arguments = [argument.replace(name, str(path)) for argument in arguments]
    assert report(*arguments) == 2
    message = capsys.readouterr().err.strip()
    assert key in message
    assert "\n" not in message


def test_photographs_must_be_those_of_the_run(tmp_path, capsys):
    folder = make_run(tmp_path / "run", dataset="streets", methods=("segcertify",), settings=((60, 0.75),))
    assert report(folder.path, "--root", tmp_path) == 2
    assert "drive/0" in capsys.readouterr().err


def a_label(kind):
    """A label PNG that is not the one of the run: a header that lies, another size, or colours."""
    written = io.BytesIO()
    size = {"other size": (5, 7), "colours": (24, 32, 3), "huge header": (24, 32)}[kind]
    Image.fromarray(np.zeros(size, np.uint8)).save(written, "PNG")
    content = bytearray(written.getvalue())
    if kind == "huge header":
        content[16:24] = struct.pack(">II", 2**31 - 1, 2**31 - 1)
        content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    return bytes(content)


@pytest.mark.parametrize("command", ["report", "tune"])
@pytest.mark.parametrize("kind", ["huge header", "other size", "colours"])
def test_a_label_that_was_replaced_is_one_sentence(kind, command, run, tmp_path, capsys):
    folder = shutil.copytree(run.path, tmp_path / "run")
    next((folder / "labels").glob("*.png")).write_bytes(a_label(kind))
    assert main([command, str(folder)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f"certiseg {command}: error: ")
    assert "must be undamaged, but its bytes are not those that were written" in error
