"""Forward passes saved by stopping early on CamVid test images, and the certified pixels that are kept.

The draws of one pass to n = 1000 are looked at every 50: their prefixes are what a stopped sampling would have given.
The share of undecided pixels at which to stop was chosen on the images 0, 40 and 80; others are measured.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import certiseg as cs
from benchmarks.certify_speed import METHODS
from benchmarks.measure import Figure
from certiseg.datasets import open_dataset
from certiseg.models.backends import with_backend
from certiseg.stopping import UndecidedRule

ROOT = Path(__file__).parents[2] / "shared/data/camvid"
STEP, MOST, N0, SHARE = 50, 1000, 10, 0.03


def measure(*, images: tuple[int, ...] = (20, 60, 100)) -> list[Figure]:
    """Per method, pooled over the images: passes over those of n = 1000, and kept share of its certified pixels."""
    found = curves(images=images)
    figures = []
    for method, of_method in found.items():
        name = f"early stopping at {SHARE:.0%} undecided, CamVid, {method}"
        figures.append(Figure(f"{name}: passes over n = 1000", of_method["passes"], 0.5, "<="))
        figures.append(Figure(f"{name}: certified pixels kept", of_method["kept"], 0.95, ">=", of_method["curve"]))
    return figures


def curves(*, images: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """Per method: passes and kept share under the rule, and the kept share at every prefix."""
    samples = open_dataset("camvid", ROOT, split="test")
    model, hierarchy = with_backend(cs.load_model("compact"), "auto", (360, 480)), cs.load_hierarchy("camvid")
    steps = list(range(STEP, MOST + 1, STEP))
    kept = {method: np.zeros(len(steps)) for method in METHODS}
    total, stopped, used = ({method: 0.0 for method in METHODS} for _ in range(3))
    for index in images:
        votes = cs.sample(model, samples[index].image, sigma=0.25, n0=N0, n=MOST, snapshots=steps[:-1])
        for method, options in METHODS.items():
            settings = {"method": method, **options}
            all_draws = ~cs.certify(votes, hierarchy, **settings).abstained
            at_step, stop = _prefixes(votes, hierarchy, settings, steps, all_draws)
            kept[method] += at_step
            total[method] += all_draws.sum()
            stopped[method] += at_step[stop]
            used[method] += (N0 + steps[stop]) / (N0 + MOST) / len(images)
    return {
        method: {
            "passes": used[method],
            "kept": float(stopped[method] / total[method]),
            "curve": dict(zip(steps, (kept[method] / total[method]).tolist(), strict=True)),
        }
        for method in METHODS
    }


def _prefixes(votes: cs.Votes, hierarchy: Any, settings: dict[str, Any], steps: list[int], all_draws: Any) -> Any:
    """Pixels that all draws certify by the fixed test and each prefix does, too; and where the rule stops."""
    rule = UndecidedRule(SHARE, MOST, hierarchy, settings)
    at_step, stop = np.zeros(len(steps)), len(steps) - 1
    for index, k in enumerate(steps):
        prefix = votes.first(k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first draws alone certify nothing
            now = cs.certify(prefix, hierarchy, **settings, test="anytime")
        at_step[index] = (~now.abstained & all_draws).sum()
        if index < stop and rule(prefix):
            stop = index
    return at_step, stop
