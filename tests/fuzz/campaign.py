"""A campaign: cases handed to a worker process, which is watched and replaced when it dies or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.cases import Case

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0
"""Seconds of the clock for one answer, the start of a worker included."""


class Worker:
    """One worker process."""

    def __init__(self, base: Path, scratch: Path) -> None:
        paths = [str(ROOT), str(ROOT / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the worker
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", str(base), str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            env=environment,
            cwd=scratch,
        )

    def ask(self, case: Case) -> dict[str, Any]:
        """The answer to one case; a worker that died or hung is an answer, too."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # a worker that died before the question gives no answer
            self.process.stdin.write(f"{case}\n")
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        what = "died" if ready else "hung"
        self.process.kill()
        self.process.wait()
        self.complaints.seek(0)
        last = self.complaints.read()[-600:]
        self.close()
        return {"case": str(case), "command": [], "code": -2, "wrong": [f"the process {what}: {last}"], "seconds": 0}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.complaints):
            with contextlib.suppress(OSError):  # what was written to a dead worker cannot be flushed
                file.close()


def run_cases(base: Path, scratch: Path, chosen: list[Case]) -> Iterator[dict[str, Any]]:
    """The answer to each case."""
    worker = Worker(base, scratch)
    try:
        for case in chosen:
            answer = worker.ask(case)
            if answer["code"] == -2:
                worker = Worker(base, scratch)
            yield answer
    finally:
        worker.close()


def summary(answers: list[dict[str, Any]]) -> list[str]:
    """How many cases of each kind ended how."""
    kinds = sorted({answer["case"].rpartition(":")[0] for answer in answers})
    lines = [f"{'kind':<14}{'cases':>6}{'fine':>6}{'failed':>8}{'refused':>9}{'wrong':>7}{'slowest':>9}"]
    for name in kinds:
        own = [answer for answer in answers if answer["case"].rpartition(":")[0] == name]
        codes = Counter(answer["code"] for answer in own if not answer["wrong"])
        wrong = sum(bool(answer["wrong"]) for answer in own)
        slowest = max(answer["seconds"] for answer in own)
        lines.append(f"{name:<14}{len(own):>6}{codes[0]:>6}{codes[1]:>8}{codes[2]:>9}{wrong:>7}{slowest:>8.1f}s")
    return lines
