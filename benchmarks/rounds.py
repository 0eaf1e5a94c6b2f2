"""Rounds: every suite once in a process of its own, then all of them again. A log keeps what was taken.

So the runs of one ratio lie minutes apart, and whatever disturbs the machine for a while disturbs one of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import ONCE
from benchmarks.measure import DEVICE_VARIABLE, Figure

_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Taken:
    """What one process measured, and what it cost."""

    suite: str
    device: str
    seconds: float
    others: float
    """Cores that were busy with something else meanwhile, on average."""
    figures: list[Figure]


class SuiteError(Exception):
    """A suite could not be measured."""


def planned(suites: Sequence[str], runs: int, done: Sequence[Taken] = ()) -> list[str]:
    """The suites in the order of their processes, without those that were done before."""
    left = Counter(taken.suite for taken in done)
    order = []
    for number in range(runs):
        for suite in suites:
            if number and suite in ONCE:
                continue
            if left[suite]:
                left[suite] -= 1
            else:
                order.append(suite)
    return order


def run_process(suite: str, device: str) -> Taken:
    """Measure a suite in a process of its own."""
    busy, started = _busy_seconds(), time.monotonic()
    own = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.process", suite],
        capture_output=True,
        text=True,
        cwd=_CHECKOUT,
        env=os.environ | {DEVICE_VARIABLE: device},
        check=False,
    )
    seconds, after = time.monotonic() - started, os.times()
    if done.returncode:
        raise SuiteError((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    ours = after.children_user + after.children_system - own.children_user - own.children_system
    others = max(0.0, _busy_seconds() - busy - ours) / seconds
    return Taken(suite, device, seconds, others, [Figure(**of) for of in json.loads(done.stdout.splitlines()[-1])])


def _busy_seconds() -> float:
    """Processor seconds that all processes of the machine have used, those stolen by other machines included."""
    import psutil

    spent = psutil.cpu_times()
    return float(sum(spent) - spent.idle - getattr(spent, "iowait", 0.0) - getattr(spent, "guest", 0.0))


def read_log(path: Path, device: str, suites: Sequence[str]) -> list[Taken]:
    """What a log holds of these suites on this device; a last line that was cut off is left out."""
    found = []
    for line in path.read_text("utf-8").splitlines() if path.is_file() else []:
        try:
            stored = json.loads(line)
            stored["figures"] = [Figure(**of) for of in stored["figures"]]
            found.append(Taken(**stored))
        except (ValueError, TypeError, KeyError):
            continue
    return [taken for taken in found if taken.device == device and taken.suite in suites]


def measured(order: Sequence[str], device: str, log: Path, *, minutes: float) -> Iterator[Taken | SuiteError]:
    """Run the processes one after the other, each into the log; none begins after so many minutes.

    A suite that fails once is not tried again: its error is told instead.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started, failed = time.monotonic(), set()
    for suite in order:
        if suite in failed:
            continue
        if time.monotonic() - started > 60 * minutes:
            return
        try:
            taken = run_process(suite, device)
        except SuiteError as error:
            failed.add(suite)
            yield SuiteError(f"{suite}: not measured: {error}")
            continue
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(taken)) + "\n")
        yield taken
