"""From one image to nearly what n = 1000 certifies: the published pipeline with all its draws over ours.

Published: eager torch in contiguous memory, one draw at a time, logits of the image's size kept as far as memory
allows, then arg max, mode, comparison and p-values. Its draws are alike, so a part of them is timed and multiplied.
Ours: the fastest backend, `nested`, stopped at 3 % undecided pixels. Both begin with a loaded model.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import certiseg as cs
from benchmarks import pipelines
from benchmarks.measure import DEVICE, Figure, interleaved
from benchmarks.models import compact, street_pixels
from benchmarks.overhead import bare_passes
from certiseg.datasets import open_dataset
from certiseg.images import read_image
from certiseg.models.backends import with_backend
from certiseg.models.preparation import prepare
from certiseg.models.segmenter import as_batch
from certiseg.stopping import ASKED_EVERY, UndecidedRule

CAMVID = Path(__file__).parents[2] / "shared/data/camvid"
IMAGE, MOST, N0, SHARE = 60, 1000, 10, 0.02
TIMED = 20
"""One of so many published draws is timed."""


def the_image() -> tuple[str, NDArray[np.float32]]:
    """A CamVid test image that was not used to choose the share, or a rendered street where CamVid is not there."""
    if not CAMVID.is_dir():
        return "a rendered street", street_pixels()
    return f"CamVid test image {IMAGE}", read_image(open_dataset("camvid", CAMVID, split="test")[IMAGE].image)


def stopped_votes(segmenter: cs.Segmenter, pixels: NDArray[np.float32], *, most: int = MOST) -> cs.Votes:
    """Votes of our way, stopped early."""
    rule = UndecidedRule(SHARE, most, cs.load_hierarchy("camvid"), {"method": "nested"})
    return cs.sample(segmenter, pixels, sigma=0.25, n0=N0, n=most, stop=rule, stop_every=ASKED_EVERY)


def measure() -> list[Figure]:
    """How many times faster, and by what."""
    (where, pixels), model = the_image(), compact()
    fast = with_backend(model, "auto", (pixels.shape[0], pixels.shape[1]))
    network: Any = copy.deepcopy(model.model)
    network = network.to(memory_format=torch.contiguous_format)
    draws = (N0 + MOST) // TIMED

    def eager(images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = network(prepare(images.to(DEVICE), model.settings)[0].contiguous())
        return scores.cpu()

    votes = stopped_votes(fast, pixels, most=2 * ASKED_EVERY)  # warms up, and compiles

    def ours() -> None:
        nonlocal votes
        votes = stopped_votes(fast, pixels)
        cs.certify(votes, cs.load_hierarchy("camvid"), method="nested", test="anytime")

    sampling = partial(pipelines.published_labels, eager, pixels, sigma=0.25, draws=draws)
    labels = np.concatenate([sampling()] * TIMED)
    decision = partial(pipelines.decided, labels, n0=N0)
    theirs, deciding, mine = interleaved(sampling, decision, ours, repeats=1, warm=())
    image = as_batch(pixels[None]).contiguous()
    slow_pass, fast_pass = interleaved(partial(_inferred, eager, image), bare_passes(fast, pixels, 1), repeats=11)
    ratio, stopping = (TIMED * theirs + deciding) / mine, (1 + N0 + MOST) / (1 + N0 + votes.n)
    name = f"end to end, compact 480x360, {where}"
    kinds = {
        f"part of it: passes of n = {MOST} over those made": (stopping, f"n = {votes.n}"),
        "part of it: an eager pass over one of the fastest backend": (slow_pass / fast_pass, fast.backend),
        "part of it: all the rest": (ratio / stopping / (slow_pass / fast_pass), ""),
    }
    return [
        Figure(f"{name}: times faster than the published pipeline", ratio, 15, ">="),
        *(Figure(f"{name}, {what}", value, None, ">=", note=note) for what, (value, note) in kinds.items()),
    ]


def _inferred(model: Any, images: torch.Tensor) -> Any:
    with torch.inference_mode():
        return model(images)
