"""Memory of the process that drives a run, as the number of images grows: it must not grow with them.

python -m benchmarks.driver_memory [--images 1000]

Small streets (64x64), two workers, a tiny network. The last line is after the table was written.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from typing import Any

import psutil
import torch

import certiseg as cs
from benchmarks.engine_overhead import manifest_of
from certiseg.datasets.streets import Streets
from certiseg.engines.processes import Processes
from certiseg.runs.evaluate import Progress, evaluate_dataset
from certiseg.runs.folder import RunFolder


def build(number: int) -> cs.Segmenter:
    """A network so small that the driver has much to do."""
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 31, 1)
    names = cs.load_hierarchy("camvid").classes
    return cs.Segmenter(torch.nn.Sequential(*layers), class_names=names, name="tiny")


def resident() -> float:
    """Megabytes of this process in memory."""
    return psutil.Process().memory_info().rss / 2**20


def measure(images: int) -> list[tuple[int, float]]:
    """(images done, resident megabytes) ten times on the way, and after the end."""
    samples = Streets(images, height=64, width=64)
    names = tuple(f"street_{index:05d}" for index in range(images))
    manifest = replace(manifest_of(names, 60), model="tiny", model_sha256=build(0).fingerprint(), n0=5)
    found: list[tuple[int, float]] = []
    done = 0

    def image(name: str, _: Any) -> None:
        nonlocal done
        done += 1
        if done % max(images // 10, 1) == 0:
            found.append((done, resident()))

    engine = Processes(build, manifest, workers=2)
    with tempfile.TemporaryDirectory() as place:
        left_out = evaluate_dataset(RunFolder(place), manifest, samples, engine=engine, progress=Progress(image=image))
    engine.close()
    assert not left_out
    return [*found, (images, resident())]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.driver_memory", description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    for done, megabytes in measure(parser.parse_args().images):
        print(f"{done:6d} images done: {megabytes:7.1f} MB resident")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
