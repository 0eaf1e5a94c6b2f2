"""Signals at random moments: the run ends at once, nothing is half, and a resumed run has the same bytes.

`make faults` sends fifty of each; here a few.
"""

import os
import signal

import pytest

from tests.faults.killing import torment
from tests.faults.scene import ROOT
from tests.faults.zygote import Zygote

TIMES = int(os.environ.get("FAULTS", "2"))


@pytest.fixture(scope="module")
def zygote(scene):
    started = Zygote(scene, ROOT)
    yield started
    started.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.timeout(3000)
def test_a_run_survives_signals_at_random_moments(number, zygote, whole):
    outcome = torment(zygote, number, TIMES, whole=whole)
    assert outcome.ended == TIMES
    assert outcome.finished >= 1
    print(f"{number.name}: ended {outcome.ended} times, finished {outcome.finished} times with the same bytes")
