"""certiseg certify with objects, areas and the whole image, and verify of the bounds that it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.cli import main
from certiseg.models.synthetic import synthetic_scene

SIZE = (96, 128)


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.png"
    Image.fromarray((synthetic_scene().image * 255).round().astype(np.uint8)).save(path)
    return path


def run(*arguments: object) -> int:
    try:
        return int(main([str(argument) for argument in arguments]))
    except SystemExit as stop:
        return int(stop.code or 0)


def saved(path: Path, array: np.ndarray[Any, Any]) -> Path:
    Image.fromarray(array).save(path)
    return path


def certified(scene: Path, *options: object) -> tuple[dict[str, Any], cs.Bounds]:
    out = scene.parent / "out"
    assert run("certify", scene, "--model", "synthetic", "--out", out, *options) == 0
    return json.loads((out / "scene.json").read_text()), cs.load_bounds(out / "scene.bounds.npz")


def test_the_whole_image_is_bounded_by_default(scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary, bounds = certified(scene)
    text = capsys.readouterr().out
    assert [measure.kind for measure in bounds.measures] == ["kept"]
    assert summary["measures"]["bounds"][0]["bound"] == pytest.approx(bounds.lower[0], abs=1e-4)
    assert "of all pixels at once keep their class" in text
    assert "an alpha of 0.001 each: both together hold with probability at least 0.998" in text
    assert run("verify", scene.parent / "out" / "scene.bounds.npz", "--model", "synthetic", "--image", scene) == 0
    assert "regions: objects and what is kept are those of the selection draws" in capsys.readouterr().out
    certificate = cs.load_certificate(scene.parent / "out" / "scene.certificate.npz")
    assert certificate.votes.record is None


def test_objects_areas_and_instances_are_bounded_drawn_and_listed(scene: Path) -> None:
    lane = np.zeros(SIZE, np.uint8)
    lane[60:, 40:90] = 255
    ids = np.zeros(SIZE, np.uint16)
    ids[10:20, 10:30], ids[40:60, 90:120] = 3, 700
    area = saved(scene.parent / "lane.png", lane)
    own = saved(scene.parent / "ids.png", ids)
    options = ["--objects", "--least-area", 40, "--area", f"{area}:human,Car", "--instances", f"{own}:vehicle"]
    summary, bounds = certified(scene, *options, "--area", "lane:Road")
    names = [(measure.kind, measure.name) for measure in bounds.measures]
    assert names[0] == ("kept", "the image")
    assert names[-4:] == [(kind, f"vehicle {k}") for k in (3, 700) for kind in ("share", "overlap")]
    assert [name for kind, name in names if kind == "free"] == ["the area lane", "the area lane"]
    assert bounds.measures[-1].inside.area == 600
    found = [measure for measure in bounds.measures if measure.source == "candidate" and measure.kind == "share"]
    assert found
    assert {measure.label for measure in found} <= {"vehicle", "human", "two-wheeler"}
    assert min(measure.inside.area for measure in found) >= 40
    rows = list(csv.DictReader((scene.parent / "out" / "scene.measures.csv").read_text().splitlines()))
    assert [row["name"] for row in rows] == [name for _, name in names]
    assert [float(row["bound"]) for row in rows] == [row["bound"] for row in summary["measures"]["bounds"]]
    with Image.open(scene.parent / "out" / "scene.overlay.png") as overlay:
        assert tuple(np.asarray(overlay)[95, 40]) == (255, 214, 10), "the outline of the lane"
    path = scene.parent / "out" / "scene.bounds.npz"
    assert run("verify", path, "--model", "synthetic", "--image", scene) == 0


def test_measures_alone_need_few_draws_and_may_stop(scene: Path) -> None:
    summary, bounds = certified(scene, "--measures-only", "-n", 25)
    assert bounds.lower[0] > 0.5
    assert "pixels_tested" not in summary
    assert not (scene.parent / "out" / "scene.certificate.npz").exists()
    _, stopped = certified(scene, "--measures-only", "--stop-undecided", 0, "--n-max", 400)
    assert stopped.draws.n < 400
    assert stopped.draws.stopped
    assert stopped.settings.test == "anytime"
    assert run("verify", scene.parent / "out" / "scene.bounds.npz", "--model", "synthetic", "--image", scene) == 0


def test_kept_maps_stay_with_the_votes(scene: Path) -> None:
    certified(scene, "--keep-maps")
    votes = cs.load_certificate(scene.parent / "out" / "scene.certificate.npz").votes
    again = votes.ask(cs.measures.area("Road"))
    assert again.values[3, 0] == (votes.record.label_map(3) == 8).mean()  # type: ignore[union-attr]
    assert run("verify", scene.parent / "out" / "scene.certificate.npz", scene.parent / "out" / "scene.bounds.npz") == 0


def test_coco_and_cityscapes_files_name_their_objects(tmp_path: Path) -> None:
    from certiseg.measures.files import read_instances

    tree, size = cs.load_hierarchy("cityscapes"), (6, 8)
    text = {
        "images": [{"id": 7, "file_name": "a/b.png"}, {"id": 8, "file_name": "c.png"}],
        "categories": [{"id": 1, "name": "Car"}, {"id": 2, "name": "person"}],
        "annotations": [
            {"image_id": 7, "category_id": 1, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]]},
            {"image_id": 7, "category_id": 2, "segmentation": {"size": [6, 8], "counts": [6, 5, 37]}},
            {"image_id": 7, "category_id": 2, "segmentation": {"size": [6, 8], "counts": "65U1"}},
            {"image_id": 8, "category_id": 2, "segmentation": [[0, 0, 1, 0, 1, 1]]},
        ],
    }
    (tmp_path / "coco.json").write_text(json.dumps(text))
    car, person, other = read_instances(str(tmp_path / "coco.json"), size, tree, image="b")
    assert (car.name, car.label, person.name, other.name) == ("car 1", "car", "person 1", "person 2")
    assert np.argwhere(car.mask).tolist() == [[row, column] for row in (1, 2, 3) for column in (1, 2, 3, 4)]
    assert np.argwhere(person.mask).tolist() == [[row, 1] for row in range(5)]
    np.testing.assert_array_equal(other.mask, person.mask)
    ids = np.full(size, 7, np.int32)
    ids[0, :3], ids[3:, 3:], ids[5, 0] = 26001, 24000, 1000
    saved(tmp_path / "x_instanceIds.png", ids.astype(np.uint16))
    found = read_instances(str(tmp_path / "x_instanceIds.png"), size, tree)
    assert [(each.name, int(each.mask.sum())) for each in found] == [("person 1", 15), ("car 2", 3)]


BAD = {
    "three colours": (["--area", "{three}:human"], "at most two colours, got 3"),
    "empty mask": (["--area", "{black}:human"], "at least one pixel"),
    "other size": (["--area", "{small}:human"], "the size of the image"),
    "unknown label": (["--area", "{white}:nobody"], "nobody"),
    "no label": (["--area", "{white}"], "FILE:LABEL"),
    "missing file": (["--area", "nowhere.png:human"], "nowhere.png"),
    "polygon of two": (["--area", "{line}:human"], "three corners"),
    "polygon in words": (["--area", "{words}:human"], "corners of a polygon"),
    "unknown objects": (["--objects", "nobody"], "nobody"),
    "least area alone": (["--least-area", "5"], "--objects"),
    "least area of nothing": (["--objects", "--least-area", "0"], "least"),
    "no instances": (["--instances", "{black}:human"], "objects must be 1..10,000, got 0"),
    "instances of nobody": (["--instances", "{white}:nobody"], "nobody"),
    "instances without label": (["--instances", "{white}"], "instanceIds"),
    "not coco": (["--instances", "{words}"], "COCO JSON"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_regions_are_one_sentence_and_nothing_is_written(
    what: str, scene: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = np.zeros((*SIZE, 3), np.uint8)
    three[5], three[6] = 200, 100
    white = np.full(SIZE, 255, np.uint8)
    files = {
        "three": saved(scene.parent / "three.png", three),
        "black": saved(scene.parent / "black.png", 0 * white),
        "white": saved(scene.parent / "white.png", white),
        "small": saved(scene.parent / "small.png", white[:9]),
        "line": scene.parent / "line.json",
        "words": scene.parent / "words.json",
    }
    files["line"].write_text("[[1, 2], [3, 4]]")
    files["words"].write_text('["a"]')
    options, message = BAD[what]
    filled = [option.format(**files) for option in options]
    out = scene.parent / "out"
    assert run("certify", scene, "--model", "synthetic", "--out", out, *filled) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert said.count("\n") == 0
    assert not out.exists()


def test_plan_knows_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "--measures", 1, "--json", "-n", 100) == 0
    assert json.loads(capsys.readouterr().out)[0]["least_n"] == 25
    assert run("plan", "--measures", 20, "--test", "anytime", "-n", 100) == 0
    text = capsys.readouterr().out
    assert "20 measures bounded together" in text
    assert "least n that can certify anything: 43" in text
    assert run("plan", "--measures", 0) == 2
