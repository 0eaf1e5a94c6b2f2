"""Runs that are ended by signals at random moments, resumed, and compared with one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.faults.scene import assert_nothing_half, evaluate, hashes
from tests.faults.zygote import Zygote

ENDINGS = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15, 143), signal.SIGINT: (130,)}
"""Exit codes of a run that was ended by a signal; 0 where it was done first."""


@dataclass
class Outcome:
    """What became of the runs."""

    ended: int = 0
    """Ended by the signal."""
    finished: int = 0
    """Done before it came, or resumed to the end, each time with the bytes of the undisturbed run."""


def torment(zygote: Zygote, number: signal.Signals, times: int, *, whole: dict[str, str]) -> Outcome:
    """Send a signal `times` times at random moments of a run, which is resumed each time."""
    chooser, outcome, folder, scene = random.Random(f"{number}{times}"), Outcome(), 0, zygote.scene
    duration = _duration(zygote, scene / f"timed{number}")
    while outcome.ended < times:
        out = scene / f"{number.name}-{folder}"
        child = zygote.start(evaluate(out))
        time.sleep(chooser.random() * duration)
        try:
            os.kill(child, number)
        except ProcessLookupError:  # done already: runs have become quicker
            duration *= 0.9
        code, text = zygote.finish()
        assert code == 0 or code in ENDINGS[number], f"exit code {code}: {text}"
        assert "Traceback" not in text, text
        if out.exists():
            assert_nothing_half(out)
        if code != 0:
            outcome.ended += 1
            continue
        _compare(out, whole)
        outcome.finished, folder = outcome.finished + 1, folder + 1
    zygote.start(evaluate(out))
    code, text = zygote.finish()
    assert code == 0, text
    _compare(out, whole)
    outcome.finished += 1
    return outcome


def _duration(zygote: Zygote, out: Path) -> float:
    """How long an undisturbed run takes now."""
    started = time.monotonic()
    zygote.start(evaluate(out))
    code, text = zygote.finish()
    assert code == 0, text
    return time.monotonic() - started


def _compare(out: Path, whole: dict[str, str]) -> None:
    found = hashes(out)
    different = {name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name)}
    assert not different, f"{out} differs in {sorted(different)[:5]}"
