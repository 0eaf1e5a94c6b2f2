"""Small runs for the engines: images, a manifest, and models that fail on demand."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import partial
from pathlib import Path

import torch

import certiseg as cs
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes
from certiseg.runs.merge import merge_runs
from certiseg.runs.prepare import scan, with_keys
from certiseg.runs.settings import EngineSettings, Shard
from tests.runs.test_evaluate import HIERARCHY, CountingModel, Images, hashes, make_manifest

__all__ = ["Images", "build", "hashes", "manifest_of", "plain_run", "sharded_run", "spread_run"]


class Troubled(CountingModel):
    """The same weights as CountingModel, with trouble once for every file that is there: kill or hang."""

    def __init__(self, trouble: Path | None, pause: float) -> None:
        super().__init__()
        self.trouble, self.pause = trouble, pause

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        time.sleep(self.pause)
        if self.trouble is not None and self.calls > 20 and self.take("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble is not None and self.calls > 20 and self.take("hang"):
            time.sleep(3600)
        return super().forward(images)

    def take(self, what: str) -> bool:
        """Whether this process is the one that met the trouble."""
        assert self.trouble is not None
        for path in sorted(self.trouble.glob(f"{what}*")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                return True
        return False


def build(number: int, *, trouble: str | None = None, pause: float = 0.0, seed: int = 0) -> cs.Segmenter:
    """The segmenter of a worker; another seed is another model."""
    model = Troubled(None if trouble is None else Path(trouble), pause)
    with torch.no_grad():
        next(model.parameters()).add_(float(seed))
    return cs.Segmenter(model, class_names=HIERARCHY.classes, name="small")


def node_build(number: int) -> cs.Segmenter:
    """A model that depends on the node: other weights where OTHER_WEIGHTS is set."""
    return build(number, seed=int(os.environ.get("OTHER_WEIGHTS", "0")), pause=0.05)


def manifest_of(images: Images, **changes):
    """The manifest of the small run with this process' versions."""
    import numpy as np

    versions = {"certiseg": cs.__version__, "torch": torch.__version__, "numpy": np.__version__}
    facts = {"model": "small", "model_sha256": build(0).fingerprint(), "versions": versions}
    return with_keys(make_manifest(images, **(facts | changes))[0], scan(images))


def plain_run(path: Path, images: Images, manifest) -> dict[str, str]:
    """Hashes of the run in this process."""
    evaluate_dataset(RunFolder(path), manifest, images, build(0))
    return hashes(path)


def spread_run(path: Path, images: Images, manifest, *, draws_per_task: int = 16) -> dict[str, str]:
    """Hashes of the run by two processes."""
    engine = Processes(build, manifest, EngineSettings(workers=2, draws_per_task=draws_per_task))
    try:
        evaluate_dataset(RunFolder(path), manifest, images, engine=engine)
    finally:
        engine.close()
    return hashes(path)


def sharded_run(path: Path, images: Images, manifest) -> dict[str, str]:
    """Hashes of the run by two shards that are joined."""
    parts = [RunFolder(path / f"shard{number}") for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        evaluate_dataset(part, manifest, images, build(0), shard=Shard(number, 2))
    merge_runs(parts, RunFolder(path / "joint"))
    return hashes(path / "joint")


slow = partial(build, pause=0.05)
"""Slow enough for a second node to take part before all is done."""
