"""What certiseg says on fixed input: certified maps of every method, and what it refuses.

Every part is an array of labels per pixel (or a text), so that a mutant's effect can be counted in pixels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

TREE = {
    "name": "ragged",
    "classes": ["a", "b", "c", "d", "e", "f"],
    "levels": {1: {"ab": ["a", "b"]}, 2: {"cd": ["c", "d"]}, 3: {"most": ["ab", "cd", "e"]}},
}
SIZE = (32, 48)
FIXED = (("bonferroni", 1), ("holm", 1), ("kfwer", 3), ("by", 1))


def reference() -> dict[str, Any]:
    """Every part by name; a part that cannot be had is the text of its error."""
    found = {}
    for name, make in _parts():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = make()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """What differs: the number of pixels, or before and after."""
    found = {}
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.shape == new.shape:
            differing = old != new
            count = (
                int(differing.reshape(*old.shape[:2], -1).any(axis=2).sum()) if old.ndim >= 2 else int(differing.sum())
            )
            if count:
                found[name] = f"{count} pixels"
        elif isinstance(old, np.ndarray) or isinstance(new, np.ndarray) or old != new:
            found[name] = new if isinstance(new, str) else "another answer"
    return found


def _parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    votes = planted()
    for test, (correction, k) in product(("fixed", "anytime"), FIXED):
        for method, options in _methods(correction):
            name = f"{method} {correction} {test}"
            yield name, lambda o=options, c=correction, k=k, t=test: _map(votes, correction=c, k=k, test=t, **o)
    yield "radius map", lambda: _certificate(votes, method="nested").radius_map
    yield "radius map of one level", lambda: _certificate(votes, method="level", level=1).radius_map
    yield "radius map of stopped votes", lambda: _certificate(votes, method="segcertify", test="anytime").radius_map
    yield "radius", lambda: str(_certificate(votes, method="nested").radius)
    yield "region", lambda: _map(votes, method="nested", region=_region())
    yield "p at its level", _tied
    yield "too few draws", _too_few
    for size in ((65, 67), (260, 400)):
        large = planted(size=size)
        name = f"{size[0] * size[1]:,} pixels"
        yield name, lambda v=large: _map(v, method="adaptive", thresholds=(0.0, 0.1, 0.25))
    yield "p near its level, too large for exact arithmetic", _too_large
    yield from _sampled_parts()
    yield from _run_parts()
    yield from _wider_parts()
    yield from _refusals()


def _methods(correction: str) -> list[tuple[str, dict[str, Any]]]:
    single = [
        ("segcertify", {"method": "segcertify"}),
        ("level", {"method": "level", "level": 2}),
        ("adaptive", {"method": "adaptive", "thresholds": (0.0, 0.1, 0.25)}),
    ]
    chains = [("nested", {"method": "nested"}), ("sets", {"method": "sets"})]
    return [*single, *(chains if correction in ("bonferroni", "holm") else [])]


def tree() -> Any:
    from certiseg.hierarchy import hierarchy_from_dict

    return hierarchy_from_dict(TREE, source="reference")


def _region() -> np.ndarray:
    region = np.zeros(SIZE, bool)
    region[3:20, 5:] = True
    return region


def planted(n: int = 100, size: tuple[int, int] = SIZE) -> Any:
    """Votes at and around every critical count, on all classes, ranked or not, with gaps on the thresholds."""
    import certiseg as cs

    rng = np.random.default_rng(0)
    classes = len(TREE["classes"])
    ranking = np.argsort(rng.random((*size, classes)), axis=-1).astype(np.uint8)
    first = rng.binomial(n, rng.choice([0.72, 0.85, 0.93, 0.97, 1.0], size))
    second = rng.binomial(n - first, rng.choice([0.2, 0.7, 1.0], size))
    third = rng.binomial(n - first - second, 0.8)
    counts = np.zeros((*size, classes), np.uint16)
    for place, votes in enumerate((first, second, third, n - first - second - third)):
        np.put_along_axis(counts, ranking[..., place : place + 1].astype(int), votes[..., None].astype(np.uint16), 2)
    gap = rng.choice([0.0, 0.05, 0.1, 0.25, 0.3, 1.0], size)
    return cs.Votes(ranking[..., 0].copy(), gap, ranking[..., :3].copy(), counts, n0=10, n=n, sigma=0.25)


def _certificate(votes: Any, **options: Any) -> Any:
    import certiseg as cs

    return cs.certify(votes, tree(), **{"tau": 0.75, "alpha": 0.05, **options})


def _map(votes: Any, **options: Any) -> np.ndarray:
    """Vertex, level and set size of every pixel."""
    certificate = _certificate(votes, **options)
    return np.stack([certificate.vertex, certificate.level, certificate.set_size], axis=-1).astype(np.int64)


def _tied() -> np.ndarray:
    """alpha / N is exactly P(Bin(10, 1/2) >= 10)."""
    region = np.zeros(SIZE, bool)
    region.reshape(-1)[:768] = True
    return _map(planted(10), method="nested", tau=0.5, alpha=768 / 2**10, region=region)


def _too_few() -> np.ndarray:
    return _map(planted(20), method="nested", alpha=0.001)


def _too_large() -> str:
    from certiseg.stats.binomial import binomial_test

    test = binomial_test(60_000, 0.95)
    return str(test.critical(float(test.p_values[57_000])))


def _sampled_parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Votes that are drawn: a small network, several ways of drawing, and what becomes of them."""
    for name, options in {
        "sampled": {},
        "sampled in batches": {"batch_size": 5},
        "sampled with temperature": {"temperature": 4.0},
        "sampled on the grid": {"noise": "grid"},
        "another seed": {"seed": 1},
    }.items():
        yield name, lambda o=options: _drawn(**o)
    yield "first of the draws", lambda: _drawn(first=20, snapshots=(20,))
    yield "labels only", lambda: _drawn(scores="labels")
    yield "predictions", _predicted
    yield "cost of the grid", lambda: _claimed_cost()


def _drawn(first: int | None = None, scores: str = "logits", **options: Any) -> np.ndarray:
    import certiseg as cs

    model = cs.Segmenter(_network(scores), scores=scores, num_classes=6)
    votes = cs.sample(model, _image(), sigma=0.2, n0=4, n=60, **options)
    votes = votes if first is None else votes.first(first)
    return np.concatenate(
        [
            _map(votes, method="adaptive", thresholds=(0.0, 0.1, 0.25), alpha=0.5),
            _map(votes, method="sets", alpha=0.5),
            votes.counts.astype(np.int64),
        ],
        axis=-1,
    )


def _claimed_cost() -> str:
    from certiseg.noise.grid import grid_distance

    return f"{grid_distance(sigma=0.2, draws=60, values=4608):.6e}"


def _wider_parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    from tests.mutation.wider_reference import wider_parts

    yield from wider_parts(_network("logits"), _image(), tree())


def _run_parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    """A run with settings that are not the default ones, and one whose only image turns out unusable."""
    yield "run", lambda: _run(fails=False)
    yield "run without an image", lambda: _run(fails=True)


def _run(*, fails: bool) -> Any:
    import json
    import tempfile

    import certiseg as cs
    from certiseg.datasets.base import Sample
    from certiseg.runs.evaluate import evaluate_dataset
    from certiseg.runs.folder import RunFolder
    from certiseg.runs.manifest import Manifest

    network, calls = _network("logits"), [0]

    def failing(images: Any) -> Any:
        calls[0] += 1
        found = network(images)
        return found * float("nan") if fails and calls[0] > 75 else found

    class One:
        names = ("one",)

        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Sample:
            return Sample("one", _image(), np.zeros(SIZE, np.uint8))

    model = cs.Segmenter(failing, num_classes=6)
    asked = {"noise": "grid", "temperature": 4.0, "correction": "kfwer", "k": 3, "test": "anytime", "n0": 4}
    facts = {"dataset": "one", "split": None, "images": ("one",), "model": "m", "classes": None, "versions": {}}
    facts |= {"batch_size": 1, "threads": 1, "backend": model.backend, "device": "cpu"}
    manifest = Manifest(
        **facts,
        **asked,
        model_sha256=model.fingerprint(),
        hierarchy=json.loads(json.dumps(tree().as_dict())),
        methods=("adaptive:0,0.1,0.25",),
        sigmas=(0.2, 0.21),
        settings=((60, 0.75),),
        alpha=0.5,
    )
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        evaluate_dataset(folder, manifest, One(), model)
        if fails:
            return str(sorted(path.name for path in folder.path.rglob("*.npz")))
        certificate = folder.certificate("one", manifest.each_setting()[0], manifest.methods[0])
        maps = [certificate.vertex, certificate.level, (1e6 * certificate.votes.gap).astype(np.int64)]
        return np.stack([*maps, *np.moveaxis(certificate.votes.counts, 2, 0)], axis=-1).astype(np.int64)


def _network(scores: str) -> Any:
    import torch

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(6, 3, 3, 3, generator=generator) * 2

    def network(images: Any) -> Any:
        values = torch.nn.functional.conv2d(images - 0.5, weight, stride=4, padding=1)
        return values.argmax(1) if scores == "labels" else values

    return network


def _image() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (4, 6, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)


def _predicted() -> np.ndarray:
    import certiseg as cs

    rng = np.random.default_rng(2)
    posteriors = rng.dirichlet(np.full(6, 0.4), (3, *SIZE)).transpose(0, 3, 1, 2)
    labels = np.where(rng.random((60, *SIZE)) < 0.97, posteriors.mean(0).argmax(0), rng.integers(0, 6, (60, *SIZE)))
    votes = cs.Votes.from_predictions(posteriors, labels, sigma=0.25)
    return _map(votes, method="adaptive", thresholds=(0.0, 0.1, 0.25), alpha=0.5)


def _refusals() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Forgeries and misuse, each of which must be refused."""
    yield "partial votes added twice", _added_twice
    yield "a class ranked twice", lambda: _forged("ranking", lambda r: np.repeat(r[..., :1], r.shape[2], axis=2))
    yield "more votes than draws", lambda: _forged("counts", lambda c: c + np.uint16(1))
    yield "stopped votes at fixed n", _stopped
    yield (
        "k above the region",
        lambda: _map(planted(), method="segcertify", correction="kfwer", k=900, region=_region()),
    )
    yield "redrawn gaps", _redrawn


def _forged(name: str, change: Callable[[Any], Any]) -> np.ndarray:
    from dataclasses import replace

    votes = planted()
    return _map(replace(votes, **{name: change(getattr(votes, name))}), method="sets")


def _redrawn() -> str:
    """What verify says about gaps that no draw gave, every hash of the file being right."""
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    import certiseg as cs

    model = cs.Segmenter(_network("logits"), num_classes=6)
    votes = cs.sample(model, _image(), sigma=0.2, n0=4, n=60)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "forged.npz"
        _certificate(replace(votes, gap=np.zeros_like(votes.gap)), method="nested").save(path)
        return str(cs.verify(path, model=model, image=_image()).passed)


def _added_twice() -> str:
    import certiseg as cs
    from certiseg.images import read_image
    from certiseg.sampling import draw, start
    from certiseg.settings import SamplingSettings

    model, pixels = cs.Segmenter(_network("logits"), num_classes=6), read_image(_image())
    plan = SamplingSettings(sigma=0.2, n0=1, n=4)
    parts = [start(model, pixels, plan) for _ in range(2)]
    for part in parts:
        draw(model, pixels, part, "estimation", [0, 1])
    parts[0].add(parts[1])
    return f"{int(parts[0].counts.sum())} votes"


def _stopped() -> np.ndarray:
    import certiseg as cs

    model = cs.Segmenter(_network("logits"), num_classes=6)
    votes = cs.sample(model, _image(), sigma=0.2, n0=4, n=60, stop=lambda _: True, stop_every=40)
    return _map(votes, method="nested", test="fixed")
