"""What a run tells: rates of this start only, a line every few seconds off a terminal, JSON on request."""

import io
import json

import pytest

from certiseg.runs import progress
from certiseg.runs.progress import Bar, LogLines, Progress, progress_on


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on when it is told to."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def resumed(told, clock):
    """Ten images of a hundred draws, nine of them found; half of the last is drawn in 36 seconds."""
    told.begin(10, 1000)
    for _ in range(9):
        told.found(100, images=1)
    clock.now += 36
    told.drew(50)
    return told


def test_rate_and_time_left_are_those_of_this_start(clock):
    told = resumed(Progress(), clock)
    assert told.seconds_left == 36
    assert told.images_per_hour == 0
    told.drew(50)
    told.finished({})
    assert told.images_per_hour == 100
    assert told.seconds_left == 0


def test_the_bar_of_a_resumed_run_does_not_count_what_it_found_as_speed(clock):
    bar = resumed(Bar("camvid", io.StringIO()), clock).bar
    assert (bar.n, bar.total, bar.initial) == (950, 1000, 900)


def test_an_image_that_is_left_out_is_not_waited_for(clock):
    told = resumed(Progress(), clock)
    told.leave_out("j", "broken", unmade=50)
    assert (told.draws, told.seconds_left, told.left_out) == (950, 0, {"j": "broken"})


def test_lines_come_every_few_seconds_and_say_how_far_it_is(clock):
    stream = io.StringIO()
    told = LogLines("camvid", stream)
    told.begin(10, 1000)
    told.found(500, images=5)
    assert stream.getvalue() == ""
    for _ in range(100):
        clock.now += 1
        told.drew(2)
    lines = stream.getvalue().splitlines()
    assert 15 <= len(lines) <= 25
    assert lines[-1] == "camvid: 5 of 10 images, 0 images/h, 0:02:30 left, 0 left out"
    told.finished({})
    told.close()
    assert stream.getvalue().splitlines()[-1] == "camvid: 6 of 10 images, 36 images/h, 0:02:30 left, 0 left out"


def test_json_lines_hold_the_same(clock):
    stream = io.StringIO()
    told = resumed(LogLines("camvid", stream, "json"), clock)
    told.note("a worker was lost")
    told.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {"event": "note", "text": "a worker was lost"} in lines
    assert lines[-1] == {
        "event": "progress",
        "run": "camvid",
        "images_done": 9,
        "images": 10,
        "draws_done": 950,
        "draws": 1000,
        "images_per_hour": 0.0,
        "left_out": 0,
        "seconds_left": 36,
    }


def test_reading_many_images_is_told_too(clock):
    stream = io.StringIO()
    told = LogLines("camvid", stream)
    for done in range(1, 101):
        clock.now += 0.1
        told.read(done, 100)
    assert stream.getvalue().splitlines()[0] == "camvid: reading images, 50 of 100"


def test_a_run_that_never_began_tells_nothing():
    stream = io.StringIO()
    LogLines("camvid", stream).close()
    assert stream.getvalue() == ""


def test_a_bar_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(progress_on("a"), Bar)
    assert isinstance(progress_on("a", "json"), LogLines)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(progress_on("a"), LogLines)
