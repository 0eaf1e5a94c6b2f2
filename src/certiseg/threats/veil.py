"""Fog, darkness, haze and loss of contrast: every value moves towards an airlight c, T_t x = c + e^(-t d) (x - c)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import digest
from certiseg.errors import InputError
from certiseg.threats.base import Path, Pixels, Threat
from certiseg.words import no_less, no_more

_LEAST_CONTRAST = 0.02
"""Contrast at which an object counts as just visible: -ln 0.02 = 3.912."""


@dataclass(frozen=True, eq=False)
class Veil(Threat):
    """T_t x = c + e^(-t d) (x - c), with the airlight c that each kind of veil has."""

    @abstractmethod
    def airlight_of(self, pixels: Pixels) -> NDArray[np.float32]:
        """c, for the image that the threat is applied to."""

    def along(self, pixels: Pixels) -> Path:
        airlight = self.airlight_of(pixels)
        difference = pixels - airlight

        def veil(t: float, out: Pixels) -> None:
            np.multiply(difference, self.passed(t), out=out)
            out += airlight
            np.clip(out, 0, 1, out=out)  # rounding alone can leave [0, 1]

        return veil

    def passed(self, t: float) -> Any:
        """The part of the light that passes: e^(-t), or e^(-t d) at each pixel."""
        return np.float32(np.exp(-t))


@dataclass(frozen=True, eq=False)
class Fog(Veil):
    """Fog of a given airlight in [0, 1]; depth: (H, W), the distance of every pixel, say in metres, or 1 everywhere."""

    airlight: float = 0.8
    depth: NDArray[np.floating] | None = None
    name = "fog"

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.airlight, int | float | np.number)
        if not (number and 0 <= self.airlight <= 1):
            raise InputError(f"airlight must lie in [0, 1], got {self.airlight!r}")
        object.__setattr__(self, "airlight", float(self.airlight))
        if self.depth is not None:
            depth = np.ascontiguousarray(self.depth)
            if depth.ndim != 2 or depth.dtype.kind not in "fiu" or depth.size == 0:
                raise InputError(f"depth must be numbers of shape (H, W), got {depth.dtype} {depth.shape}")
            depth = depth.astype(np.float32)
            if not (np.isfinite(depth).all() and depth.min() >= 0 and depth.max() > 0):
                raise InputError("depth must be finite, not negative and not 0 everywhere, got other values")
            object.__setattr__(self, "depth", depth)

    def require_fits(self, pixels: Pixels) -> None:
        super().require_fits(pixels)
        if self.depth is not None and self.depth.shape != pixels.shape[:2]:
            raise InputError(f"depth must have the size of the image, {pixels.shape[:2]}, got {self.depth.shape}")

    def airlight_of(self, pixels: Pixels) -> NDArray[np.float32]:
        return np.full(pixels.shape[-1], self.airlight, np.float32)

    def passed(self, t: float) -> Any:
        return super().passed(t) if self.depth is None else np.exp(np.float32(-t) * self.depth)[..., None]

    def words(self, t: float) -> str:
        if self.depth is None:
            return f"fog of density up to {no_more(100 * (1 - np.exp(-t)))} %"
        return f"visibility down to {no_less(-np.log(_LEAST_CONTRAST) / t)} m" if t > 0 else "no fog"

    def describe(self) -> str:
        if self.depth is None:
            return f"fog of airlight {self.airlight:g}, the same at every pixel"
        near, middle, far = np.quantile(self.depth, (0, 0.5, 1))
        metres = f"{near:.3g} to {far:.3g}, half of the pixels up to {middle:.3g}"
        return f"fog of airlight {self.airlight:g}, by the given depth map, read as metres: {metres}"

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        meta, arrays = super().pack()
        if self.depth is not None:
            arrays = {"depth": self.depth}
        return {**meta, "airlight": self.airlight, "depth": None if self.depth is None else digest(self.depth)}, arrays


@dataclass(frozen=True, eq=False)
class Dark(Veil):
    """Less light: T_t x = e^(-t) x."""

    name = "dark"

    def airlight_of(self, pixels: Pixels) -> NDArray[np.float32]:
        return np.zeros(pixels.shape[-1], np.float32)

    def words(self, t: float) -> str:
        return f"light down to {no_less(100 * np.exp(-t))} %"

    def describe(self) -> str:
        return "loss of light, the same at every pixel"


@dataclass(frozen=True, eq=False)
class Haze(Veil):
    """A white veil: T_t x = 1 + e^(-t) (x - 1)."""

    name = "haze"

    def airlight_of(self, pixels: Pixels) -> NDArray[np.float32]:
        return np.ones(pixels.shape[-1], np.float32)

    def words(self, t: float) -> str:
        return f"white veil of up to {no_more(100 * (1 - np.exp(-t)))} %"

    def describe(self) -> str:
        return "a white veil (airlight 1), the same at every pixel"


@dataclass(frozen=True, eq=False)
class Flat(Veil):
    """Less contrast, around the mean of each channel of the image, which T keeps."""

    name = "flat"

    def require_fits(self, pixels: Pixels) -> None:
        super().require_fits(pixels)
        if (pixels == pixels[:1, :1]).all():
            raise InputError("image must not be of one colour for the threat flat, got one: it has no contrast to lose")

    def airlight_of(self, pixels: Pixels) -> NDArray[np.float32]:
        return np.asarray(pixels.mean(axis=(0, 1), dtype=np.float64), np.float32)

    def words(self, t: float) -> str:
        return f"contrast down to {no_less(100 * np.exp(-t))} %"

    def describe(self) -> str:
        return "loss of contrast around the mean of each channel of the image"
