"""A 6000x4000 image through windows of 720x960 beside the whole image at once: time per draw, and memory.

Each way runs in a process of its own, which prints the seconds per draw and the most memory above what it had before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import Figure

HEIGHT, WIDTH, WINDOW = 4000, 6000, (720, 960)
DRAWS = 1


def measure() -> list[Figure]:
    """Windows over no windows."""
    windows, whole = (_run(way) for way in ("windows", "whole"))
    return [
        Figure("memory of a draw of 6000x4000, windows of 720x960 over none", windows[1] / whole[1], 0.5, "<="),
        Figure("time of a draw of 6000x4000, windows of 720x960 over none", windows[0] / whole[0], 1.4, "<="),
    ]


def _run(way: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.window_cost", way]
    seconds, memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, memory


def _draws(way: str) -> tuple[float, int]:
    import torch

    import certiseg as cs

    model = cs.load_model("compact", window=WINDOW if way == "windows" else None)
    model(torch.rand(1, 3, 96, 96)).labels()  # what is loaded and compiled once
    image = torch.rand(1, 3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before, started = _memory("VmRSS"), time.perf_counter()
    for _ in range(DRAWS):
        model(image).labels()
    return (time.perf_counter() - started) / DRAWS, _memory("VmHWM") - before


def _memory(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field))


if __name__ == "__main__":
    print(json.dumps(_draws(sys.argv[1])))
