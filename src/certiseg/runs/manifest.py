"""The manifest: everything that decides a run, written before the first draw and compared on every resume."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, check_thresholds, hierarchy_from_json
from certiseg.runs.sealed import read_sealed, write_sealed
from certiseg.runs.settings import RunSettings, Setting
from certiseg.settings import from_stored, is_whole, require, stored
from certiseg.words import COMPARISON, PROMISE, promise_for

KIND = "manifest of a run"
KEYS = ("keys", "label_keys")
"""Fields that tell which pixels the images have; the others decide the run."""


@dataclass(frozen=True, kw_only=True)
class Manifest(RunSettings):
    """What a run computes. The same manifest, images and weights give the same bytes in every file of the run."""

    dataset: str
    split: str | None
    images: tuple[str, ...]
    """Names of the images, in order."""
    model: str
    model_sha256: str
    classes: tuple[str, ...] | None
    hierarchy: dict[str, Any]
    methods: tuple[str, ...]
    batch_size: int
    threads: int
    backend: str
    device: str
    versions: dict[str, str]
    keys: tuple[str | None, ...] = ()
    """The hash of the pixels of each image; None where it could not be read, or belongs to another shard."""
    label_keys: tuple[str | None, ...] = ()
    """The hash of each ground truth, in the same way."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("dataset", "model", "model_sha256", "backend", "device"):
            require(isinstance(getattr(self, name), str), name, "be text", getattr(self, name))
        for name in ("images", "methods", "classes"):
            values = getattr(self, name)
            if name != "classes" or values is not None:
                good = isinstance(values, tuple) and values and all(isinstance(each, str) for each in values)
                require(bool(good), name, "be names", values)
        require(len(set(self.images)) == len(self.images), "images", "be named once", self.images)
        for name in KEYS:
            values = getattr(self, name) or (None,) * len(self.images)
            object.__setattr__(self, name, values)
            good = isinstance(values, tuple) and all(v is None or isinstance(v, str) for v in values)
            require(good and len(values) == len(self.images), name, "be a hash or nothing per image", values)
        require(is_whole(self.threads) and self.threads >= 1, "threads", "be at least 1", self.threads)
        for method in self.methods:
            self._check_method(method)
        if self.objects is not None:
            good = len(self.objects) > 0 and len(set(self.objects)) == len(self.objects)
            require(good, "objects", "be different labels, where the hierarchy names no things", self.objects)
            for label in self.objects:
                self.tree.id(label)

    @cached_property
    def run_key(self) -> str:
        """A hash of all that decides the run but for the pixels: every file of the run is bound to it."""
        decisive = {name: value for name, value in stored(self).items() if name not in KEYS}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def identity(self, name: str) -> dict[str, str | None]:
        """What every file of an image belongs to."""
        place = self._places[name]
        keys = {"key": self.keys[place], "label_key": self.label_keys[place]}
        return {"run": self.run_key, "image": name, **keys}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.images)}

    @property
    def alpha_per_image(self) -> float:
        """Alpha, or its share if alpha covers all images of the run at once."""
        return self.alpha / len(self.images) if self.family == "dataset" else self.alpha

    @cached_property
    def tree(self) -> Hierarchy:
        """The hierarchy."""
        return hierarchy_from_json(self.hierarchy, source="manifest.json")

    def _check_method(self, method: str) -> None:
        """Refuse a method that this hierarchy has no room for, before anything is drawn."""
        asked, tree = self.certificate(self.each_setting()[0], method), self.tree
        if not 0 <= (asked.level or 0) < tree.num_levels:
            raise InputError(f"methods must have a level in 0..{tree.num_levels - 1}, got {method}")
        if not 1 <= (asked.max_set or 1) <= tree.num_classes:
            raise InputError(f"methods must have sets of 1..{tree.num_classes} classes, got {method}")
        if asked.method == "adaptive":
            check_thresholds(asked.thresholds or tree.thresholds, tree.num_levels, "thresholds of adaptive")

    def guarantee(self) -> str:
        """What the promise of the run guarantees, for how much at once, as every table says."""
        images = None if self.family == "image" else len(self.images)
        return promise_for(self.correction, alpha=self.alpha, k=self.k, images=images)

    def role(self, method: str, setting: Setting) -> str:
        """What a method at a setting of the run is: its promise, or shown beside it from the same draws."""
        return PROMISE if (method, setting) == self.promised else COMPARISON

    def save(self, path: Path) -> None:
        """Write the manifest."""
        write_sealed(path, KIND, stored(self))


def load_manifest(path: Path) -> Manifest:
    """Read a manifest; a folder without one is no run."""
    if not path.is_file():
        raise InputError(f"{path.parent}: must be a run folder, but it has no {path.name}")
    content = read_sealed(path, KIND)
    try:
        return from_stored(Manifest, content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(f"{path}: must be the manifest of a run, got: {error}") from None


def describe_difference(first: Manifest, second: Manifest, of_first: str, of_second: str) -> str:
    """What differs between two runs, in words, apart from the pixels of their images; empty if nothing does."""
    there = stored(first)
    return "; ".join(
        f"{name}: {_short(there[name])} {of_first}, {_short(value)} {of_second}"
        for name, value in stored(second).items()
        if name not in KEYS and there[name] != value
    )


def join_keys(found: Manifest, asked: Manifest, path: Path) -> Manifest:
    """The manifest with what either knows of the pixels; images that have changed are refused by name."""
    joint: dict[str, Any] = {}
    for name, what in zip(KEYS, ("pixels", "labels"), strict=True):
        pairs = list(zip(getattr(found, name), getattr(asked, name), strict=True))
        changed = [image for image, (a, b) in zip(found.images, pairs, strict=True) if a and b and a != b]
        if changed:
            some = ", ".join(repr(image) for image in changed[:3]) + (", ..." if len(changed) > 3 else "")
            raise InputError(
                f"{path}: must be resumed with its own images, got other {what} for {len(changed)} of them ({some}); "
                "give the former --root, or a new --out"
            )
        joint[name] = tuple(a or b for a, b in pairs)
    return replace(found, **joint)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
