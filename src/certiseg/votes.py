"""Votes: what the model says about an image under noise, and the only thing a certificate is computed from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg import hits as loops
from certiseg import kernels
from certiseg.archive import Archive, digest, read_archive, write_archive
from certiseg.errors import InputError
from certiseg.noise import NOISES, Noise
from certiseg.stats.binomial import MAX_DRAWS

if TYPE_CHECKING:
    from certiseg.tally import SamplingPlan, Tally

FORMAT_VERSION = 1
_CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True, eq=False)
class Votes:
    """Selection (n0 draws) and vote counts (n further draws, independent of the n0) of every pixel of one image."""

    candidate: NDArray[np.integer]
    """(H, W): c_A, the top class of the mean posterior over the n0 selection draws, ties to the lowest index."""
    gap: NDArray[np.floating]
    """(H, W): dP, the lead of the candidate's mean posterior over the second."""
    ranking: NDArray[np.integer]
    """(H, W, max_set): the classes with the largest mean posteriors, best first."""
    counts: NDArray[np.uint16]
    """(H, W, C): how many of the n estimation draws went to each class."""
    n0: int
    n: int
    sigma: float
    seed: int | None = None
    image_key: str | None = None
    classes: tuple[str, ...] | None = None
    """The model's class names, where it knows them."""
    snapshots: Mapping[int, NDArray[np.uint16]] = field(default_factory=dict)
    """Counts of the first k draws, by k."""
    stopped: bool = False
    """Whether the number of draws could depend on the votes; then only the anytime test is valid."""
    noise: Noise = "gaussian"
    """The law of the noise; grid: rounded to whole grey levels."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Model, backend, threads, batch size, versions: what redrawing the votes needs to know."""
    set_hits: NDArray[np.uint16] = field(init=False, repr=False)
    """(max_set, H, W): votes for the one, two, ... best ranked classes, kept from the check of all counts."""

    def __post_init__(self) -> None:
        if self.counts.ndim != 3 or self.counts.dtype.kind not in "iu":
            raise InputError(f"counts must be whole numbers (H, W, C), got {self.counts.dtype} {self.counts.shape}")
        if self.counts.dtype != np.uint16:
            if self.counts.size and not 0 <= self.counts.min() <= self.counts.max() <= MAX_DRAWS:
                raise InputError(f"counts must lie in 0..{MAX_DRAWS}")
            object.__setattr__(self, "counts", self.counts.astype(np.uint16))
        height, width, num_classes = self.counts.shape
        if num_classes < 2 or height * width == 0:
            raise InputError(f"counts must have pixels and at least two classes, got shape {self.counts.shape}")
        for name in ("candidate", "gap"):
            if getattr(self, name).shape != (height, width):
                raise InputError(f"{name} must have shape {(height, width)}, got {getattr(self, name).shape}")
        if self.ranking.ndim != 3 or self.ranking.shape[:2] != (height, width) or not 1 <= self.max_set <= num_classes:
            raise InputError(f"ranking must have shape ({height}, {width}, 1..{num_classes}), got {self.ranking.shape}")
        for name in ("candidate", "ranking"):
            values = getattr(self, name)
            if values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= num_classes:
                raise InputError(f"{name} must hold classes 0..{num_classes - 1}")
        if not np.array_equal(self.ranking[..., 0], self.candidate):
            raise InputError("ranking must begin with the candidate of every pixel")
        if any(kernels.over_pixels(kernels.names_repeat, height * width, _by_pixel(self.ranking))):
            raise InputError("ranking must name each class of a pixel once: a class counted twice is no evidence")
        for what, value in (("n0", self.n0), ("n", self.n)):
            if not (isinstance(value, int | np.integer) and 1 <= value <= MAX_DRAWS):
                raise InputError(f"{what} must be a whole number in 1..{MAX_DRAWS}, got {value}")
            object.__setattr__(self, what, int(value))  # NumPy's numbers do not fit into JSON
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise InputError(f"sigma must be a positive number, got {self.sigma}")
        object.__setattr__(self, "sigma", float(self.sigma))
        if self.noise not in NOISES:
            raise InputError(f"noise must be gaussian or grid, got {self.noise!r}")
        if self.classes is not None and len(self.classes) != num_classes:
            raise InputError(f"classes must name the {num_classes} classes, got {len(self.classes)}")
        if not (np.isfinite(self.gap).all() and self.gap.min() >= 0):
            raise InputError("gap must be finite and not negative")
        hits = np.empty((self.max_set, height * width), np.uint16)
        object.__setattr__(self, "set_hits", hits.reshape(self.max_set, height, width))
        maps = _by_pixel(self.counts), _by_pixel(self.ranking)
        right = {self.n: all(kernels.over_pixels(loops.set_hits, height * width, *maps, self.n, hits))}
        for k, counts in self.snapshots.items():
            same = counts.shape == self.counts.shape and counts.dtype.kind in "iu"
            right[k] = same and all(kernels.over_pixels(kernels.totals_are, height * width, _by_pixel(counts), k))
        for k in right:
            if not right[k]:
                raise InputError(f"counts of every pixel must add up to the number of draws, {k}")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.counts.shape[0], self.counts.shape[1]

    @property
    def num_classes(self) -> int:
        return self.counts.shape[2]

    @property
    def max_set(self) -> int:
        """How many classes the ranking holds."""
        return self.ranking.shape[2]

    def first(self, k: int) -> Votes:
        """The votes of the first k estimation draws, for k = n or a snapshot."""
        if k == self.n:
            return self
        if k not in self.snapshots:
            kept = [*sorted(self.snapshots), self.n]
            raise InputError(f"k must be one of the kept prefixes {kept}, got {k}; sample with snapshots=({k},)")
        kept_snapshots = {s: counts for s, counts in self.snapshots.items() if s < k}
        return replace(self, counts=self.snapshots[k], n=k, snapshots=kept_snapshots)

    def digest(self) -> str:
        """SHA-256 of what a certificate depends on: arrays, n0, n, sigma, noise and whether the draws were stopped."""
        numbers = (self.n0, self.n, float(self.sigma), bool(self.stopped))
        hashed = hashlib.sha256(repr(numbers if self.noise == "gaussian" else (*numbers, self.noise)).encode())
        for array in (self.candidate, self.gap, self.ranking, self.counts):
            hashed.update(digest(array).encode())
        return hashed.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the votes to one compressed file (numpy's zip of arrays, plus `meta.json`)."""
        meta, arrays = self.pack()
        write_archive(path, kind="votes", version=FORMAT_VERSION, meta=meta, arrays=arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Metadata and arrays as they are stored."""
        names = ("n0", "n", "sigma", "noise", "seed", "image_key", "classes", "stopped")
        meta = {name: getattr(self, name) for name in names}
        arrays = {name: getattr(self, name) for name in ("candidate", "gap", "ranking", "counts")}
        arrays |= {f"counts_first_{k}": counts for k, counts in self.snapshots.items()}
        return {**meta, "snapshots": sorted(self.snapshots), "provenance": dict(self.provenance)}, arrays

    @classmethod
    def unpack(cls, archive: Archive, source: str) -> Votes:
        """The inverse of `pack`; whatever does not fit is one sentence that names the source."""
        try:
            meta = dict(archive.meta)
            snapshots = {int(k): archive.arrays[f"counts_first_{int(k)}"] for k in meta.pop("snapshots")}
            classes = meta.pop("classes")
            arrays: dict[str, Any] = {name: archive.arrays[name] for name in ("candidate", "gap", "ranking", "counts")}
            return cls(**arrays, **meta, snapshots=snapshots, classes=None if classes is None else tuple(classes))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{source}: must hold votes, but {error} is missing or odd") from None

    @classmethod
    def from_predictions(
        cls,
        posteriors: NDArray[np.floating],
        labels: NDArray[np.integer],
        *,
        sigma: float,
        max_set: int = 5,
        classes: Sequence[str] | None = None,
    ) -> Votes:
        """Votes of people who already have their draws: posteriors (n0, C, H, W), labels (n, H, W).

        The draws must have independent noise, and those of the labels must not be those of the posteriors.
        """
        posteriors, labels = np.asarray(posteriors), np.asarray(labels)
        if posteriors.ndim != 4 or labels.ndim != 3 or posteriors.shape[2:] != labels.shape[1:]:
            raise InputError(
                f"posteriors and labels must have the shapes (n0, C, H, W) and (n, H, W), "
                f"got {posteriors.shape} and {labels.shape}"
            )
        num_classes = posteriors.shape[1]
        if num_classes < 2 or max_set < 1:
            raise InputError(f"classes and max_set must be at least 2 and 1, got {num_classes} and {max_set}")
        if not (np.isfinite(posteriors).all() and posteriors.min(initial=0) >= 0):
            raise InputError("posteriors must be finite and not negative")
        if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0 or labels.max(initial=0) >= num_classes:
            raise InputError(f"labels must hold classes 0..{num_classes - 1}")
        if not 1 <= len(labels) <= MAX_DRAWS or len(posteriors) < 1:
            raise InputError(f"n0 and n must be in 1..{MAX_DRAWS}, got {len(posteriors)} and {len(labels)}")
        mean = posteriors.astype(np.float64).mean(axis=0)
        ranking = np.argsort(-mean, axis=0, kind="stable").astype(_class_type(num_classes))
        best = np.take_along_axis(mean, ranking[:2].astype(np.int64), axis=0)
        counts = np.zeros((*labels.shape[1:], num_classes), np.uint16)
        kernels.count_labels(np.ascontiguousarray(labels), counts)
        return cls(
            candidate=ranking[0],
            gap=best[0] - best[1],
            ranking=np.ascontiguousarray(np.moveaxis(ranking[: min(max_set, num_classes)], 0, -1)),
            counts=counts,
            n0=len(posteriors),
            n=len(labels),
            sigma=float(sigma),
            classes=None if classes is None else tuple(classes),
        )


def load_votes(path: str | Path) -> Votes:
    """Read votes written by `Votes.save`."""
    return Votes.unpack(read_archive(path, kind="votes", version=FORMAT_VERSION), str(path))


def sample(
    model: Any,
    image: Any,
    *,
    sigma: float,
    n0: int = 10,
    n: int = 100,
    seed: int = 0,
    batch_size: int | None = None,
    max_set: int = 5,
    snapshots: Sequence[int] = (),
    temperature: float = 1.0,
    noise: Noise = "gaussian",
    stop: Callable[[Votes], bool] | None = None,
    stop_every: int = 100,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Votes:
    """Votes of a model on one image: n0 selection draws, then n estimation draws, each with its own noise.

    Each draw's noise is a function of (seed, image, stage, draw index) alone: batch size, order and restarts change
    nothing. Memory does not grow with n.

    noise: gaussian, or grid: rounded to whole grey levels, for 8-bit images and without a floating-point gap.
    stop: asked every `stop_every` estimation draws with the votes so far; True ends the sampling there. With such a
        rule the votes are marked as stopped, whether it fired or not, and only test="anytime" accepts them. See
        `stopping.UndecidedRule` for one; the provenance of the votes names it.
    checkpoint: a file that holds the draws made so far; an interrupted call continues from it, and it is removed at
        the end.
    progress: called with the number of draws just made.
    """
    from certiseg.images import read_image
    from certiseg.models.segmenter import as_segmenter
    from certiseg.tally import SamplingPlan, settled, start_tally

    segmenter, pixels = as_segmenter(model), read_image(image)
    plan = SamplingPlan(
        sigma=float(sigma),
        n0=n0,
        n=n,
        seed=seed,
        batch_size=1 if batch_size is None else batch_size,
        max_set=max_set,
        snapshots=tuple(sorted(set(snapshots))),
        temperature=float(temperature),
        noise=noise,
    )
    tally = start_tally(segmenter, pixels, plan)
    keeper = _Checkpoint(checkpoint, tally, segmenter)
    tally = keeper.tally
    if progress is not None:
        progress(int(sum(done.sum() for done in tally.done.values())))

    def each(draws: int) -> None:
        if progress is not None:
            progress(draws)

    with settled(tally):
        keeper.draw(pixels, "selection", plan.n0, each)
        made = keeper.draw_until(pixels, plan, stop, stop_every, each)
    votes = votes_of_tally(tally, segmenter, n=made, stopped=stop is not None, rule=_rule(stop, stop_every))
    keeper.remove()
    return votes


class _Checkpoint:
    """Draws in slices, keeping what was drawn in a file if the caller wants one."""

    def __init__(self, path: str | Path | None, fresh: Tally, segmenter: Any) -> None:
        from certiseg.tally import load_tally

        self.path, self.segmenter, self.tally = (None if path is None else Path(path)), segmenter, fresh
        self.saved = time.monotonic()
        if self.path is not None and self.path.exists():
            found = load_tally(self.path)
            threads = {"threads": found.model.get("threads")}
            if found.identity != fresh.identity or found.model != fresh.model | threads:
                raise InputError(
                    f"{self.path}: must be of the same image, model and settings to go on; remove it to start anew"
                )
            self.tally = found

    def draw(self, pixels: NDArray[np.float32], stage: Any, upto: int, each: Callable[[int], None]) -> None:
        """Make the missing draws of a stage below `upto`."""
        from certiseg.tally import draw

        missing = self.tally.missing(stage, upto)
        slice_size = 16 * self.tally.plan.batch_size
        for start in range(0, len(missing), slice_size):
            draw(self.segmenter, pixels, self.tally, stage, missing[start : start + slice_size], each=each)
            if self.path is not None and time.monotonic() - self.saved > _CHECKPOINT_SECONDS:
                self.tally.save(self.path)
                self.saved = time.monotonic()

    def draw_until(
        self,
        pixels: NDArray[np.float32],
        plan: SamplingPlan,
        stop: Callable[[Votes], bool] | None,
        stop_every: int,
        each: Callable[[int], None],
    ) -> int:
        """Make estimation draws until n, or until `stop` says so; returns how many there are."""
        if stop is None:
            self.draw(pixels, "estimation", plan.n, each)
            return plan.n
        if stop_every < 1:
            raise InputError(f"stop_every must be at least 1, got {stop_every}")
        before = int(self.tally.done["estimation"].sum())  # an interrupted run went on after asking about fewer
        for made in [*range(stop_every, plan.n, stop_every), plan.n]:
            if made < before:
                continue
            self.draw(pixels, "estimation", made, each)
            if stop(votes_of_tally(self.tally, self.segmenter, n=made, stopped=True)):
                break
        return made

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _rule(stop: Callable[[Votes], bool] | None, every: int) -> dict[str, Any]:
    """The rule of stopping as it is recorded."""
    if stop is None:
        return {}
    named = {"rule": getattr(stop, "__qualname__", type(stop).__qualname__)}
    return {"stop": {**getattr(stop, "rule", named), "asked_every": every}}


def votes_of_tally(
    tally: Tally,
    segmenter: Any,
    *,
    n: int | None = None,
    stopped: bool = False,
    rule: Mapping[str, Any] | None = None,
) -> Votes:
    """The votes of a complete tally; with n, of one that holds just the first n estimation draws."""
    plan = tally.plan
    made = plan.n if n is None else n
    if tally.missing("selection") or tally.missing("estimation", made) or tally.done["estimation"][made:].any():
        raise InputError(f"tally must hold all {plan.n0} selection and exactly the first {made} estimation draws")
    ranking = np.empty((*tally.size, plan.max_set), _class_type(tally.num_classes))
    lead = np.empty(tally.size, np.int64)
    kernels.rank_classes(tally.sums, ranking, lead)
    share = lead / (plan.n0 * plan.unit)
    # Vote shares are few exact fractions and stay exact; mean posteriors are no finer than 32 bits to begin with.
    gap = share if segmenter.kind == "labels" else share.astype(np.float32)
    # One part that nothing can be added to any more needs no sum and no copy.
    alone = len(tally.counts) == 1 and made == plan.n
    up_to_cut = tally.counts if alone else np.cumsum(tally.counts, axis=0, dtype=np.uint16)
    return Votes(
        candidate=np.ascontiguousarray(ranking[..., 0]),
        gap=gap,
        ranking=ranking,
        counts=up_to_cut[-1],
        n0=plan.n0,
        n=made,
        sigma=plan.sigma,
        seed=plan.seed,
        image_key=tally.key,
        classes=segmenter.class_names,
        snapshots={k: up_to_cut[i] for i, k in enumerate(plan.snapshots) if k < made},
        stopped=stopped,
        noise=plan.noise,
        provenance=_provenance(segmenter, tally) | dict(rule or {}),
    )


def _provenance(segmenter: Any, tally: Tally) -> dict[str, Any]:
    """How the draws were made, for whoever wants to make them again."""
    import torch

    from certiseg import __version__

    return {
        "model": segmenter.name,
        "scores": segmenter.kind,
        **tally.model,
        "batch_size": tally.plan.batch_size,
        "temperature": tally.plan.temperature,
        "noise": tally.plan.noise,
        "versions": {"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }


def _by_pixel(array: NDArray[Any]) -> NDArray[Any]:
    """(H, W, K) as (N, K)."""
    return np.ascontiguousarray(array).reshape(-1, array.shape[-1])


def _class_type(num_classes: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if num_classes <= 256 else np.uint16
