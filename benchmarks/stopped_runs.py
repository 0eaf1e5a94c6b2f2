"""Forward passes that `evaluate --stop-undecided` spares on CamVid, and the certified pixels that it keeps.

python -m benchmarks.stopped_runs [--images 30] [--share 0.02] [--out runs/stopped] [--root ../shared/data/camvid]

Two runs of `nested`, one with n = 1000 and the fixed test, one that stops; both are resumable, and figures are read
from their files. The images are every third one of the test split from the second on; the share was chosen on others.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import certiseg as cs
from benchmarks.measure import Figure, machine
from benchmarks.table import line, rows_of
from certiseg.datasets import Dataset, open_dataset
from certiseg.runs.run import Run

ROOT = Path(__file__).parents[2] / "shared/data/camvid"
MOST, TAU, FIRST, EVERY = 1000, 0.75, 1, 3
TUNING = (0, 40, 80)


def runs(samples: Dataset, out: Path, *, share: float, backend: str) -> tuple[Run, Run]:
    """The run of a fixed n and the one that stops, brought to their ends."""
    common: dict[str, Any] = {"methods": ("nested",), "sigma": 0.25, "model": "compact", "backend": backend}
    fixed = cs.evaluate(samples, out=out / "fixed", setting=f"{MOST}:{TAU}", **common)
    stopped = cs.evaluate(samples, out=out / f"share{share:g}", stop_undecided=share, n_max=MOST, **common)
    return fixed, stopped


def figures(fixed: Run, stopped: Run) -> list[Figure]:
    """Passes over those of n = 1000, and what is kept of its certified pixels."""
    totals = np.zeros(3)
    passes = {run: sum(run.folder.drawn(image.name) + 1 for image in run) for run in (fixed, stopped)}
    by_image = {}
    for image in stopped:
        all_draws, now = fixed.certificate(image.name), image.certificate()
        kept = ~now.abstained & ~all_draws.abstained
        totals += (~all_draws.abstained).sum(), kept.sum(), (now.level <= all_draws.level)[kept].sum()
        by_image[image.name] = stopped.folder.draws(image.name)[0.25]
    share = stopped.manifest.stop_undecided
    name = f"evaluate, {len(stopped)} CamVid images, nested, stopped at {share:g} undecided"
    draws = sorted(by_image.values())
    note = f"{np.mean(draws):.0f} draws on average, {draws[0]} to {draws[-1]}"
    return [
        Figure(f"{name}: passes over n = {MOST}", passes[stopped] / passes[fixed], 0.25, "<=", note=note),
        Figure(f"{name}: certified pixels kept", totals[1] / totals[0], 0.97, ">="),
        Figure(f"{name}: of those at the same or a finer level", totals[2] / totals[1], None, ">="),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopped_runs", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=30, metavar="N")
    parser.add_argument("--share", type=float, default=0.02, help="of undecided pixels (default: 0.02)")
    parser.add_argument("--backend", default="openvino", help="of both runs (default: openvino)")
    parser.add_argument("--out", type=Path, default=Path("runs/stopped"), metavar="DIR", help="where the runs are kept")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="CamVid")
    parser.add_argument("--tuning", action="store_true", help="those on which the share was chosen")
    args = parser.parse_args(arguments)
    samples = open_dataset("camvid", args.root, split="test")
    others = [place for place in range(FIRST, len(samples), EVERY) if place not in TUNING]
    chosen = list(TUNING) if args.tuning else others[: args.images]
    print(machine())
    found = figures(*runs(samples.subset(chosen), args.out, share=args.share, backend=args.backend))
    print("\n".join(line(row) for row in rows_of(found)))


if __name__ == "__main__":
    main()
