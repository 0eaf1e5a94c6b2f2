"""certiseg hierarchy: what people see, and what they hear when a file is wrong."""

import json

import pytest
from PIL import Image

from certiseg.cli import main
from certiseg.hierarchy import PRESETS, load_hierarchy

TREE = """\
name: tiny
classes: [road, car, bus, tree]
levels:
  1:
    vehicle: [car, bus]
  2:
    obstacle: [vehicle, tree]
"""

BROKEN = {
    "unknown child": (TREE.replace("car, bus]\n  2", "car, tram]\n  2"), "tram"),
    "repeated class": (TREE.replace("road, car", "car, car"), "car"),
    "two parents": (TREE + "    other: [tree]\n", "tree"),
    "child not below": (TREE.replace("vehicle: [car, bus]", "vehicle: [car, bus, obstacle]"), "obstacle"),
    "vertex without leaf": (TREE.replace("[vehicle, tree]", "[]"), "obstacle"),
    "name used before": (TREE.replace("obstacle:", "car:"), "car"),
    "gap in the levels": (TREE.replace("  2:", "  3:"), "levels"),
    "not YAML": ("classes: [a, b", "YAML"),
    "a list": ("- a\n- b\n", "mapping"),
    "yes is not a name": ("classes: [yes, no]\n", "quote"),
    "a key twice": (TREE.replace("  2:", "  1:"), "twice"),
    "unknown key": (TREE + "colour: red\n", "colour"),
    "thresholds fall": (TREE + "thresholds: [0.5, 0.1]\n", "thresholds"),
    "too many thresholds": (TREE + "thresholds: [0, 0.1, 0.2]\n", "thresholds"),
}


@pytest.mark.parametrize("name", PRESETS)
def test_show_prints_every_vertex_once(name, capsys):
    assert main(["hierarchy", "show", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.lstrip("│ ├└─").split("  [")[0] for line in lines[1:]]
    assert sorted(names) == sorted(load_hierarchy(name).vertices)


def test_show_draws_a_picture_and_json(tmp_path, capsys):
    target = tmp_path / "tree.png"
    assert main(["hierarchy", "show", "cityscapes", "--png", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"][0] == "road"
    with Image.open(target) as picture:
        colours = len(picture.getcolors(maxcolors=1 << 20))
    assert colours > len(load_hierarchy("cityscapes").vertices)


def test_check_accepts_a_good_file_and_compares_the_class_count(tmp_path, capsys):
    file = tmp_path / "tiny.yaml"
    file.write_text(TREE)
    assert main(["hierarchy", "check", str(file), "--classes", "4"]) == 0
    assert "4 classes in 3 levels" in capsys.readouterr().out
    assert main(["hierarchy", "check", str(file), "--classes", "5"]) == 2
    assert "5 classes" in capsys.readouterr().err


@pytest.mark.parametrize("what", BROKEN)
def test_check_names_file_and_key_in_one_sentence(what, tmp_path, capsys):
    text, key = BROKEN[what]
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    assert main(["hierarchy", "check", str(file)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "broken.yaml" in message
    assert key in message


def test_new_makes_a_file_that_loads_and_never_overwrites(tmp_path, capsys):
    classes = tmp_path / "classes.txt"
    classes.write_text("road\ncar\n\nyes\n")
    target = tmp_path / "mine.yaml"
    assert main(["hierarchy", "new", str(classes), "--out", str(target)]) == 0
    assert load_hierarchy(target).classes == ("road", "car", "yes")
    assert main(["hierarchy", "new", str(classes), "--out", str(target)]) == 2
    assert "there already" in capsys.readouterr().err
    assert main(["hierarchy", "new", str(classes)]) == 0
    assert "classes:" in capsys.readouterr().out
    assert main(["hierarchy", "new", str(tmp_path / "none.txt")]) == 2
