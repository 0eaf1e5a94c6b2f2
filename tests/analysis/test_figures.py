"""Every figure is written as PNG and SVG, the same bytes each time, without the model and without a photograph."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from certiseg.analysis import boundaries, fluctuations, levels, per_class, tradeoff, visual
from certiseg.analysis.drawing import colour_labels, method_name, save_figure
from certiseg.analysis.pooling import Pools

from .conftest import HIERARCHY, METHODS, SETTING

WRITERS = {
    "levels": lambda run, out: levels.write(run, out, setting=SETTING),
    "classes": lambda run, out: per_class.write(run, out, method="nested", setting=SETTING),
    "boundaries": lambda run, out: boundaries.write(run, out, setting=SETTING, example="drive/0"),
    "fluctuations": lambda run, out: fluctuations.write(run, out, setting=SETTING),
    "tradeoff": lambda run, out: tradeoff.write(run, out, sigma=0.03, tau=0.75),
    "visual": lambda run, out: visual.write(run, out, name="drive/1", setting=SETTING),
}


@pytest.mark.parametrize("name", WRITERS)
def test_figures_and_tables_are_written(run, tmp_path, name):
    paths = WRITERS[name](run, tmp_path)
    endings = {path.suffix for path in paths}
    assert endings >= {".png", ".svg"}
    assert name == "visual" or endings >= {".csv", ".md", ".tex"}
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert min(picture.size) > 300
                assert len(np.unique(np.asarray(picture.convert("L")))) > 10
        elif path.suffix in (".csv", ".md", ".tex"):
            assert "nan" not in path.read_text().lower()


def test_a_figure_has_the_same_bytes_each_time(run, tmp_path):
    deltas = per_class.class_deltas(Pools(run), "nested", SETTING)
    first, second = (save_figure(per_class.draw(deltas), tmp_path / name) for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_visual_panels_show_abstentions_white_and_the_image_only_if_given(run):
    pictures, seen = visual.panels(run, "drive/0", SETTING)
    assert "image" not in pictures
    assert len(pictures) == 2 + len(METHODS)
    certificate = run.certificate("drive/0", SETTING, "segcertify")
    picture = next(p for title, p in pictures.items() if title.startswith("SegCertify"))
    assert np.array_equal((picture == 255).all(axis=2), certificate.abstained)
    assert set(np.unique(certificate.vertex[certificate.vertex >= 0])) <= set(seen)
    photograph = np.zeros((24, 32, 3), np.uint8)
    assert next(iter(visual.panels(run, "drive/0", SETTING, image=photograph)[0])) == "image"


def test_void_is_dark_and_classes_have_their_colours():
    colours = colour_labels(np.array([[0, 255]], np.uint8), HIERARCHY)
    assert colours[0, 1].max() < 80
    assert not np.array_equal(colours[0, 0], colours[0, 1])


def test_methods_have_the_papers_names():
    assert method_name("level:2") == "Non-adaptive-H2"
    assert method_name("adaptive:0,0,0.25") == "Adaptive (0, 0, 0.25)"
    assert method_name("sets:3") == "Sets (up to 3)"
    assert method_name("segcertify") == "SegCertify"


def test_importing_the_analyses_loads_no_matplotlib_and_no_torch():
    modules = "boundaries, fluctuations, grid, levels, per_class, tables, thresholds, tradeoff, visual"
    code = f"import sys; from certiseg.analysis import {modules}; print({{'matplotlib', 'torch'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
