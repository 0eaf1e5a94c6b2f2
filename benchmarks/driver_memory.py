"""Memory of the process that drives a run, as the number of images grows: it must not grow with them.

python -m benchmarks.driver_memory [--images 1000]

Small streets (64x64), two workers, a tiny network. The last line is after the table was written.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass

import psutil
import torch

import certiseg as cs
from benchmarks.engine_overhead import METHODS
from certiseg.datasets import Dataset, Sample
from certiseg.models.choice import given_model
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes
from certiseg.runs.prepare import make_manifest, scan, with_keys
from certiseg.runs.progress import Progress
from certiseg.runs.settings import EngineSettings, RunSettings
from certiseg.scores import PixelSums
from streets import street

CLASSES = cs.load_hierarchy("camvid").classes


def build(number: int) -> cs.Segmenter:
    """A network so small that the driver has much to do."""
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(8, 31, 1)
    return cs.Segmenter(torch.nn.Sequential(*layers), class_names=CLASSES, name="tiny")


@dataclass(frozen=True)
class SmallStreet:
    """A street of 64x64, drawn when it is read."""

    seed: int

    @property
    def name(self) -> str:
        return f"street_{self.seed:05d}"

    def read(self) -> Sample:
        return Sample(self.name, *street(self.seed, height=64, width=64))


def resident() -> float:
    """Megabytes of this process in memory."""
    return float(psutil.Process().memory_info().rss / 2**20)


class Measured(Progress):
    """Notes the memory ten times on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: list[tuple[int, float]] = []

    def finished(self, name: str, sums: dict[str, PixelSums]) -> None:
        super().finished(name, sums)
        if self.new_images % max(self.images // 10, 1) == 0:
            self.memory.append((self.new_images, resident()))


def measure(images: int) -> list[tuple[int, float]]:
    """(images done, resident megabytes) ten times on the way, and after the end."""
    model, measured = given_model(build(0), "camvid"), Measured()
    samples = Dataset("small streets", [SmallStreet(seed) for seed in range(images)], classes=CLASSES)
    asked = RunSettings(settings=((60, 0.75),), methods=METHODS, n0=5)
    manifest = with_keys(make_manifest(asked, samples, model, threads=1, device="cpu"), scan(samples))
    engine = Processes(build, manifest, EngineSettings(workers=2))
    with tempfile.TemporaryDirectory() as place:
        left_out = evaluate_dataset(RunFolder(place), manifest, samples, engine=engine, progress=measured)
    engine.close()
    assert not left_out
    return [*measured.memory, (images, resident())]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.driver_memory", description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    for done, megabytes in measure(parser.parse_args().images):
        print(f"{done:6d} images done: {megabytes:7.1f} MB resident")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
