"""Tuned thresholds crosswise, set sizes, images by gain, and the sentences that follow from them."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis import contest, findings, set_sizes, thresholds, trees
from certiseg.analysis.drawing import figure_bytes
from certiseg.analysis.experiments import all_pieces, main_methods
from certiseg.analysis.images import by_gain, image_scores
from certiseg.analysis.pooling import Pools
from certiseg.runs.manifest import Setting

from .conftest import HIERARCHY, METHODS, SETTING, make_run


@pytest.fixture(scope="module")
def found(run):
    return contest.contest(Pools(run), thresholds.search_thresholds(run, SETTING))


def scores_with(run, names, function):
    certificates = [
        cs.certify(run.votes(name, SETTING), HIERARCHY, method="adaptive", thresholds=function, tau=0.75, alpha=0.01)
        for name in names
    ]
    return cs.evaluate(certificates, [run.label(name) for name in names])


def test_each_part_is_scored_with_the_best_function_of_the_other(run, found):
    names, functions = run.finished(), thresholds.search_thresholds(run, SETTING).functions[1:]
    halves = (names[:2], names[2:])
    for used, other in zip(found.chosen, halves[::-1], strict=True):
        best = max(scores_with(run, other, function).cig for function in functions[::7])
        assert scores_with(run, other, used).cig >= best - 1e-12
    sums = [scores_with(run, half, used) for half, used in zip(halves, found.chosen, strict=True)]
    pixels = np.array([s.pixels for s in sums])
    expected = (pixels * [s.cig for s in sums]).sum() / pixels.sum()
    assert found.pools[contest.TUNED].scores().cig == pytest.approx(expected)
    assert found.pools[contest.HINDSIGHT].scores().cig == pytest.approx(scores_with(run, names, found.hindsight).cig)
    assert found.pools[contest.HINDSIGHT].scores().cig >= found.pools[contest.TUNED].scores().cig


def test_differences_are_those_of_the_scores_and_lie_in_their_intervals(found):
    for method in ("nested", "sets:3"):
        difference, low, high = found.difference(method, "cig")
        ours, theirs = (found.pools[name].scores().cig for name in (method, contest.TUNED))
        assert difference == pytest.approx(ours - theirs)
        assert low <= difference <= high
    assert found.difference(contest.TUNED, "cig") == (0, 0, 0)
    classes = found.class_differences("nested")
    assert set(classes) == set(np.flatnonzero(found.pools["nested"].sums().pixels))


def test_the_table_names_choices_and_adds_up(found):
    table = contest.to_table(found, draws=20)
    assert [row["name"] for row in table.rows][-4:-2] == [
        "Adaptive, tuned on other images",
        "Adaptive, best in hindsight",
    ]
    for row in table.rows:
        assert row["abstain"] + row["accuracy"] + row["wrong"] == pytest.approx(1)
    assert all(thresholds.name_of(f) in table.note for f in (*found.chosen, found.hindsight))


class Fixed:
    """A contest with given differences."""

    def __init__(self, setting, difference, hindsight=0.01):
        self.setting, self.values = setting, {contest.TUNED: difference, contest.HINDSIGHT: (hindsight, 0, 0)}

    def difference(self, method, score, *, against=contest.TUNED):
        return self.values.get(against, (-0.02, -0.03, -0.01))


def test_sentences_follow_from_the_numbers():
    first, second, third = (Setting(sigma, 100, 0.75) for sigma in (0.1, 0.2, 0.3))
    above, below = Fixed(first, (0.05, 0.04, 0.06)), Fixed(second, (-0.03, -0.04, -0.02), hindsight=-0.04)
    unclear = Fixed(third, (0.01, -0.01, 0.03))
    text = " ".join(findings.over_settings([above, below, unclear], "nested"))
    assert "higher CIG than adaptive with tuned thresholds at 1 of 3 settings, by 0.050." in text
    assert (
        "lower CIG than adaptive with tuned thresholds at 1 of 3 settings (sigma 0.2, n 100, tau 0.75), by 0.030"
        in text
    )
    assert "sigma 0.3, n 100, tau 0.75) the interval" in text
    assert findings.over_settings([above, above], "sets", "ccig") == [
        "Sets has the higher CIG averaged over classes than adaptive with tuned thresholds at every setting, by 0.050."
    ]
    assert findings.over_settings([above], "sets", against="nested") == [
        "Sets has the lower CIG than Nested at the setting (sigma 0.1, n 100, tau 0.75), by 0.020."
    ]
    assert "at every setting" in findings.against_hindsight([above, unclear], "nested")
    assert "at 1 of 2 settings; it is not at sigma 0.2" in findings.against_hindsight([above, below], "nested")


def test_sentences_on_price_and_classes_hold_for_a_run(found):
    text = findings.price(found, "nested")
    scores = found.pools["nested"].scores()
    assert f"abstains from {scores.abstain:.1%}" in text
    wrong, their = (1 - s.abstain - s.accuracy for s in (scores, found.pools[contest.TUNED].scores()))
    assert f"that is {'more' if wrong > their else 'fewer'}." in text
    differences = found.class_differences("sets:3")
    text = findings.by_class(found, "sets:3", HIERARCHY.classes)
    assert f"in {sum(d > 0.0005 for d in differences.values())} of {len(differences)} classes" in text
    worst = min(differences, key=differences.get)
    assert (HIERARCHY.classes[worst] in text) == (differences[worst] < -0.0005)
    table = findings.difference_table([found], ["nested"], [4])
    assert table.rows[0]["nested"] == found.difference("nested", "cig")[0]


def test_set_sizes_equal_brute_force(run):
    sizes = set_sizes.set_sizes(run, "sets:3", SETTING)
    certified, wrong = np.zeros(4, int), np.zeros(4, int)
    for name in run.finished():
        label, certificate = run.label(name), run.certificate(name, SETTING, "sets:3")
        for row, column in np.argwhere(label != 255):
            members = certificate.labels_at(row, column)
            certified[len(members)] += 1
            wrong[len(members)] += bool(members) and HIERARCHY.classes[label[row, column]] not in members
    assert sizes.certified.tolist() == certified.tolist()
    assert sizes.wrong.tolist() == wrong.tolist()
    assert sizes.shares[:, 0].sum() == pytest.approx(1)
    table = set_sizes.to_table(sizes, note="")
    assert [row["size"] for row in table.rows] == ["1 class", "2 classes", "3 classes", "abstained"]
    scores = Pools(run).pool("sets:3", SETTING).scores()
    assert table.rows[-1]["share"] == pytest.approx(scores.abstain)


def test_images_are_ordered_by_gain(run):
    scores = image_scores(Pools(run), SETTING)
    for image in scores:
        expected = cs.evaluate(run.certificate(image.name, SETTING, "nested"), run.label(image.name))
        assert image.cig["nested"] == pytest.approx(expected.cig)
        assert image.abstain["nested"] == pytest.approx(expected.abstain)
        assert image.gain("nested") == image.cig["nested"] - image.cig["segcertify"]
    gains = [image.gain("nested") for image in by_gain(scores, "nested")]
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("name", ["camvid", "pascal_context"])
def test_a_drawn_tree_names_every_vertex_once(name):
    from matplotlib.text import Text

    tree = cs.load_hierarchy(name)
    figure = trees.draw(tree)
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
