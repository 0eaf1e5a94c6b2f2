"""Votes and certificates whose bits must never change, and their digests.

The scores of the model are sums of a few multiples of 1/4, so that every processor and backend gives the same labels.
Nothing here depends on shipped weights.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import certiseg as cs
from tests.conftest import random_votes

DIGESTS = Path(__file__).with_name("digests.json")
PRESETS = ("camvid", "cityscapes", "pascal_context", "coco_stuff")
SINGLE, CHAINS = ("segcertify", "level", "adaptive"), ("nested", "sets")
SIZES = {"small": (9, 13), "blocks": (70, 61), "threads": (331, 307)}
"""Above 4,096 pixels loops run in blocks, above 100,000 on threads."""


def sha256(*arrays: NDArray[Any]) -> str:
    hashed = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        hashed.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return hashed.hexdigest()


def votes_digest(votes: cs.Votes) -> str:
    return sha256(votes.candidate, votes.gap, votes.ranking, votes.counts, *votes.snapshots.values())


def certificate_digest(certificate: cs.Certificate) -> str:
    numbers = np.array([-1 if certificate.critical is None else certificate.critical])
    radii = np.nan_to_num(certificate.radius_map, nan=-1).round(7) + 0.0
    return sha256(certificate.vertex, certificate.level, certificate.set_size, numbers, radii)


class Stripes(torch.nn.Module):
    """A 1x1 convolution with weights in quarters, at half of the resolution; or its arg max."""

    def __init__(self, classes: int, *, labels: bool) -> None:
        super().__init__()
        rng = np.random.default_rng(classes)
        self.layer = torch.nn.Conv2d(3, classes, 1)
        self.layer.weight.data = torch.from_numpy(rng.integers(-8, 9, (classes, 3, 1, 1)).astype(np.float32) / 4)
        self.layer.bias.data = torch.from_numpy(rng.integers(-4, 5, classes).astype(np.float32) / 4)
        self.labels = labels

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        # Inputs in 1/64 keep every product and sum exact in 32 bits, in any order.
        scores = self.layer(torch.floor(images[:, :, ::2, ::2] * 64) / 64)
        return scores.argmax(1) if self.labels else scores


class ExactLogits:
    """The same scores from NumPy, for the kernels of posteriors and interpolation."""

    def __init__(self, classes: int) -> None:
        self.network = Stripes(classes, labels=False)

    def __call__(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        weight = self.network.layer.weight.detach().numpy()[:, :, 0, 0]
        bias = self.network.layer.bias.detach().numpy()
        return (np.floor(images[:, ::2, ::2] * 64) / 64) @ weight.T.astype(np.float32) + bias


def segmenter(classes: int, backend: str) -> cs.Segmenter:
    if backend == "numpy":
        return cs.Segmenter(ExactLogits(classes), num_classes=classes, arrays="numpy", name="stripes")
    plain = cs.Segmenter(Stripes(classes, labels=True), num_classes=classes, scores="labels", name="stripes")
    if backend == "torch":
        return plain
    from certiseg.models.backends import with_backend

    return with_backend(plain, backend, (12, 16))


@lru_cache
def sampled(preset: str, backend: str, noise: str, stopped: bool) -> cs.Votes:
    classes = len(cs.load_hierarchy(preset).classes)
    image = np.random.default_rng(7).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    stop = (lambda votes: votes.n >= 80) if stopped else None
    return cs.sample(
        segmenter(classes, backend),
        image,
        sigma=0.1,
        n0=7,
        n=120,
        seed=11,
        batch_size=3,
        snapshots=() if stopped else (40,),
        noise=noise,
        stop=stop,
        stop_every=40,
    )


@lru_cache
def generated(preset: str, size: str) -> cs.Votes:
    hierarchy = cs.load_hierarchy(preset)
    if size == "small":
        return random_votes(3, num_classes=len(hierarchy.classes), n=200, size=SIZES[size])
    small = random_votes(5, num_classes=len(hierarchy.classes), n=200, size=(20, 20))
    place = np.random.default_rng(1).integers(0, 400, SIZES[size])
    flat = {name: getattr(small, name).reshape(400, *getattr(small, name).shape[2:]) for name in ARRAYS}
    return cs.Votes(**{name: flat[name][place] for name in ARRAYS}, n0=small.n0, n=small.n, sigma=small.sigma)


ARRAYS = ("candidate", "gap", "ranking", "counts")


def settings(votes: cs.Votes) -> Iterator[dict[str, Any]]:
    tests = ("anytime",) if votes.stopped else ("fixed", "anytime")
    for test in tests:
        for method in SINGLE:
            for correction in ("bonferroni", "holm", "kfwer", "by"):
                chosen = {"k": 5} if correction == "kfwer" else {}
                chosen |= {"level": 1} if method == "level" else {}
                yield {"method": method, "correction": correction, "test": test, **chosen}
        for method in CHAINS:
            for correction in ("bonferroni", "holm"):
                yield {"method": method, "correction": correction, "test": test}


def certificates(votes: cs.Votes, preset: str) -> dict[str, str]:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chosen in settings(votes):
            certificate = cs.certify(votes, cs.load_hierarchy(preset), tau=0.7, alpha=0.01, **chosen)
            name = "/".join(str(value) for value in chosen.values())
            found[name] = certificate_digest(certificate)
    return found


SAMPLED = [
    (preset, backend, noise, stopped)
    for preset in PRESETS
    for backend in ("numpy", "torch", "onnxruntime", "openvino")
    for noise in ("gaussian", "grid")
    for stopped in (False, True)
    if not (stopped and backend in ("onnxruntime", "openvino"))
    if backend == "numpy" or preset in ("camvid", "cityscapes")
]
GENERATED = [(preset, size) for preset in PRESETS for size in SIZES if preset == "camvid" or size != "threads"]


def digests_of_sampled(preset: str, backend: str, noise: str, stopped: bool) -> dict[str, str]:
    votes = sampled(preset, backend, noise, stopped)
    return {"votes": votes_digest(votes), **certificates(votes, preset)}


def digests_of_generated(preset: str, size: str) -> dict[str, str]:
    votes = generated(preset, size)
    return {"votes": votes_digest(votes), **certificates(votes, preset)}


def stored() -> dict[str, dict[str, str]]:
    return json.loads(DIGESTS.read_text())
