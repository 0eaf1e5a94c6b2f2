"""Every figure is drawn, the same bytes each time, without the model and without a photograph."""

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from certiseg.analysis import visual
from certiseg.analysis.drawing import method_name, save_figure
from certiseg.analysis.pieces import all_pieces
from certiseg.render.colours import colour_labels
from certiseg.render.figures import figure_bytes

from .conftest import HIERARCHY, METHODS, SETTING

DRAWN = ("levels", "sets3-sizes", "classes", "boundary-example", "fluctuations", "tradeoff", "thresholds", "visual")


@pytest.fixture(scope="module")
def drawn(run):
    return [piece for piece in all_pieces(run, SETTING, draws=10) if piece.draw is not None]


def test_every_figure_is_drawn(drawn):
    for start in DRAWN:
        assert any(piece.stem.startswith(start) for piece in drawn), start
    for piece in drawn:
        with Image.open(io.BytesIO(figure_bytes(piece.draw(), "png"))) as picture:
            assert min(picture.size) > 300
            assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_a_figure_is_saved_with_the_same_bytes_each_time(drawn, tmp_path):
    draw = next(piece.draw for piece in drawn if piece.stem.startswith("classes"))
    first, second = (save_figure(draw(), tmp_path / name) for name in "ab")
    assert [path.suffix for path in first] == [".png", ".svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_visual_panels_show_maps_with_white_abstentions_and_no_photograph(run):
    figure = visual.draw(run, "drive/0", SETTING, methods=METHODS)
    panels = {axes.get_title(): np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images}
    assert len(panels) == 2 + len(METHODS)
    assert next(iter(panels)) == "ground truth"
    certificate = run.certificate("drive/0", SETTING, "segcertify")
    picture = next(p for title, p in panels.items() if title.startswith("SegCertify"))
    assert np.array_equal((picture == 255).all(axis=2), certificate.abstained)
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {HIERARCHY.vertices[v] for v in np.unique(certificate.vertex) if v >= 0} <= named


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
