"""The calibrated sets of one image, with the noise they were drawn from: what they say, as pictures and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from certiseg.archive import write_archive
from certiseg.errors import InputError
from certiseg.images import ImageLike, read_image, shown
from certiseg.noise import require_image
from certiseg.render.pictures import size_map
from certiseg.words import COMPARISON, EXPLORATION, PROMISE

if TYPE_CHECKING:
    from certiseg.truth.calibration import Calibration

KIND = "truth"
FORMAT_VERSION = 2
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
"""How many bits every byte has."""


@dataclass(frozen=True, eq=False)
class TruthSets:
    """Sets that hold the truth; see `claim()` for what is promised about them."""

    packed: NDArray[np.uint8]
    """(H, W, bytes): the classes of every pixel, a bit for each, as np.packbits has them."""
    calibration: Calibration
    """What they were made by, which says what is promised about them."""
    seed: int
    """Of the noise of the one pass."""
    fresh: bool
    """Whether the seed came from fresh entropy, as a promise needs it."""
    image_key: str
    level: tuple[float, float]
    """Risk and pixels."""

    def __repr__(self) -> str:
        return f"TruthSets({self.packed.shape[0]}x{self.packed.shape[1]}, {self.mean_size:.2f} classes on average)"

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, or their numbers where the model does not name them."""
        return self.calibration.class_names

    @property
    def role(self) -> str:
        """What the sets are: a promise, a comparison or exploration."""
        roles = [role for role, _ in self.calibration.against(self.level, fresh=self.fresh, key=self.image_key)]
        return next((role for role in (EXPLORATION, COMPARISON) if role in roles), PROMISE)

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
        (risk, pixels), size = self.level, self.packed.shape[:2]
        return self.calibration.claim(risk=risk, pixels=pixels, size=size, fresh=self.fresh, key=self.image_key)

    def summary(self) -> dict[str, Any]:
        """What a program, or a reader in a hurry, wants to know."""
        sizes, counts = np.unique(self.size, return_counts=True)
        share = self.members.mean(axis=(0, 1))
        order = np.argsort(-share, kind="stable")
        return {
            "format_version": FORMAT_VERSION,
            "method": "truth",
            "role": self.role,
            "promise": "about the truth" if self.role == PROMISE else "none",
            "size": list(self.size.shape),
            "risk": self.level[0],
            "pixels": self.level[1],
            "seed": self.seed,
            "fresh": self.fresh,
            "mean_set_size": self.mean_size,
            "singletons": self.singletons,
            "set_sizes": {str(s): float(c / self.size.size) for s, c in zip(sizes.tolist(), counts, strict=True)},
            "in_sets": {self.class_names[c]: float(share[c]) for c in order.tolist() if share[c] > 0},
            "model": self.calibration.model.name,
            "claim": self.claim(),
        }

    def overlay(self, image: ImageLike, *, channels: Sequence[int] = ()) -> Image.Image:
        """The size of every set over the image, with a legend; channels: which of them (from 1) are shown."""
        picture = self.calibration.open(image)
        pixels = picture.pixels
        require_image(pixels, self.image_key, "image")
        if pixels.shape[:2] != self.size.shape:
            raise InputError(f"image must have the size of the sets, {self.size.shape}, got {pixels.shape[:2]}")
        rgb = pixels if pixels.shape[2] == 3 and not channels else read_image(shown(picture, channels))
        return size_map(self.size, under=rgb)

    def save(self, path: str | Path) -> None:
        """Write one file, with the whole calibration: who has it can compute the promise again."""
        meta = {
            "calibration": self.calibration.content(),
            "seed": self.seed,
            "fresh": self.fresh,
            "image_key": self.image_key,
            "level": list(self.level),
        }
        write_archive(path, kind=KIND, version=FORMAT_VERSION, meta=meta, arrays={"members": self.packed})
