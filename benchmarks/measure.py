"""How figures are taken: interleaved repeats in one process, medians, peak memory of a subprocess."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DEVICE_VARIABLE = "CERTISEG_BENCH_DEVICE"
DEVICE = os.environ.get(DEVICE_VARIABLE, "cpu")
"""Where the models of the suites run."""


@dataclass(frozen=True)
class Figure:
    """One measured number beside its aim, or without one where it only explains another."""

    name: str
    value: float
    aim: float | None
    direction: Literal["<=", ">="]
    curve: Mapping[Any, float] | None = None
    """How the value came about, where one number says too little."""
    note: str = ""
    """What else was found, such as the fastest backend: it may differ from run to run."""


def interleaved(
    *runs: Callable[[], Any], repeats: int = 5, warm: Sequence[Callable[[], Any]] | None = None
) -> list[float]:
    """Median seconds of each run, measured in turns after one warm-up of each, or after shorter ones that are given."""
    for run in runs if warm is None else warm:
        run()
    _settle()
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, taken in zip(runs, times, strict=True):
            started = time.perf_counter()
            run()
            _settle()
            taken.append(time.perf_counter() - started)
    return [statistics.median(taken) for taken in times]


def _settle() -> None:
    """Wait until an accelerator has done what it was asked to."""
    if DEVICE.startswith("cuda"):
        import torch

        torch.cuda.synchronize(DEVICE)


def interleaved_ratio(
    slow: Callable[[], Any],
    fast: Callable[[], Any],
    repeats: int = 5,
    warm: Sequence[Callable[[], Any]] | None = None,
) -> float:
    """Median time of `slow` over median time of `fast`, measured in turns."""
    slow_seconds, fast_seconds = interleaved(slow, fast, repeats=repeats, warm=warm)
    return slow_seconds / fast_seconds


def peak_memory(code: str) -> int:
    """Peak resident bytes of a fresh Python process that runs the code.

    From /proc: what getrusage says of a child begins with the peak of the process that started it.
    """
    program = f"{code}\nprint(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    checkout = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=checkout)
    return int(done.stdout.split()[-1]) * 1024


def machine() -> str:
    """The machine and its load, to be printed above every table."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return f"{_processor()}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
