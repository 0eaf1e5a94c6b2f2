"""The intact files that hostile ones are made from."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from tests.fuzz.cases import FACTORY, MODEL, TREE


def make_base(folder: Path) -> Path:
    """A tiny data set, network, hierarchy, certificates, votes, partial votes, a run and models in three formats."""
    import torch

    import certiseg as cs
    from certiseg.cli import main
    from certiseg.images import read_image
    from certiseg.sampling import draw, start
    from certiseg.settings import SamplingSettings
    from tests.fuzz.runs import OPTIONS

    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (folder / "data" / name).mkdir(parents=True)
    for name in ("a", "b"):
        blocks = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)
        Image.fromarray(blocks).save(folder / f"data/images/{name}.png")
        Image.fromarray(rng.integers(0, 4, (24, 32), dtype=np.uint8)).save(folder / f"data/labels/{name}.png")
    (folder / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (folder / "fuzzed_networks.py").write_text(FACTORY)
    (folder / "tiny.yaml").write_text(TREE)
    with inside(folder):
        model, tree = cs.load_model("torch:fuzzed_networks:small"), cs.load_hierarchy("tiny.yaml")
        votes = cs.sample(model, "data/images/a.png", sigma=0.1, n0=2, n=50, snapshots=(20,))
        votes.save("whole.votes.npz")
        for method, name in (("nested", "whole"), ("sets", "sets")):
            cs.certify(votes, tree, method=method, alpha=0.1).save(f"{name}.certificate.npz")
        pixels = read_image("data/images/a.png")
        partial = start(model, pixels, SamplingSettings(sigma=0.1, n0=2, n=50))
        draw(model, pixels, partial, "estimation", [0, 1, 2])
        partial.save("whole.partial.npz")
        torch.save(model.model.state_dict(), "tiny.pth")
        _save_safetensors(model.model)
        assert main(["evaluate", "folder", "--root", "data", "--out", "run", *MODEL, *OPTIONS]) == 0
        _export(model.model)
    return folder


def _save_safetensors(module: object) -> None:
    from safetensors.torch import save_file

    save_file(module.state_dict(), "tiny.safetensors")  # type: ignore[attr-defined]


def _export(module: object) -> None:
    import torch

    from certiseg.models.export import onnx_of

    Path("tiny.onnx").write_bytes(onnx_of(module, torch.rand(1, 3, 24, 32), "tiny"))  # type: ignore[arg-type]


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, and import from it."""
    before = os.getcwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
