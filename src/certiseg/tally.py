"""A tally: the partial votes of one image, from any ranges of its draws. Tallies of disjoint ranges add up.

This is the unit of work that can be interrupted, resumed and spread over workers. Posteriors are summed in fixed
point and votes in integers, so the order and the split of the draws cannot matter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg import kernels
from certiseg.archive import read_archive, write_archive
from certiseg.errors import InputError
from certiseg.noise import NOISES, Noise, Stage, image_key, noise_stream, perturbation
from certiseg.stats.binomial import MAX_DRAWS

FORMAT_VERSION = 1
_BUFFERED_DRAWS = 16
"""Label maps kept before they are counted, so that each pixel's counts are visited once for all of them."""


@dataclass(frozen=True)
class SamplingPlan:
    """All that fixes the draws of an image, settled before the first of them."""

    sigma: float
    n0: int
    n: int
    seed: int = 0
    batch_size: int = 1
    max_set: int = 5
    snapshots: tuple[int, ...] = ()
    temperature: float = 1.0
    noise: Noise = "gaussian"

    def __post_init__(self) -> None:
        _require(np.isfinite(self.sigma) and self.sigma > 0, "sigma must be a positive number", self.sigma)
        for name in ("n0", "n"):
            value = getattr(self, name)
            _require(_is_whole(value) and 1 <= value <= MAX_DRAWS, f"{name} must be in 1..{MAX_DRAWS}", value)
        _require(_is_whole(self.seed) and self.seed >= 0, "seed must be a whole number >= 0", self.seed)
        _require(_is_whole(self.batch_size) and self.batch_size >= 1, "batch_size must be at least 1", self.batch_size)
        _require(_is_whole(self.max_set) and self.max_set >= 1, "max_set must be at least 1", self.max_set)
        _require(np.isfinite(self.temperature) and self.temperature > 0, "temperature must be > 0", self.temperature)
        _require(self.noise in NOISES, "noise must be gaussian or grid", self.noise)
        rising = all(a < b for a, b in zip((0, *self.snapshots), self.snapshots, strict=False))
        whole = all(_is_whole(s) for s in self.snapshots)
        inside = not self.snapshots or self.snapshots[-1] <= self.n
        _require(whole and rising and inside, f"snapshots must rise and be at most n = {self.n}", self.snapshots)
        for number in fields(self):  # NumPy's numbers do not fit into JSON
            value = getattr(self, number.name)
            plain = tuple(int(s) for s in value) if number.name == "snapshots" else _plain(value)
            object.__setattr__(self, number.name, plain)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where the estimation draws are parted: the snapshots and n."""
        return self.snapshots if self.snapshots and self.snapshots[-1] == self.n else (*self.snapshots, self.n)

    @property
    def unit(self) -> int:
        """What stands for a posterior of one, so that the sum of n0 of them fits 32 bits."""
        return (2**32 - 1) // self.n0


class Tally:
    """Sums of posteriors over some selection draws and counts of votes over some estimation draws of one image."""

    def __init__(
        self,
        plan: SamplingPlan,
        *,
        key: str,
        size: tuple[int, int],
        num_classes: int,
        model: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan = replace(plan, max_set=min(plan.max_set, num_classes))
        self.key, self.size, self.num_classes = key, size, num_classes
        self.model: dict[str, Any] = dict(model or {})
        """What all draws must have in common: hash of the model, backend, device, threads. See `settled`."""
        self.sums = np.zeros((*size, num_classes), np.uint32)
        self.counts = np.zeros((len(plan.cuts), *size, num_classes), np.uint16)
        """Votes between one cut and the next, so that every snapshot is a sum over the first axis."""
        self.done: dict[Stage, NDArray[np.bool_]] = {
            "selection": np.zeros(plan.n0, bool),
            "estimation": np.zeros(plan.n, bool),
        }

    def missing(self, stage: Stage, upto: int | None = None) -> list[int]:
        """The draws of a stage that are still to be made, those below `upto` if given."""
        return [int(draw) for draw in np.flatnonzero(~self.done[stage][:upto])]

    def add_selection(self, draws: list[int], scores: Any) -> None:
        """Add the posteriors of selection draws."""
        self._claim("selection", draws)
        scores.add_posteriors(self.sums, unit=self.plan.unit, temperature=self.plan.temperature)

    def add_estimation(self, draws: list[int], labels: NDArray[np.integer]) -> None:
        """Add the votes of estimation draws; labels: (draws, H, W)."""
        self._claim("estimation", draws)
        part = np.searchsorted(self.plan.cuts, draws, side="right")
        for cut in np.unique(part):
            kernels.count_labels(np.ascontiguousarray(labels[part == cut]), self.counts[cut])

    def add(self, other: Tally) -> None:
        """Add another tally of the same image and plan; a draw that both hold is refused, never counted twice."""
        if self.identity != other.identity or self.model != other.model:
            raise InputError("tallies must be of the same image, model, threads and sampling plan to be added")
        draws = {stage: [int(draw) for draw in np.flatnonzero(done)] for stage, done in other.done.items()}
        for stage in draws:
            self._require_new(stage, draws[stage])
        for stage in draws:
            self._claim(stage, draws[stage])
        self.sums += other.sums
        self.counts += other.counts

    @property
    def identity(self) -> tuple[Any, ...]:
        """The image and the plan of the draws."""
        return self.plan, self.key, tuple(self.size), self.num_classes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is stored: the sums, the counts, and which draws they hold."""
        kept: dict[str, NDArray[Any]] = {"sums": self.sums, "counts": self.counts}
        return kept | {str(stage): done for stage, done in self.done.items()}

    def save(self, path: str | Path) -> None:
        """Write the tally as one archive."""
        meta = {"plan": asdict(self.plan), "key": self.key, "num_classes": self.num_classes, "model": self.model}
        write_archive(path, kind="tally", version=FORMAT_VERSION, meta=meta, arrays=self.arrays())

    def _claim(self, stage: Stage, draws: list[int]) -> None:
        self._require_new(stage, draws)
        self.done[stage][draws] = True

    def _require_new(self, stage: Stage, draws: list[int]) -> None:
        if len(set(draws)) < len(draws) or self.done[stage][draws].any():
            raise InputError(f"draws of one stage must be counted once, got {stage} draws {draws[:3]}... again")


def load_tally(path: str | Path) -> Tally:
    """Read a tally written by `Tally.save`."""
    archive = read_archive(path, kind="tally", version=FORMAT_VERSION)
    try:
        settings = archive.meta["plan"]
        plan = SamplingPlan(**{**settings, "snapshots": tuple(settings["snapshots"])})
        size = archive.arrays["sums"].shape[:2]
        same = {name: archive.meta[name] for name in ("key", "num_classes", "model")}
        tally = Tally(plan, size=size, **same)
        stored = {name: archive.arrays[name] for name in tally.arrays()}
        if any((stored[k].shape, stored[k].dtype) != (a.shape, a.dtype) for k, a in tally.arrays().items()):
            raise InputError(f"{path}: arrays must fit the sampling plan")
        tally.sums, tally.counts = stored["sums"].copy(), stored["counts"].copy()
        tally.done = {stage: stored[stage].copy() for stage in tally.done}
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: must hold a tally, but {error} is missing or odd") from None
    return tally


def draw(
    segmenter: Any,
    pixels: NDArray[np.float32],
    tally: Tally,
    stage: Stage,
    draws: list[int],
    *,
    each: Callable[[int], None] | None = None,
) -> None:
    """Make the given draws of one stage and add them to the tally.

    Every call of the model has the plan's batch size (a last incomplete batch is filled up and the rest dropped), so
    that what a draw gives cannot depend on how the draws were split. each(k) is called after k more draws.
    """
    buffered: list[NDArray[np.integer]] = []
    pending: list[int] = []
    for batch, scores in _scores(segmenter, pixels, tally, stage, draws):
        if stage == "selection":
            tally.add_selection(batch, scores)
        else:
            buffered.append(scores.labels())
            pending += batch
            if len(pending) >= _BUFFERED_DRAWS:
                tally.add_estimation(pending, np.concatenate(buffered))
                buffered, pending = [], []
        if each is not None:
            each(len(batch))
    if pending:
        tally.add_estimation(pending, np.concatenate(buffered))


def _scores(
    segmenter: Any, pixels: NDArray[np.float32], tally: Tally, stage: Stage, draws: list[int]
) -> Iterator[tuple[list[int], Any]]:
    """Batches of draws with the model's scores of x + eps."""
    from certiseg.models.segmenter import as_batch

    plan = tally.plan
    stream = noise_stream(seed=plan.seed, image_key=tally.key, stage=stage)
    perturb = perturbation(pixels, sigma=plan.sigma, noise=plan.noise)
    noisy = np.empty((plan.batch_size, *pixels.shape), np.float32)
    for start in range(0, len(draws), plan.batch_size):
        batch = draws[start : start + plan.batch_size]
        for row, index in enumerate(batch):
            perturb(stream, index, noisy[row])
        noisy[len(batch) :] = noisy[0]
        try:
            scores = segmenter(as_batch(noisy))
        except InputError as error:
            raise InputError(f"{error} ({stage} draw {batch[0]})") from None
        yield batch, replace(scores, values=scores.values[: len(batch)])


def start_tally(segmenter: Any, pixels: NDArray[np.float32], plan: SamplingPlan) -> Tally:
    """An empty tally for an image; a model that does not know its class count is asked once."""
    import torch

    from certiseg.models.segmenter import as_batch

    if segmenter.num_classes is None:
        segmenter(as_batch(pixels[None].copy()))  # a copy: some models write into their input
    model = {
        "model_sha256": segmenter.fingerprint(),
        "denoiser_sigma": segmenter.preparation().get("denoiser_sigma"),
        "backend": segmenter.backend,
        "device": segmenter.device.type,
        "threads": torch.get_num_threads(),
    }
    height, width = pixels.shape[:2]
    size = (height, width)
    return Tally(plan, key=image_key(pixels), size=size, num_classes=segmenter.num_classes, model=model)


@contextlib.contextmanager
def settled(tally: Tally) -> Iterator[None]:
    """Run the model on as many threads as the tally's first draws had: sums in the model may depend on it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(int(tally.model.get("threads", before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _require(condition: bool, rule: str, value: Any) -> None:
    if not condition:
        raise InputError(f"{rule}, got {value!r}")
