"""python -m benchmarks: figures beside their aims, in the terminal, as JSON and in a document."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import SUITES
from benchmarks import __main__ as bench
from benchmarks.measure import Figure, interleaved_ratio
from certiseg.errors import InputError

CURVE = {50 * k: k / 20 for k in range(1, 21)}
FIGURES = [Figure("fast", 123.4, 20, ">=", CURVE), Figure("slow", 1.25, 1.1, "<=")]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every suite measures the same two figures."""
    found = bench.import_module

    def fake(name: str) -> Any:
        suite = name.partition(".")[2]
        return SimpleNamespace(measure=lambda: FIGURES) if suite in (*SUITES, "quick") else found(name)

    monkeypatch.setattr(bench, "import_module", fake)


def run(*arguments: str) -> int:
    return bench.main(arguments)


@pytest.mark.usefixtures("measured")
def test_every_figure_stands_beside_its_aim(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--only", "scaling") == 0
    first, fast, *curve, slow, last = capsys.readouterr().out.splitlines()
    assert "cores, load" in first
    assert "cores, load" in last
    assert [" ".join(line.split()) for line in (fast, slow)] == ["met 123 >= 20 fast", "MISSED 1.250 <= 1.1 slow"]
    hundreds, tenths = [line.split()[1::2] for line in curve]
    assert hundreds == [str(100 * k) for k in range(1, 11)]
    assert tenths == [f"{k / 10:.3f}" for k in range(1, 11)]
    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 2 * len(SUITES)
    assert found[1] == {"name": "slow", "value": 1.25, "aim": 1.1, "direction": "<=", "curve": None, "met": False}


@pytest.mark.usefixtures("measured")
def test_the_quick_check_fails_where_a_figure_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--quick") == 1
    assert "MISSED" in capsys.readouterr().out


def test_a_suite_that_fails_does_not_spoil_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> list[Figure]:
        raise InputError("root must be there")

    monkeypatch.setattr("benchmarks.scaling.measure", fails)
    monkeypatch.setattr("benchmarks.sample_memory.measure", lambda: FIGURES)
    assert run("--only", "scaling", "sample_memory") == 1
    said = capsys.readouterr()
    assert "scaling: not measured: InputError: root must be there" in said.err
    assert "met" in said.out


@pytest.mark.usefixtures("measured")
def test_the_table_goes_between_the_marks(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text(f"before\n\n{bench.BEGIN}\nold\n{bench.END}\n\nafter\n")
    for _ in range(2):
        assert run("--only", "scaling", "--write", str(document)) == 0
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("| fast | 123 | >= 20 | yes |") == 1
    assert "| slow | 1.250 | <= 1.1 | no |" in text
    assert "old" not in text
    assert "\n| 100 | 200 |" in text
    with pytest.raises(InputError, match="must hold the lines"):
        run("--write", str(tmp_path / "none.md"))


def test_an_unknown_suite_is_refused_and_the_suites_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--only", "nothing")
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_ratios_are_of_medians_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: clock[0])
    slow, fast = iter([100.0, 8.0, 99.0, 6.0]), iter([50.0, 2.0, 2.0, 77.0])

    def takes(seconds: Any) -> Any:
        def run() -> None:
            clock[0] += next(seconds)

        return run

    assert interleaved_ratio(takes(slow), takes(fast), repeats=3) == 8.0 / 2.0


def test_both_comparisons_agree_with_certiseg_on_easy_votes() -> None:
    """The pipelines that are timed must compute what they claim to."""
    import numpy as np
    import torch

    import certiseg as cs
    from benchmarks.pipelines import published, straightforward

    scores = torch.zeros(1, 3, 4, 4)
    scores[:, 1], scores[:, 2, :2] = 5.0, 9.0
    pixels = np.zeros((16, 16, 3), np.float32)
    votes = cs.sample(cs.Segmenter(lambda images: scores), pixels, sigma=0.25, n0=3, n=60)
    expected = cs.certify(votes, method="segcertify").vertex
    assert set(np.unique(expected)) == {1, 2}
    np.testing.assert_array_equal(straightforward(lambda images: scores, pixels, sigma=0.25, n0=3, n=60), expected)
    full = torch.nn.functional.interpolate(scores, size=(16, 16), mode="bilinear").repeat(63, 1, 1, 1)
    np.testing.assert_array_equal(published(full, n0=3), expected)
    np.testing.assert_array_equal(published(full[:8], n0=3), np.full((16, 16), -1))
