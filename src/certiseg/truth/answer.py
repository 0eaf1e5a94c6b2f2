"""The calibrated sets of one image, with the noise they were drawn from: what they say, as pictures and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from certiseg.archive import Archive, read_archive, write_archive
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, hierarchy_from_json
from certiseg.images import BYTES, ImageLike, open_image, read_image, shown
from certiseg.images.values import Values, as_values
from certiseg.render.pictures import size_map

KIND = "truth"
FORMAT_VERSION = 1
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
"""How many bits every byte has."""


@dataclass(frozen=True, eq=False)
class TruthSets:
    """Sets that hold the truth; see `claim()` for what is promised about them."""

    packed: NDArray[np.uint8]
    """(H, W, bytes): the classes of every pixel, a bit for each, as np.packbits has them."""
    class_names: tuple[str, ...]
    seed: int
    """Of the noise of the one pass."""
    fresh: bool
    """Whether the seed came from fresh entropy, as a promise needs it."""
    image_key: str
    level: tuple[float, float]
    """Risk and pixels."""
    promise: str
    model: str
    hierarchy: Hierarchy | None = None
    values: Values = BYTES
    """What 0 and 1 stand for in the image."""

    def __repr__(self) -> str:
        return f"TruthSets({self.packed.shape[0]}x{self.packed.shape[1]}, {self.mean_size:.2f} classes on average)"

    @property
    def members(self) -> NDArray[np.bool_]:
        """(H, W, C): which classes the set of every pixel holds; eight times the memory, made anew at each call."""
        return np.unpackbits(self.packed, axis=2, count=len(self.class_names)).view(np.bool_)

    @cached_property
    def size(self) -> NDArray[np.uint16]:
        """(H, W): how many classes the set of every pixel holds."""
        return np.asarray(_BITS[self.packed].sum(axis=2, dtype=np.uint16))

    def holds(self, classes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(H, W): whether the set of every pixel holds a class of its own; not where that is no class."""
        known = (classes >= 0) & (classes < len(self.class_names))
        wanted = np.where(known, classes, 0).astype(np.intp)
        byte = np.take_along_axis(self.packed, wanted[..., None] >> 3, 2)[..., 0]
        held: NDArray[np.bool_] = known & ((byte >> (7 - (wanted & 7)) & 1) == 1)
        return held

    @property
    def mean_size(self) -> float:
        """Classes in a set, on average over all pixels."""
        return float(self.size.mean())

    @property
    def singletons(self) -> float:
        """Share of the pixels with one class."""
        return float((self.size == 1).mean())

    def labels_at(self, row: int, column: int) -> tuple[str, ...]:
        """The classes of the set of one pixel, by name."""
        height, width = self.size.shape
        if not (0 <= row < height and 0 <= column < width):
            raise InputError(f"row and column must lie in the image of {height}x{width}, got {row} and {column}")
        inside = np.unpackbits(self.packed[row, column], count=len(self.class_names))
        return tuple(self.class_names[index] for index in np.flatnonzero(inside))

    def claim(self) -> str:
        """The guarantee in plain words."""
        return self.promise

    def summary(self) -> dict[str, Any]:
        """What a program, or a reader in a hurry, wants to know."""
        sizes, counts = np.unique(self.size, return_counts=True)
        share = self.members.mean(axis=(0, 1))
        order = np.argsort(-share, kind="stable")
        return {
            "format_version": FORMAT_VERSION,
            "method": "truth",
            "promise": "about the truth" if self.fresh else "none: the seed was given, which is exploration",
            "size": list(self.size.shape),
            "risk": self.level[0],
            "pixels": self.level[1],
            "seed": self.seed,
            "fresh": self.fresh,
            "mean_set_size": self.mean_size,
            "singletons": self.singletons,
            "set_sizes": {str(s): float(c / self.size.size) for s, c in zip(sizes.tolist(), counts, strict=True)},
            "in_sets": {self.class_names[c]: float(share[c]) for c in order.tolist() if share[c] > 0},
            "model": self.model,
            "claim": self.claim(),
        }

    def overlay(self, image: ImageLike, *, channels: Sequence[int] = ()) -> Image.Image:
        """The size of every set over the image, with a legend; channels: which of them (from 1) are shown."""
        picture = open_image(image, values=None if self.values == BYTES else self.values)
        pixels = picture.pixels
        if pixels.shape[:2] != self.size.shape:
            raise InputError(f"image must have the size of the sets, {self.size.shape}, got {pixels.shape[:2]}")
        rgb = pixels if pixels.shape[2] == 3 and not channels else read_image(shown(picture, channels))
        return size_map(self.size, under=rgb)

    def save(self, path: str | Path) -> None:
        """Write one file."""
        meta = {
            "class_names": list(self.class_names),
            "seed": self.seed,
            "fresh": self.fresh,
            "image_key": self.image_key,
            "level": list(self.level),
            "promise": self.promise,
            "model": self.model,
            "hierarchy": None if self.hierarchy is None else self.hierarchy.as_dict(),
            "values": [list(pair) for pair in self.values],
        }
        write_archive(path, kind=KIND, version=FORMAT_VERSION, meta=meta, arrays={"members": self.packed})


def load_sets(path: str | Path) -> TruthSets:
    """Read the sets of an image."""
    found: Archive = read_archive(path, kind=KIND, version=FORMAT_VERSION)
    try:
        meta, packed = found.meta, found.arrays["members"]
        names, tree = tuple(meta["class_names"]), meta["hierarchy"]
        if packed.ndim != 3 or packed.dtype != np.uint8 or packed.shape[2] != -(-len(names) // 8):
            raise ValueError(f"`members` of shape {packed.shape} for {len(names)} classes")
        if len(names) % 8 and (packed[..., -1] & (0xFF >> len(names) % 8)).any():
            raise ValueError(f"`members` beyond the {len(names)} classes")
        hierarchy = None if tree is None else hierarchy_from_json(tree, source=str(path))
        risk, pixels = meta["level"]
        plain = {key: meta[key] for key in ("seed", "fresh", "image_key", "promise", "model")}
        plain["values"] = as_values(meta["values"]) or BYTES
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: must hold the sets of an image, got: {error}") from None
    return TruthSets(packed, names, level=(risk, pixels), hierarchy=hierarchy, **plain)
