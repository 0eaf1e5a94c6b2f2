"""The list of mutants cannot rot: every edit still applies, and the documents are about this list."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import certiseg
from tests.mutation.mutants import MUTANTS
from tests.mutation.reference import changes
from tests.mutation.table import effect

SOURCE = Path(certiseg.__file__).parent
TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = TESTS.parent / "docs/mutants.md"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_edit_still_applies(mutant):
    text = (SOURCE / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} must hold the text once: {mutant.old}"
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert mutant.old != mutant.new
    for name in mutant.tests:
        assert (TESTS / name).is_file(), name


def test_there_are_enough_and_everywhere():
    assert len(MUTANTS) >= 40
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert max(Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS).values()) == 1
    files = {mutant.file for mutant in MUTANTS}
    assert files >= {
        *("stats/binomial.py", "stats/correction.py", "stats/nested.py", "stats/anytime.py", "stats/radius.py"),
        *("noise/stream.py", "noise/gaussian.py", "noise/grid.py", "kernels/noise.py", "votes.py", "partial_votes.py"),
        *("sampling.py", "chains.py", "certify.py", "kernels/hits.py", "kernels/counts.py", "kernels/scores.py"),
        *("stats/order.py", "stats/conformal.py", "bounds.py", "measures/record.py", "measures/measure.py"),
        *("threats/base.py", "threats/anchors.py", "noise/along_threat.py", "truth/calibrate.py", "hierarchy.py"),
    }


@pytest.mark.skipif(not DOCUMENT.is_file(), reason="docs/mutants.md is written by make mutants")
def test_the_document_tells_of_this_list_and_of_no_survivor():
    text = DOCUMENT.read_text("utf-8")
    assert f"{len(MUTANTS)} mutants, {len(MUTANTS)} killed." in text
    for mutant in MUTANTS:
        assert f"| {mutant.name} | `{mutant.file}` |" in text


def test_changes_are_counted_in_pixels():
    before = {"map": np.zeros((2, 3, 2)), "text": "a", "same": np.ones(3)}
    after = {"map": np.zeros((2, 3, 2)), "text": "b", "same": np.ones(3)}
    after["map"][1, 2, 0] = 1
    assert changes(before, after) == {"map": "1 pixels", "text": "b"}
    assert changes(before, {**before, "map": "InputError: no"}) == {"map": "InputError: no"}
    assert changes(before, before) == {}
    assert effect({"map": "7 pixels", "other": "9 pixels", "text": "x"}) == "9 pixels of other, and 2 more parts"
    assert effect({}) == "nothing"
