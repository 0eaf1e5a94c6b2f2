"""certiseg evaluate: a plain folder from start to table, resumed, refused, and with a broken image."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from certiseg.cli import main

FACTORY = """
import torch
def small():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 4, 1)
    return torch.nn.Sequential(*layers)
"""

HIERARCHY = """
name: tiny
classes: [road, car, bus, tree]
levels:
  1:
    vehicle: [car, bus]
thresholds: [0.25]
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of three small images, a network and a hierarchy."""
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for index in range(3):
        image = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(image).save(tmp_path / f"data/images/{index}.png")
        Image.fromarray(rng.integers(0, 4, (24, 32), dtype=np.uint8)).save(tmp_path / f"data/labels/{index}.png")
    (tmp_path / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (tmp_path / "evaluated_networks.py").write_text(FACTORY)
    (tmp_path / "tiny.yaml").write_text(HIERARCHY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(*more):
    """Exit code of an evaluation of the folder."""
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml"]
    try:
        return main(["evaluate", "folder", "--root", "data", "--out", "run", *model, *more])
    except SystemExit as stop:
        return stop.code


def test_a_folder_is_evaluated_resumed_and_protected(data, capsys):
    assert evaluate("--json", "--setting", "60:0.75", "100:0.8", "--sigma", "0.1") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    methods = [row["method"] for row in scores]
    assert methods == ["uncertified", *["segcertify", "level:1", "adaptive", "nested", "sets"] * 2]
    assert all(0 <= row["cig"] <= 1 for row in scores[1:])
    assert evaluate("--setting", "60:0.75", "100:0.8", "--sigma", "0.1") == 0
    text = capsys.readouterr().out
    assert "3 images of folder; promise: segcertify at sigma = 0.1, n = 60, tau = 0.75, guaranteed per image" in text
    assert evaluate("--setting", "60:0.75", "100:0.8", "--sigma", "0.2") == 2
    assert "sigmas" in capsys.readouterr().err


def test_a_broken_label_is_named_and_left_out(data, capsys):
    Image.fromarray(np.zeros((24, 30), np.uint8)).save(data / "data/labels/1.png")
    assert evaluate() == 3
    text = capsys.readouterr().out
    assert "2 images of folder" in text
    assert "left out: 1:" in text


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--setting", "100"], "n:tau"),
        (["--setting", "10:0.75"], "at least"),
        (["--setting", "100:0.3"], "tau"),
        (["--sigma", "0"], "sigma"),
        (["--alpha", "2"], "alpha"),
        (["--methods", "nothing"], "method"),
        (["--methods", "level:7"], "level"),
        (["--methods", "adaptive:0.5,0.1"], "thresholds"),
        (["--methods", "nested", "--correction", "by"], "correction"),
        (["--every", "0"], "every"),
        (["--first", "0"], "first"),
        (["--root", "nowhere"], "nowhere"),
        (["--denoiser", "--sigma", "0.1", "0.2"], "single"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_written(arguments, key, data, capsys):
    assert evaluate(*arguments) == 2
    message = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert len(message) == 1
    assert key in message[0]
    assert not (data / "run").exists()


def test_a_table_of_pairs_is_evaluated_by_the_classes_of_the_hierarchy_and_found_again(data, capsys):
    (data / "tables").mkdir()
    rows = [f"../data/images/{index}.png,../data/labels/{index}.png,{name}" for index, name in enumerate("xyz")]
    (data / "tables/pairs.csv").write_text("\n".join(["image,label,name", *rows]))
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml", "--setting", "60:0.75"]
    start = ["evaluate", "tables/pairs.csv", "--out", "run", *model, "--methods", "segcertify", "--first", "2"]
    assert main(start) == 0
    assert "2 images of pairs; promise" in capsys.readouterr().out
    manifest = json.loads((data / "run/manifest.json").read_text())
    assert (manifest["dataset"], manifest["images"]) == ("pairs", ["x", "y"])
    assert main(["report", "run", "--root", "tables/pairs.csv", "--out", "page.html"]) == 0
    assert "photograph" in (data / "page.html").read_text()
    (data / "data/images/1.png").unlink()
    assert main(start) == 2, "every file of a table must be there"
    assert "row 2: image must be a file" in capsys.readouterr().err


def test_instances_of_a_table_are_the_true_objects(data, capsys):
    marked = np.kron(np.arange(6).reshape(2, 3), np.ones((12, 11), int))[:, :32].astype(np.uint8)
    Image.fromarray(marked).save(data / "objects.png")
    Image.fromarray(np.ones((24, 32), np.uint8)).save(data / "data/labels/0.png")
    (data / "pairs.csv").write_text("image,label,instances\ndata/images/0.png,data/labels/0.png,objects.png\n")
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml", "--setting", "60:0.75"]
    start = ["evaluate", "pairs.csv", *model, "--methods", "segcertify", "--objects", "vehicle", "--least-area", "125"]
    for more, pixels in ((["--instances"], [132, 132, 132, 132]), ([], [768])):
        assert main([*start, *more, "--out", "run" + "".join(more)]) == 0
        rows = json.loads(next((data / ("run" + "".join(more)) / "rows").iterdir()).read_text())["measures"]
        assert [row["pixels"] for row in rows if row["name"].startswith("true ")] == pixels
    assert main(["evaluate", "folder", "--root", "data", *start[2:], "--instances", "--out", "none"]) == 2
    assert "must come with a map of instances, got none" in capsys.readouterr().err


def test_tiles_of_a_raster_are_evaluated_in_its_own_units(data, capsys):
    rasterio = pytest.importorskip("rasterio", reason="needs certiseg[geo]")
    rng, grid = (
        np.random.default_rng(0),
        {"driver": "GTiff", "height": 24, "width": 48, "nodata": 0, "crs": "EPSG:4326"},
    )
    grid["transform"] = rasterio.transform.from_origin(8.0, 50.0, 0.1, 0.1)
    for name, count, high, kind in (("images", 4, 3000, "uint16"), ("labels", 1, 4, "uint8")):
        (data / "scene" / name).mkdir(parents=True)
        with rasterio.open(data / f"scene/{name}/a.tif", "w", count=count, dtype=kind, **grid) as file:
            file.write(rng.integers(0, high, (count, 24, 48)).astype(kind))
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml", "--setting", "60:0.75"]
    start = ["evaluate", "geotiff:32:3,2,1", "--root", "scene", "--values", "0:3000", *model]
    assert main([*start, "--methods", "segcertify", "--out", "run"]) == 0
    manifest = json.loads((data / "run/manifest.json").read_text())
    assert (manifest["dataset"], manifest["images"]) == ("geotiff:32:3,2,1", ["a/000000_000000", "a/000000_000024"])
    assert main(["verify", "run"]) == 0


def test_a_model_of_other_classes_is_refused_before_any_draw(data, capsys):
    (data / "data/classes.txt").write_text("road\ncar\ntree\nbus\n")
    assert evaluate() == 2
    assert "the same classes in the same order, got 'bus'" in capsys.readouterr().err
    (data / "data/classes.txt").write_text("road\ncar\nbus\ntree\nsky\n")
    assert evaluate() == 2
    assert "must have the same classes, got 4 of" in capsys.readouterr().err
    assert not (data / "run").exists()


def test_a_measured_batch_size_is_kept_with_the_run(data, monkeypatch):
    measured = iter([3, 5])
    monkeypatch.setattr("certiseg.runs.prepare.measured_batch_size", lambda *_, **__: next(measured))
    run = ["--setting", "60:0.75", "--methods", "segcertify", "--memory", "1GiB"]
    assert evaluate(*run) == 0
    assert json.loads((data / "run/manifest.json").read_text())["batch_size"] == 3
    assert evaluate(*run) == 0, "resumed with what was recorded, not measured again"
    assert next(measured) == 5


def test_lines_in_json_tell_how_far_a_run_is_and_what_it_found_when_resumed(data, capsys):
    run = ["--setting", "60:0.75", "--methods", "segcertify", "--log-format", "json"]
    for expected in (3 * 70, 0):
        assert evaluate(*run) == 0
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert lines[0]["event"] == "note"
        last = lines[-1]
        assert (last["images_done"], last["images"], last["draws_done"], last["draws"]) == (3, 3, 210, 210)
        assert (last["images_per_hour"] > 0) == (expected > 0), "what an earlier start did is no speed of this one"


def test_when_no_image_can_be_read_the_reasons_are_shown(data, capsys):
    for path in (data / "data/images").iterdir():
        path.write_bytes(b"no image")
    assert evaluate() == 2
    error = capsys.readouterr().err
    assert "must have a readable image, got none" in error
    assert error.count("must be a readable image") == 3


def test_an_image_that_is_larger_than_the_first_decides_which_n_is_enough(data, capsys):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (240, 320, 3), dtype=np.uint8)).save(data / "data/images/2.png")
    Image.fromarray(rng.integers(0, 4, (240, 320), dtype=np.uint8)).save(data / "data/labels/2.png")
    assert evaluate("--setting", "50:0.75") == 2
    assert "n must be at least" in capsys.readouterr().err
    assert not (data / "run").exists()


def test_what_nobody_has_foreseen_is_one_sentence_and_an_exit_code_of_its_own(data, capsys, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("unforeseen\nhere")

    monkeypatch.setattr("certiseg.runs.evaluate.evaluate", fail)
    assert evaluate() == 70
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "ZeroDivisionError: unforeseen here (test_evaluate.py, line" in error


def test_verify_checks_a_whole_run_and_repair_lets_it_be_drawn_again(data, capsys):
    run = ["--setting", "60:0.75", "--methods", "segcertify"]
    assert evaluate(*run) == 0
    capsys.readouterr()
    assert main(["verify", "run"]) == 0
    assert "run: verified (3 images, 3 certificates recomputed, votes not redrawn)" in capsys.readouterr().out
    before = (data / "run/votes/1.sigma0.25.npz").read_bytes()
    (data / "run/votes/1.sigma0.25.npz").write_bytes(before[:-1] + b"?")
    assert main(["verify", "run", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)[0]
    assert [problem["image"] for problem in found["problems"]] == ["1"]
    assert evaluate(*run) == 2
    assert "certiseg verify run --repair" in capsys.readouterr().err
    assert main(["verify", "run", "--repair"]) == 1
    assert "repaired: 1 images set back" in capsys.readouterr().out
    assert main(["verify", "run"]) == 1
    assert "not finished: 1 images (first: 1); resume the run" in capsys.readouterr().out
    assert evaluate(*run) == 0
    assert (data / "run/votes/1.sigma0.25.npz").read_bytes() == before
    assert main(["verify", "run"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "data"], "must be a run folder"),
        (["verify", "data", "--image", "0.png"], "RUN must be given without"),
        (["verify", "tiny.yaml", "--repair"], "--repair must be given with a run folder"),
    ],
)
def test_verify_says_what_it_cannot_check(arguments, sentence, data, capsys):
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_a_run_along_a_threat_is_verified_reported_and_swept(data, capsys):
    along = ["--threat", "fog", "--scale", "0.5", "--airlight", "0.7", "--up-to", "0.6", "--setting", "60:0.75"]
    assert evaluate(*along, "--methods", "nested", "sets", "--json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert {(row["sigma"], row["covered"]) for row in scores[1:]} == {(0.0, "fog of density up to 50 %")}
    assert evaluate(*along, "--methods", "nested", "sets") == 0
    assert "for fog of density up to 50 % (fog of airlight 0.7" in capsys.readouterr().out
    assert evaluate(*along[:4], *along[6:], "--methods", "nested", "sets") == 2
    assert "threat: {'name': 'fog'" in capsys.readouterr().err
    assert main(["verify", "run"]) == 0
    assert main(["report", "run", "--out", "page.html", "--images", "0"]) == 0
    assert "drawn at 2 anchors" in (data / "page.html").read_text("utf-8")
    capsys.readouterr()
    model = ["--model", "torch:evaluated_networks:small", "--hierarchy", "tiny.yaml"]
    sweep = ["attack", "run", "--root", "data", "--first", "1", *model, "--sweep-steps", "2", "--draws", "40"]
    assert main([*sweep, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert sorted({step["t"] for step in steps if step["inside"]})[-1] == pytest.approx(2 * 0.5 * np.log(2))
    assert main([*sweep, "--threat", "dark", "--scale", "0.5"]) == 2
    assert "--threat must be that of the run, fog, or left out, got dark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--up-to", "1"], "--up-to must come with --threat, got it alone"),
        (["--threat", "fog"], "--scale must be given with --threat fog"),
        (["--threat", "fog", "--scale", "-1"], "scale must be a positive number"),
        (["--threat", "fog", "--scale", "1", "--airlight", "2"], r"airlight must lie in [0, 1], got 2"),
        (["--threat", "fog", "--scale", "1", "--depth", "no.npy"], "--depth must be a file"),
        (
            ["--threat", "fog", "--scale", "1", "--depth", "depth.npy"],
            "threat must be the same for all images of a run",
        ),
        (["--threat", "gamma", "--scale", "1", "--sigma", "0.1"], "sigma and radius must be 0 for gamma"),
        (["--threat", "dark", "--scale", "0.01", "--up-to", "1"], "a scale of 0.03 would do"),
        (["--radius", "0.1"], "radius must come with a threat"),
    ],
)
def test_threats_that_cannot_be_are_one_sentence(data, capsys, options, words):
    np.save(data / "depth.npy", np.ones((24, 32)))
    assert evaluate(*options) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1
    assert not (data / "run").exists()


def test_images_stop_early_and_every_command_knows(data, capsys):
    stops = ("--sigma", "0.1", "--stop-undecided", "0.1")
    assert evaluate("--json", *stops, "--n-max", "300") == 0
    rows = json.loads(capsys.readouterr().out)["scores"][1:]
    assert {row["n"] for row in rows} == {300}
    assert rows[0]["draws_least"] <= rows[0]["draws"] <= rows[0]["draws_most"] < 300
    assert evaluate(*stops, "--setting", "300:0.75", "--test", "anytime") == 0, "the same run, said in other words"
    assert "n up to 300" in capsys.readouterr().out
    for command in (["verify", "run"], ["tune", "run"], ["report", "run", "--out", "report.html"]):
        assert main(command) == 0
    assert "n up to 300" in (data / "report.html").read_text()
    redraw = ["verify", "run", "--root", "data", "--model", "torch:evaluated_networks:small"]
    assert main(redraw) == 0
    assert "votes redrawn" in capsys.readouterr().out
    (data / "evaluated_networks.py").write_text(FACTORY.replace("seed(0)", "seed(1)"))
    sys.modules.pop("evaluated_networks")
    assert main(redraw) == 1
    assert "redraw: the model, or how its input is prepared, is not that recorded" in capsys.readouterr().out
    (data / "evaluated_networks.py").write_text(FACTORY)
    sys.modules.pop("evaluated_networks")
    capsys.readouterr()
    for odd, sentence in (
        (("--n-max", "300", "--test", "fixed"), "test must be anytime with stop_undecided, got 'fixed'"),
        (("--n-max", "300", "--setting", "100:0.75"), "setting must have n = n_max = 300, got 100:0.75"),
        (("--setting", "100:0.75", "300:0.75"), "settings must have one n with stop_undecided, got (100, 300)"),
        (("--n-max", "400"), "settings: [(300, 0.75)] there, [(400, 0.75)] asked"),
    ):
        assert evaluate(*stops, *odd) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())
    assert evaluate("--n-max", "300") == 2
    assert "n_max must come with stop_undecided" in capsys.readouterr().err
