"""What the engines cost: the same evaluation by one and two processes, beside bare forward passes as many at a time.

python -m benchmarks.engine_overhead [--images 6] [--n 100] [--rounds 3] [--root ../shared/data/camvid]

Everything is measured in turns in one run, after one image of each, on warm workers with one thread each. The bare
passes are those of the network alone: no noise, no arg max, no votes, no certificates, no files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import operator
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil
import torch

import certiseg as cs
from benchmarks.measure import machine
from certiseg.datasets import open_dataset
from certiseg.models.choice import given_model
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes, ThisProcess
from certiseg.runs.manifest import Manifest
from certiseg.runs.prepare import make_manifest, scan, with_keys
from certiseg.runs.settings import WHOLE, EngineSettings, RunSettings, Shard
from certiseg.runs.task import Engine

METHODS = ("segcertify", "adaptive:0,0,0.25", "nested", "sets")
_sizes: dict[str, float] = {}
"""Bytes that an image takes in a run folder, by kind of file."""


def build(number: int) -> cs.Segmenter:
    return cs.load_model("compact")


def forward_passes(count: int) -> None:
    """So many passes of the network alone, one image at a time."""
    torch.set_num_threads(1)
    network = load_compact()
    images = torch.rand(1, 3, 360, 480).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        for _ in range(count):
            network(images)


@cache
def load_compact() -> Any:
    return cs.load_model("compact").model


@dataclass(frozen=True)
class Cost:
    """What one run took: time on the clock, and of the processors, which other people's load changes less."""

    seconds: float
    processor: float


def processor_seconds() -> float:
    """Of this process and all its workers."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(spent.user + spent.system for spent in times))


def measure(samples: Any, manifest: Manifest, rounds: int) -> dict[str, list[Cost]]:
    """What each kind costs, in turns after a warm-up of each with one image."""
    images = len(manifest.images)
    one, two = (Processes(build, manifest, EngineSettings(workers=workers)) for workers in (1, 2))
    engines = {"in this process": None, "1 worker": one, "2 workers": two}
    costs: dict[str, list[Cost]] = {}
    with multiprocessing.get_context("spawn").Pool(2) as bare:

        def passes(processes: int, images: int) -> None:
            each = images * (manifest.n0 + max(manifest.draws) + 1) // processes
            bare.map(forward_passes, [each] * processes, chunksize=1)

        kinds: dict[str, Callable[[Shard], Any]] = {
            "bare forward passes, 1 process": lambda shard: passes(1, images // shard.count),
            "bare forward passes, 2 processes": lambda shard: passes(2, images // shard.count),
        }
        for name, engine in engines.items():
            kinds[f"evaluate, {name}"] = partial(_evaluate, samples, manifest, engine)
        for turn in range(-1, rounds):
            for name, run in kinds.items():
                started, spent = time.perf_counter(), processor_seconds()
                run(WHOLE if turn >= 0 else Shard(1, images))
                cost = Cost(time.perf_counter() - started, processor_seconds() - spent)
                if turn >= 0:
                    costs.setdefault(name, []).append(cost)
                    print(f"round {turn + 1}: {name}: {cost.seconds:.1f} s", file=sys.stderr, flush=True)
    one.close()
    two.close()
    return costs


def _evaluate(samples: Any, manifest: Manifest, engine: Engine | None, shard: Shard) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        folder = RunFolder(place)
        torch.set_num_threads(1)
        left_out = evaluate_dataset(
            folder, manifest, samples, engine=engine or ThisProcess(build(0), folder), shard=shard
        )
        assert not left_out
        if shard == WHOLE:
            _sizes.update(bytes_per_image(folder))


def bytes_per_image(folder: RunFolder) -> dict[str, float]:
    """Bytes that an image takes in a run folder, by kind of file."""
    images = len(folder.manifest.images)
    kinds = ("votes", "certificates", "predictions", "labels", "rows")
    found = {kind: sum(path.stat().st_size for path in (folder.path / kind).iterdir()) / images for kind in kinds}
    return found | {"table.parquet": folder.table_path.stat().st_size / images}


def tell(what: str, bare_1: float, bare_2: float, here: float, one: float, two: float) -> None:
    """The ratios of one kind of time."""
    print(f"by {what}:")
    print(f"{one / two:8.2f}  evaluate, 1 worker over 2 workers (bare passes: {bare_1 / bare_2:.2f})")
    print(f"{here / bare_1 - 1:8.1%}  of the bare passes: noise, votes, certificates and files, in this process")
    print(
        f"{(one - here) / bare_1:8.1%}  of the bare passes: the engine with 1 worker, beyond the same in this process"
    )
    print(f"{two / bare_2 - one / bare_1:8.1%}  of the bare passes: 2 workers beyond 1, each against as many bare ones")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_overhead", description=__doc__)
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--root", default="../shared/data/camvid", help="CamVid; streets where it is not there")
    args = parser.parse_args()
    real = Path(args.root).is_dir()
    samples = open_dataset("camvid", args.root, split="test") if real else open_dataset("streets", first=args.images)
    step = max(1, len(samples) // args.images)
    samples = samples.subset(list(range(0, len(samples), step))[: args.images])
    asked = RunSettings(settings=((args.n, 0.75),), methods=METHODS)
    manifest = make_manifest(asked, samples, given_model(build(0)), threads=1, device="cpu", split="test")
    manifest = with_keys(manifest, scan(samples))
    print(machine())
    print(f"{args.images} images of {'CamVid' if real else 'streets'}, n0 = 10, n = {args.n}, {args.rounds} rounds")
    costs = measure(samples, manifest, args.rounds)
    for name, taken in costs.items():
        spread = ", ".join(f"{cost.seconds:.1f}" for cost in taken)
        processor = statistics.median(cost.processor for cost in taken)
        print(
            f"{statistics.median(c.seconds for c in taken):8.1f} s {processor:8.1f} s of processors  {name}  ({spread})"
        )
    for what, of in (("time", operator.attrgetter("seconds")), ("processor time", operator.attrgetter("processor"))):
        tell(what, *(statistics.median(of(cost) for cost in taken) for taken in costs.values()))
    print("bytes per image: " + ", ".join(f"{kind} {size:,.0f}" for kind, size in _sizes.items()))
    print(machine())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
