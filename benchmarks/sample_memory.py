"""Peak memory of sampling as n grows: it must not."""

from __future__ import annotations

from benchmarks.measure import Figure, peak_memory

_CODE = """
import torch, certiseg as cs
from certiseg.datasets import open_dataset
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 31, 1))
cs.sample(cs.Segmenter(net), open_dataset("streets")[0].image, sigma=0.25, n={n})
"""


def measure(draws: tuple[int, int] = (100, 1000)) -> list[Figure]:
    """Peak resident memory at n = 1000 over that at n = 100, each in a process of its own."""
    few, many = (peak_memory(_CODE.format(n=n)) for n in draws)
    return [Figure(f"peak memory of sample at 480x360, n = {draws[1]} over n = {draws[0]}", many / few, 1.05, "<=")]
