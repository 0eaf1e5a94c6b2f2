"""python -m benchmarks: figures beside their aims, in the terminal, as JSON and in a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ONCE, SUITES, process, rounds, table
from benchmarks import __main__ as bench
from benchmarks.measure import Figure, interleaved_ratio
from certiseg.errors import InputError

CURVE = {50 * k: k / 20 for k in range(1, 21)}


def taken(suite: str, slow: float = 1.25, note: str = "torch") -> rounds.Taken:
    figures = [Figure(f"fast {suite}", 123.4, 20, ">=", CURVE), Figure(f"slow {suite}", slow, 1.1, "<=", note=note)]
    return rounds.Taken(suite, "cpu", 2.0, 0.1, [*figures, Figure(f"part {suite}", 2.0, None, ">=")])


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The suites of the processes that were begun; each gives three figures, the slow one 1.0, 1.1, 1.2, ..."""
    begun: list[str] = []

    def fake(suite: str, device: str) -> rounds.Taken:
        begun.append(suite)
        number = begun.count(suite)
        return taken(suite, 0.9 + number / 10, "torch" if number < 3 else "openvino")

    monkeypatch.setattr(rounds, "run_process", fake)
    return begun


def run(folder: Path, *arguments: str) -> int:
    return bench.main([*arguments, "--log", str(folder / "log" / "bench.jsonl")])


def test_every_figure_stands_beside_its_aim_with_its_spread(
    tmp_path: Path, processes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "scaling") == 0
    assert processes == ["scaling"] * 5
    said = capsys.readouterr()
    assert "5/5 scaling: 2 s, others used 0.10 cores" in said.err
    first, fast, *curve, slow, part = said.out.splitlines()
    assert "cores, load" in first
    assert " ".join(fast.split()) == "met 123 >= 20 123 .. 123 fast scaling"
    name = "slow scaling: openvino (3 times), torch (2 times)"
    assert " ".join(slow.split()) == f"MISSED 1.200 <= 1.1 1.000 .. 1.400 {name}"
    assert " ".join(part.split()) == "2.000 2.000 .. 2.000 part scaling"
    hundreds, tenths = [line.split()[1::2] for line in curve]
    assert hundreds == [str(100 * k) for k in range(1, 11)]
    assert tenths == [f"{k / 10:.3f}" for k in range(1, 11)]


def test_rounds_go_over_all_suites_and_what_does_not_scatter_is_taken_once(
    tmp_path: Path, processes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--runs", "2", "--json") == 0
    timed = [suite for suite in SUITES if suite not in ONCE]
    assert processes == [*SUITES, *timed]
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 3 * len(SUITES)
    assert found[1] == {
        **{"name": "slow overhead: torch", "aim": 1.1, "direction": "<=", "met": True},
        **{"median": 1.05, "least": 1.0, "largest": 1.1, "values": [1.0, 1.1]},
    }


def test_a_run_goes_on_from_its_log_and_keeps_to_its_time(
    tmp_path: Path, processes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "scaling", "tune_speed", "--runs", "1") == 0
    with (tmp_path / "log" / "bench.jsonl").open("a") as log:
        log.write('{"suite": "scaling", "dev')  # cut off
    assert run(tmp_path, "scaling", "tune_speed", "--resume", "--minutes", "-1") == 1
    assert "8 processes were not begun; --resume goes on" in capsys.readouterr().err
    assert run(tmp_path, "scaling", "--resume", "--runs", "2", "--json") == 0
    assert processes == ["scaling", "tune_speed", "scaling"]
    assert json.loads(capsys.readouterr().out)[1]["values"] == [1.0, 1.1]
    assert run(tmp_path, "tune_speed", "--runs", "1") == 0
    assert processes[3:] == ["tune_speed"], "without --resume all begins anew"


def test_a_suite_that_fails_does_not_spoil_the_others_and_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(suite: str, device: str) -> rounds.Taken:
        if suite == "scaling":
            raise rounds.SuiteError("InputError: root must be there")
        return taken(suite)

    monkeypatch.setattr(rounds, "run_process", fails)
    assert run(tmp_path, "scaling", "sample_memory") == 1
    said = capsys.readouterr()
    assert said.err.count("scaling: not measured: InputError: root must be there") == 1
    assert "fast sample_memory" in said.out


def test_a_process_of_its_own_tells_its_figures_or_its_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.scaling.measure", lambda: taken("scaling").figures)
    process.main("scaling")
    first = json.loads(capsys.readouterr().out.splitlines()[-1])[0]
    assert Figure(**first) == Figure("fast scaling", 123.4, 20, ">=", {str(k): v for k, v in CURVE.items()})
    with pytest.raises(rounds.SuiteError, match=r"usage: .* SUITE, one of"):
        rounds.run_process("nothing", "cpu")


def test_the_quick_check_fails_where_a_figure_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.quick.measure", lambda: [Figure("slow", 1.25, 1.1, "<=")])
    assert run(tmp_path, "--quick") == 1
    assert "MISSED" in capsys.readouterr().out
    monkeypatch.setattr("benchmarks.quick.measure", lambda: [Figure("slow", 1.05, 1.1, "<=")])
    assert run(tmp_path, "--quick") == 0


@pytest.mark.usefixtures("processes")
def test_the_table_goes_between_the_marks(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text(f"before\n\n{table.BEGIN}\nold\n{table.END}\n\nafter\n")
    for _ in range(2):
        assert run(tmp_path, "scaling", "--runs", "1", "--write", str(document)) == 0
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("| fast scaling | 123 |  | 1 | >= 20 | yes |") == 1
    assert "| slow scaling: torch | 1.100 |  | 1 | <= 1.1 | yes |" in text
    assert "| part scaling | 2.000 |  | 1 |  |  |" in text
    assert "old" not in text
    assert "Other programs used 0.10 cores beside the median process" in text
    assert "\n| 100 | 200 |" in text
    with pytest.raises(InputError, match="must hold the lines"):
        run(tmp_path, "--write", str(tmp_path / "none.md"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "suite must be one of overhead, .*, got 'nothing'"),
        (["--runs", "0"], "runs must be at least 1, got 0"),
        (["--device", "abacus"], "device must be one of this machine, such as cpu or cuda, got 'abacus'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_process(
    tmp_path: Path, processes: list[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        run(tmp_path, *arguments)
    assert not processes


def test_ratios_are_of_medians_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: clock[0])
    slow, fast = iter([100.0, 8.0, 99.0, 6.0]), iter([50.0, 2.0, 2.0, 77.0])

    def takes(seconds: Any) -> Any:
        def run() -> None:
            clock[0] += next(seconds)

        return run

    assert interleaved_ratio(takes(slow), takes(fast), repeats=3) == 8.0 / 2.0
    slow, fast, warm = iter([8.0, 4.0, 6.0]), iter([2.0, 3.0, 4.0]), iter([100.0])
    assert interleaved_ratio(takes(slow), takes(fast), repeats=3, warm=(takes(warm),)) == 6.0 / 3.0


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
