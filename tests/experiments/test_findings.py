"""Sentences that follow from comparisons with tuned thresholds."""

import pytest

from certiseg.analysis import thresholds
from certiseg.analysis.tuned_comparison import HINDSIGHT, TUNED, compare_with_tuned
from certiseg.runs.pooling import ScoredRun
from certiseg.runs.settings import Setting
from experiments import findings
from tests.analysis.conftest import HIERARCHY, SETTING, make_run


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("findings") / "run")
    return compare_with_tuned(ScoredRun(run), thresholds.search_thresholds(run, SETTING))


class Fixed:
    """A comparison with given differences."""

    def __init__(self, setting, difference, hindsight=0.01):
        self.setting, self.values = setting, {TUNED: difference, HINDSIGHT: (hindsight, 0, 0)}

    def difference(self, method, score, *, against=TUNED):
        return self.values.get(against, (-0.02, -0.03, -0.01))


def test_sentences_follow_from_the_numbers():
    first, second, third = (Setting(sigma, 100, 0.75) for sigma in (0.1, 0.2, 0.3))
    above, below = Fixed(first, (0.05, 0.04, 0.06)), Fixed(second, (-0.03, -0.04, -0.02), hindsight=-0.04)
    unclear = Fixed(third, (0.01, -0.01, 0.03))
    text = " ".join(findings.over_settings([above, below, unclear], "nested"))
    assert "higher CIG than adaptive with tuned thresholds at 1 of 3 settings, by 0.050." in text
    assert (
        "lower CIG than adaptive with tuned thresholds at 1 of 3 settings (sigma = 0.2, n = 100, tau = 0.75), by 0.030"
        in text
    )
    assert "sigma = 0.3, n = 100, tau = 0.75) the interval" in text
    assert findings.over_settings([above, Fixed(second, (0.05, 0.04, 0.06))], "sets", "ccig") == [
        "Sets has the higher CIG averaged over classes than adaptive with tuned thresholds at every setting, by 0.050."
    ]
    few = Fixed(second, (-0.03, float("nan"), float("nan")))
    assert findings.over_settings([above, few], "nested")[1:] == [
        "At 1 of 2 settings, of too few images for an interval, the CIG of Nested less that of adaptive with tuned "
        "thresholds is -0.030."
    ]
    assert findings.over_settings([above], "sets", against="nested") == [
        "Sets has the lower CIG than Nested at the setting (sigma = 0.1, n = 100, tau = 0.75), by 0.020."
    ]
    assert "at every setting" in findings.against_hindsight([above, unclear], "nested")
    assert "at 1 of 2 settings; it is not at sigma = 0.2" in findings.against_hindsight([above, below], "nested")


def test_sentences_on_price_and_classes_hold_for_a_run(found):
    text = findings.price(found, "nested")
    scores = found.methods["nested"].scores()
    assert f"abstains from {scores.abstain:.1%}" in text
    wrong, their = (1 - s.abstain - s.accuracy for s in (scores, found.methods[TUNED].scores()))
    assert f"that is {'more' if wrong > their else 'fewer'}." in text
    differences = found.class_differences("sets:3")
    text = findings.by_class(found, "sets:3", HIERARCHY.classes)
    assert f"in {sum(d > 0.0005 for d in differences.values())} of {len(differences)} classes" in text
    worst = min(differences, key=differences.get)
    assert (HIERARCHY.classes[worst] in text) == (differences[worst] < -0.0005)
    table = findings.difference_table([found], ["nested"], [4])
    assert table.rows[0]["nested"] == found.difference("nested", "cig")[0]
