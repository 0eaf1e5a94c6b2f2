"""Tuned thresholds crosswise, set sizes, images by gain, and every piece of a report."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis import set_sizes, thresholds, tuned_comparison
from certiseg.analysis.images import by_gain, image_scores
from certiseg.analysis.pieces import all_pieces, main_methods
from certiseg.render.figures import figure_bytes
from certiseg.render.tree import draw_tree
from certiseg.runs.pooling import ScoredRun

from .conftest import HIERARCHY, METHODS, SETTING, make_run


@pytest.fixture(scope="module")
def found(run):
    return tuned_comparison.compare_with_tuned(ScoredRun(run), thresholds.search_thresholds(run, SETTING))


def scores_with(run, names, function):
    certificates = [
        cs.certify(run.votes(name, SETTING), HIERARCHY, method="adaptive", thresholds=function, tau=0.75, alpha=0.01)
        for name in names
    ]
    return cs.score(certificates, [run.label(name) for name in names])


def test_each_part_is_scored_with_the_best_function_of_the_other(run, found):
    names, functions = run.finished(), thresholds.search_thresholds(run, SETTING).functions[1:]
    halves = (names[:2], names[2:])
    for used, other in zip(found.chosen, halves[::-1], strict=True):
        best = max(scores_with(run, other, function).cig for function in functions[::7])
        assert scores_with(run, other, used).cig >= best - 1e-12
    sums = [scores_with(run, half, used) for half, used in zip(halves, found.chosen, strict=True)]
    pixels = np.array([s.pixels for s in sums])
    expected = (pixels * [s.cig for s in sums]).sum() / pixels.sum()
    assert found.methods[tuned_comparison.TUNED].scores().cig == pytest.approx(expected)
    hindsight = found.methods[tuned_comparison.HINDSIGHT].scores().cig
    assert hindsight == pytest.approx(scores_with(run, names, found.hindsight).cig)
    assert hindsight >= found.methods[tuned_comparison.TUNED].scores().cig


def test_differences_are_those_of_the_scores_and_lie_in_their_intervals(found, monkeypatch):
    monkeypatch.setattr("certiseg.runs.pooling.LEAST_IMAGES", 1)
    for method in ("nested", "sets:3"):
        difference, low, high = found.difference(method, "cig")
        ours, theirs = (found.methods[name].scores().cig for name in (method, tuned_comparison.TUNED))
        assert difference == pytest.approx(ours - theirs)
        assert low <= difference <= high
    assert found.difference(tuned_comparison.TUNED, "cig") == (0, 0, 0)
    classes = found.class_differences("nested")
    assert set(classes) == set(np.flatnonzero(found.methods["nested"].total().pixels))


def test_the_table_names_choices_and_adds_up(found):
    table = tuned_comparison.to_table(found, draws=20)
    assert [row["name"] for row in table.rows][-4:-2] == [
        "Adaptive, tuned on other images",
        "Adaptive, best in hindsight",
    ]
    for row in table.rows:
        assert row["abstain"] + row["accuracy"] + row["wrong"] == pytest.approx(1)
    assert all(thresholds.name_of(f) in table.note for f in (*found.chosen, found.hindsight))


def test_set_sizes_equal_brute_force(run):
    certified, wrong = np.zeros(4, int), np.zeros(4, int)
    for name in run.finished():
        label, certificate = run.label(name), run.certificate(name, SETTING, "sets:3")
        for row, column in np.argwhere(label != 255):
            members = certificate.labels_at(row, column)
            certified[len(members)] += 1
            wrong[len(members)] += bool(members) and HIERARCHY.classes[label[row, column]] not in members
    table = set_sizes.set_size_table(run, "sets:3", SETTING, note="")
    assert [row["size"] for row in table.rows] == ["1 class", "2 classes", "3 classes", "abstained"]
    assert [row["share"] for row in table.rows] == pytest.approx(np.roll(certified, -1) / certified.sum())
    assert [row["wrong"] for row in table.rows[:-1]] == pytest.approx(wrong[1:] / certified.sum())
    scores = ScoredRun(run).sums("sets:3", SETTING).scores()
    assert table.rows[-1]["share"] == pytest.approx(scores.abstain)


def test_images_are_ordered_by_gain(run):
    scores = image_scores(ScoredRun(run), SETTING)
    for image in scores:
        expected = cs.score(run.certificate(image.name, SETTING, "nested"), run.label(image.name))
        assert image.of["nested"]["cig"] == pytest.approx(expected.cig)
        assert image.of["nested"]["abstain"] == pytest.approx(expected.abstain)
        assert image.gain("nested") == image.of["nested"]["cig"] - image.of["segcertify"]["cig"]
    gains = [image.gain("nested") for image in by_gain(scores, "nested")]
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("name", ["camvid", "pascal_context"])
def test_a_drawn_tree_names_every_vertex_once(name):
    from matplotlib.text import Text

    tree = cs.load_hierarchy(name)
    figure = draw_tree(tree)
    shown = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
    assert sorted(shown) == sorted([*tree.vertices, *(f"level {level}" for level in range(tree.num_levels))])
    assert figure_bytes(figure, "svg").startswith(b"<?xml")


def test_every_experiment_is_among_the_pieces_of_a_full_run(run):
    stems = [piece.stem for piece in all_pieces(run, SETTING, draws=10)]
    assert len(stems) == len(set(stems))
    for start in ("scores", "gains", "tuned", "thresholds", "classes", "levels", "sets3-sizes", "boundar"):
        assert any(stem.startswith(start) for stem in stems), start
    for start in ("fluctuations", "tradeoff", "visual-largest", "visual-median", "visual-least", "hierarchy"):
        assert any(stem.startswith(start) for stem in stems), start
    assert main_methods(METHODS) == ["adaptive:0,0.1,0.4", "nested", "sets:3"]


def test_a_run_of_one_flat_method_leaves_out_what_it_has_no_numbers_for(tmp_path):
    run = make_run(tmp_path / "run", methods=("segcertify",), settings=((100, 0.75),))
    stems = [piece.stem for piece in all_pieces(run, SETTING, draws=10)]
    assert "gains" not in stems
    assert not any(stem.startswith(("classes", "visual", "tradeoff", "boundary-example")) for stem in stems)
