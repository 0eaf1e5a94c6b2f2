"""Votes: what the model says about an image under noise, and the only thing a certificate is computed from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import Archive, digest, read_archive, write_archive
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import BYTES, ImageLike, Picture, open_image
from certiseg.images.values import MAX_CHANNELS, Values, as_values
from certiseg.kernels.counts import count_labels, names_repeat, totals_are
from certiseg.kernels.threads import over_pixels
from certiseg.measures.measure import Measure
from certiseg.measures.questions import Question, resolve, scene_of
from certiseg.measures.record import Record, empty_record, unpack_record
from certiseg.settings import Noise, is_whole, require, require_noise, require_one_of
from certiseg.stats.binomial import MAX_DRAWS
from certiseg.stats.radius import deviation
from certiseg.threats import Threat, l2
from certiseg.threats import unpack as unpack_threat
from certiseg.threats.anchors import require_anchors

FORMAT_VERSION = 1
_ARRAYS = ("candidate", "gap", "ranking", "counts")


@dataclass(frozen=True, eq=False)
class AnchorVotes:
    """Votes at a further anchor of a threat: of T_a x instead of x, for the same candidates."""

    anchor: float
    counts: NDArray[np.uint16]
    """(H, W, C)"""
    snapshots: Mapping[int, NDArray[np.uint16]] = field(default_factory=dict)


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
    prediction: NDArray[np.integer] | None = None
    """(H, W): the model's labels without noise: no evidence, but what certified labels are compared with."""
    threat: Threat = field(default_factory=l2)
    """What happens to the image: l2, or a threat whose parameter each draw took at random."""
    further: tuple[AnchorVotes, ...] = ()
    """Votes at the anchors of the threat beyond 0, n draws at each."""
    record: Record | None = None
    """Values of measures in every estimation draw, and the label maps where they are kept."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Model, backend, threads, batch size, versions: what redrawing the votes needs to know."""

    def __post_init__(self) -> None:
        if self.counts.ndim == 3 and self.counts.dtype.kind in "iu" and self.counts.dtype != np.uint16:
            if self.counts.size and not 0 <= self.counts.min() <= self.counts.max() <= MAX_DRAWS:
                raise InputError(f"counts must lie in 0..{MAX_DRAWS}")
            object.__setattr__(self, "counts", self.counts.astype(np.uint16))
        for name, plain in (("n0", int), ("n", int), ("sigma", float)):  # NumPy's numbers do not fit into JSON
            if isinstance(getattr(self, name), np.generic):
                object.__setattr__(self, name, plain(getattr(self, name)))
        _check_numbers(self)
        _check_maps(self)
        _check_counts(self)
        _check_record(self)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What was measured in every estimation draw."""
        return () if self.record is None else self.record.measures

    @property
    def values(self) -> NDArray[np.float64]:
        """(n, M): the value of each measure in each estimation draw, in [0, 1]."""
        if self.record is None:
            raise InputError("votes must hold measures to be read, got none; sample with measures=[...]")
        return self.record.values

    def ask(self, *questions: Question | Measure, hierarchy: Hierarchy | None = None) -> Votes:
        """These votes with other measures, read from kept label maps: exploration, and marked as such."""
        if self.record is None or self.record.maps is None:
            raise InputError("votes must hold label maps to be asked, got none; sample with keep_maps=True")
        scene = scene_of(self.candidate, hierarchy, self.classes or self.num_classes)
        return replace(self, record=self.record.ask(resolve(questions, scene)))

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.counts.shape[0], self.counts.shape[1]

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.counts.shape[2])

    @property
    def max_set(self) -> int:
        """How many classes the ranking holds."""
        return int(self.ranking.shape[2])

    @property
    def channels(self) -> int:
        """Of the image; three where nothing else is recorded."""
        return recorded_image(self.provenance)[0]

    @property
    def image_values(self) -> Values:
        """The numbers that 0 and 1 stood for in the image's file; 0 and 255 where nothing else is recorded."""
        return recorded_image(self.provenance)[1]

    def open(self, image: ImageLike) -> Picture:
        """An image read as the one of these votes was."""
        values = None if self.image_values == BYTES else self.image_values
        return open_image(image, values=values, channels=self.channels)

    @property
    def deviation(self) -> float:
        """Sigma as the noise has it."""
        return self.sigma if self.noise == "grid" else deviation(self.sigma)

    @property
    def anchors(self) -> tuple[float, ...]:
        """The parameters of the threat at which votes were drawn, 0 first."""
        return (0.0, *(votes.anchor for votes in self.further))

    @property
    def by_anchor(self) -> tuple[Votes, ...]:
        """The votes at each anchor by themselves."""
        return self._apart if self.further else (self,)

    @cached_property
    def _apart(self) -> tuple[Votes, ...]:
        counts = [self.counts, *(votes.counts for votes in self.further)]
        return tuple(replace(self, counts=of_anchor, snapshots={}, further=(), record=None) for of_anchor in counts)

    def first(self, k: int) -> Votes:
        """The votes of the first k estimation draws, for k = n or a snapshot."""
        if k == self.n:
            return self
        if k not in self.snapshots:
            kept = [*sorted(self.snapshots), self.n]
            raise InputError(f"k must be one of the kept prefixes {kept}, got {k}; sample with snapshots=({k},)")
        further = tuple(
            AnchorVotes(votes.anchor, votes.snapshots[k], _below(k, votes.snapshots)) for votes in self.further
        )
        record = None if self.record is None else self.record.first(k * len(self.anchors))
        kept_snapshots = _below(k, self.snapshots)
        return replace(self, counts=self.snapshots[k], n=k, snapshots=kept_snapshots, further=further, record=record)

    def digest(self) -> str:
        """SHA-256 of what a certificate depends on.

        Arrays, n0, n, sigma, noise, threat, anchors, whether the draws were stopped, and channels and range of values
        of the image where they are not those of 8-bit RGB.
        """
        numbers = (self.n0, self.n, float(self.sigma), bool(self.stopped))
        hashed = hashlib.sha256(repr(numbers if self.noise == "gaussian" else (*numbers, self.noise)).encode())
        for name in _ARRAYS if self.prediction is None else (*_ARRAYS, "prediction"):
            hashed.update(digest(getattr(self, name)).encode())
        if self.threat.law != "none":
            hashed.update(f"{self.threat.identity}{self.anchors}".encode())
            for votes in self.further:
                hashed.update(digest(votes.counts).encode())
        if self.record is not None:
            hashed.update(self.record.digest().encode())
        if (self.channels, self.image_values) != (3, BYTES):
            hashed.update(repr((self.channels, self.image_values)).encode())
        return hashed.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the votes to one compressed file (numpy's zip of arrays, plus `meta.json`)."""
        meta, arrays = self.pack()
        write_archive(path, kind="votes", version=FORMAT_VERSION, meta=meta, arrays=arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Metadata and arrays as they are stored."""
        names = ("n0", "n", "sigma", "noise", "seed", "image_key", "classes", "stopped")
        meta = {name: getattr(self, name) for name in names}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"counts_first_{k}": counts for k, counts in self.snapshots.items()}
        arrays |= {} if self.prediction is None else {"prediction": self.prediction}
        for place, votes in enumerate(self.further, 1):
            arrays[f"counts_anchor_{place}"] = votes.counts
            arrays |= {f"counts_anchor_{place}_first_{k}": counts for k, counts in votes.snapshots.items()}
        meta["threat"], of_threat = self.threat.pack()
        arrays |= of_threat
        meta["anchors"] = list(self.anchors)
        meta |= {"snapshots": sorted(self.snapshots), "provenance": dict(self.provenance)}
        if self.record is not None:
            meta["record"], record_arrays = self.record.pack()
            arrays |= record_arrays
        return meta, arrays

    @classmethod
    def unpack(cls, archive: Archive, source: str) -> Votes:
        """The inverse of `pack`; whatever does not fit is one sentence that names the source."""
        try:
            meta = dict(archive.meta)
            kept = [int(k) for k in meta.pop("snapshots")]
            snapshots = {k: archive.arrays[f"counts_first_{k}"] for k in kept}
            classes = meta.pop("classes")
            meta["threat"] = unpack_threat(meta.get("threat", {"name": "l2"}), archive.arrays)
            meta["further"] = _unpack_anchors(meta.pop("anchors", [0.0]), kept, archive.arrays)
            if "record" in meta:
                meta["record"] = unpack_record(meta["record"], archive.arrays)
            arrays: dict[str, Any] = {name: archive.arrays[name] for name in _ARRAYS}
            arrays["prediction"] = archive.arrays.get("prediction")
            return cls(**arrays, **meta, snapshots=snapshots, classes=None if classes is None else tuple(classes))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{source}: must hold votes, but cannot be read: {error}") from None

    @classmethod
    def from_predictions(
        cls,
        posteriors: NDArray[np.floating],
        labels: NDArray[np.integer],
        *,
        sigma: float,
        max_set: int = 5,
        classes: Sequence[str] | None = None,
        stopped: bool = False,
        measures: Sequence[Question | Measure] = (),
        hierarchy: Hierarchy | None = None,
    ) -> Votes:
        """Votes of people who already have their draws: posteriors (n0, C, H, W), labels (n, H, W).

        The draws must have independent noise, and those of the labels must not be those of the posteriors. stopped:
        whether n was chosen by looking at the labels. measures: chosen without looking at the labels.
        """
        posteriors, labels = np.asarray(posteriors), np.asarray(labels)
        _check_predictions(posteriors, labels, max_set)
        num_classes = posteriors.shape[1]
        mean = posteriors.astype(np.float64).mean(axis=0)
        ranking = np.argsort(-mean, axis=0, kind="stable").astype(class_type(num_classes))
        best = np.take_along_axis(mean, ranking[:2].astype(np.int64), axis=0)
        counts = np.zeros((*labels.shape[1:], num_classes), np.uint16)
        count_labels(np.ascontiguousarray(labels), counts)
        record = None
        if measures:
            scene = scene_of(ranking[0], hierarchy, num_classes if classes is None else classes)
            record = empty_record(resolve(measures, scene), counts.shape, len(labels), keep_maps=False)
            record.add(range(len(labels)), labels)
        return cls(
            candidate=ranking[0],
            gap=best[0] - best[1],
            ranking=np.ascontiguousarray(np.moveaxis(ranking[: min(max_set, num_classes)], 0, -1)),
            counts=counts,
            n0=len(posteriors),
            n=len(labels),
            sigma=float(sigma),
            classes=None if classes is None else tuple(classes),
            stopped=stopped,
            record=record,
        )


def _below(k: int, snapshots: Mapping[int, NDArray[np.uint16]]) -> dict[int, NDArray[np.uint16]]:
    return {s: counts for s, counts in snapshots.items() if s < k}


def _unpack_anchors(
    anchors: Sequence[float], kept: Sequence[int], arrays: Mapping[str, NDArray[Any]]
) -> tuple[AnchorVotes, ...]:
    """The votes at the anchors beyond 0, as `Votes.pack` stores them."""
    if anchors[0] != 0:
        raise InputError(f"anchors must begin with 0, got {anchors[0]!r}")
    return tuple(
        AnchorVotes(
            float(anchor),
            arrays[f"counts_anchor_{place}"],
            {k: arrays[f"counts_anchor_{place}_first_{k}"] for k in kept},
        )
        for place, anchor in enumerate(anchors)
        if place > 0
    )


def load_votes(path: str | Path) -> Votes:
    """Read votes written by `Votes.save`."""
    return Votes.unpack(read_archive(path, kind="votes", version=FORMAT_VERSION), str(path))


def image_facts(channels: int, values: Values) -> dict[str, Any]:
    """What is recorded of an image beside its key, where it is not the usual 8-bit RGB."""
    usual = (channels, values) == (3, BYTES)
    return {} if usual else {"channels": channels, "values": [list(pair) for pair in values]}


def recorded_image(provenance: Mapping[str, Any]) -> tuple[int, Values]:
    """Channels and range of values of an image, as `image_facts` recorded them."""
    return int(provenance.get("channels", 3)), as_values(provenance.get("values")) or BYTES


def class_type(num_classes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds the index of a class."""
    return np.uint8 if num_classes <= 256 else np.uint16


def by_pixel(array: NDArray[Any]) -> NDArray[Any]:
    """(H, W, K) as (N, K)."""
    return np.ascontiguousarray(array).reshape(-1, array.shape[-1])


# -- checks ------------------------------------------------------------------------------------------------------


def _check_numbers(votes: Votes) -> None:
    for name in ("n0", "n"):
        value = getattr(votes, name)
        require(is_whole(value) and 1 <= value <= MAX_DRAWS, name, f"be a whole number in 1..{MAX_DRAWS}", value)
    require_one_of("noise", votes.noise, get_args(Noise))
    require_noise(votes.sigma, votes.noise, votes.threat)
    require_anchors(votes.threat, votes.anchors)
    channels = votes.provenance.get("channels", 3)
    good = is_whole(channels) and 1 <= channels <= MAX_CHANNELS and len(votes.image_values) in (1, channels)
    require(good, "channels", f"be a whole number in 1..{MAX_CHANNELS}, with one range of values or one each", channels)


def _check_maps(votes: Votes) -> None:
    """Shapes and values of all maps, and that each ranking names a class once."""
    if votes.counts.ndim != 3 or votes.counts.dtype.kind not in "iu":
        raise InputError(f"counts must be whole numbers (H, W, C), got {votes.counts.dtype} {votes.counts.shape}")
    height, width, num_classes = votes.counts.shape
    if num_classes < 2 or height * width == 0:
        raise InputError(f"counts must have pixels and at least two classes, got shape {votes.counts.shape}")
    for name in ("candidate", "gap"):
        if getattr(votes, name).shape != (height, width):
            raise InputError(f"{name} must have shape {(height, width)}, got {getattr(votes, name).shape}")
    shape = votes.ranking.shape
    if votes.ranking.ndim != 3 or shape[:2] != (height, width) or not 1 <= votes.max_set <= num_classes:
        raise InputError(f"ranking must have shape ({height}, {width}, 1..{num_classes}), got {shape}")
    for name in ("candidate", "ranking"):
        values = getattr(votes, name)
        if values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= num_classes:
            raise InputError(f"{name} must hold classes 0..{num_classes - 1}")
    if votes.prediction is not None and (
        votes.prediction.shape != (height, width)
        or votes.prediction.dtype.kind not in "iu"
        or not 0 <= votes.prediction.min() <= votes.prediction.max() < num_classes
    ):
        raise InputError(f"prediction must hold classes 0..{num_classes - 1} in shape {(height, width)}")
    if not np.array_equal(votes.ranking[..., 0], votes.candidate):
        raise InputError("ranking must begin with the candidate of every pixel")
    if any(over_pixels(names_repeat, height * width, by_pixel(votes.ranking))):
        raise InputError("ranking must name each class of a pixel once: a class counted twice is no evidence")
    if votes.classes is not None and len(votes.classes) != num_classes:
        raise InputError(f"classes must name the {num_classes} classes, got {len(votes.classes)}")
    if not (np.isfinite(votes.gap).all() and votes.gap.min() >= 0):
        raise InputError("gap must be finite and not negative")


def _check_counts(votes: Votes) -> None:
    """Every pixel has as many votes as there were draws, at every anchor."""
    anchors: tuple[Votes | AnchorVotes, ...] = (votes, *votes.further)
    for of_anchor in anchors:
        if of_anchor.snapshots.keys() != votes.snapshots.keys():
            raise InputError("snapshots must be kept at every anchor or at none")
        for k, counts in {votes.n: of_anchor.counts, **of_anchor.snapshots}.items():
            same = counts.shape == votes.counts.shape and counts.dtype.kind in "iu"
            if not (same and all(over_pixels(totals_are, counts.shape[0] * counts.shape[1], by_pixel(counts), k))):
                raise InputError(f"counts of every pixel must add up to the number of draws, {k}")


def _check_record(votes: Votes) -> None:
    """Every draw has a value of each measure."""
    if votes.record is not None:
        if votes.record.shape != votes.counts.shape:
            raise InputError(f"measures must be of maps of the shape {votes.counts.shape}, got {votes.record.shape}")
        votes.record.require_draws(np.ones(votes.n * len(votes.anchors), bool))


def _check_predictions(posteriors: NDArray[np.floating], labels: NDArray[np.integer], max_set: int) -> None:
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
