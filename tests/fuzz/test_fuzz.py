"""A share of the campaign of `make fuzz`, and the proof that its checks can fail."""

import os

import pytest

from tests.fuzz.base import make_base
from tests.fuzz.campaign import Worker, run_cases, summary
from tests.fuzz.cases import Case, cases, every_kind

COUNT = 10
"""Of each kind."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The intact files, and a place to work in."""
    return make_base(tmp_path_factory.mktemp("base")), tmp_path_factory.mktemp("scratch")


def test_no_hostile_input_gets_through(folders):
    answers = list(run_cases(*folders, cases(COUNT * len(every_kind()))))
    wrong = [(answer["case"], answer["command"], answer["wrong"]) for answer in answers if answer["wrong"]]
    assert not wrong
    assert len(answers) == COUNT * len(every_kind())
    assert len(summary(answers)) == len(every_kind()) + 1
    assert {0, 1, 2} <= {answer["code"] for answer in answers} <= {0, 1, 2, 3}


def test_a_case_is_a_function_of_its_name(folders, tmp_path):
    commands = []
    for place in (tmp_path / "one", tmp_path / "two"):
        commands.append(Case("image", 7).build(folders[0], place))
    assert commands[0] == commands[1]
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [(tmp_path / "one" / n).read_bytes() for n in names if (tmp_path / "one" / n).is_file()] == [
        (tmp_path / "two" / n).read_bytes() for n in names if (tmp_path / "two" / n).is_file()
    ]


@pytest.mark.parametrize(
    ("code", "text", "fault"),
    [
        (5, "", "exit code 5"),
        (2, "", "instead of one sentence"),
        (2, "one\ntwo\n", "instead of one sentence"),
        (1, "Traceback (most recent call last):\n", "traceback"),
    ],
)
def test_what_is_printed_is_judged(code, text, fault):
    from tests.fuzz.worker import _message_faults

    assert fault in _message_faults(code, text)[0]
    assert _message_faults(2, "note: a remark\ncertiseg certify: error: one sentence\n") == []


def test_files_are_judged(tmp_path):
    from tests.fuzz.worker import _changed, _files, _half_files

    out = tmp_path / "case/out"
    out.mkdir(parents=True)
    before = _files(tmp_path)
    (out / "half.json").write_text("{")
    (out / "half.png").write_bytes(b"\x89PNG")
    (out / ".x.part").touch()
    (tmp_path / "owned").touch()
    assert _changed(before, _files(tmp_path), tmp_path / "case") == [str(tmp_path / "owned")]
    assert sorted(text.split()[0] for text in _half_files(out, 2)) == ["half", "half", "left"]


def test_a_worker_that_dies_is_a_finding(folders):
    worker = Worker(*folders)
    os.kill(worker.process.pid, 9)
    worker.process.wait()
    answer = worker.ask(Case("hierarchy", 0))
    assert "died" in answer["wrong"][0]
