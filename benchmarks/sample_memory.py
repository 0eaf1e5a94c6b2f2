"""Peak memory of sampling: it must not grow with n, and be far below that of a straightforward pipeline."""

from __future__ import annotations

from benchmarks.measure import Figure, peak_memory

_CODE = """
import torch, certiseg as cs
from certiseg.datasets import open_dataset
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 31, 1))
cs.sample(cs.Segmenter(net), open_dataset("streets")[0].image, sigma=0.25, n={n})
"""


_MODEL = """
import numpy as np, torch, scipy.stats, certiseg as cs
from benchmarks.models import street_pixels
from benchmarks.pipelines import straightforward
pixels, model = street_pixels(), cs.load_model("compact")
cs.certify(cs.sample(model, pixels[:32, :32], sigma=0.25, n0=1, n=60), cs.load_hierarchy("camvid"))
model(torch.from_numpy(pixels).permute(2, 0, 1)[None])
"""
_OURS = 'cs.certify(cs.sample(model, pixels, sigma=0.25, n0=10, n={n}), cs.load_hierarchy("camvid"))'
_THEIRS = "straightforward(model.model, pixels, sigma=0.25, n0=10, n={n})"


def measure(draws: tuple[int, int] = (100, 1000)) -> list[Figure]:
    """n = 1000 over n = 100, and against keeping all logits."""
    return [growth(draws), less()]


def growth(draws: tuple[int, int]) -> Figure:
    """Peak resident memory at many draws over that at few, each in a process of its own."""
    few, many = (peak_memory(_CODE.format(n=n)) for n in draws)
    return Figure(f"peak memory of sample at 480x360, n = {draws[1]} over n = {draws[0]}", many / few, 1.05, "<=")


def less(draws: int = 100) -> Figure:
    """Times less memory beyond libraries, the model and one pass of it."""
    model, mine, theirs = (peak_memory(_MODEL + code.format(n=draws)) for code in ("", _OURS, _THEIRS))
    name = f"peak memory beyond the model, compact 480x360, n = {draws}: times less than a straightforward pipeline"
    return Figure(name, (theirs - model) / (mine - model), 20, ">=")
