"""The pinhole camera of a street: places in the street become pixels, and pixels become places on the ground."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
NEAR = 0.6


@dataclass(frozen=True)
class Camera:
    """A level pinhole camera over a street that may bend.

    A place is (s, y, z): metres to the right of the middle of the road, above it, and along it. The camera stands at
    (lane, eye, 0), is turned by the angle whose tangent is `turn`, and the middle of the road drifts sideways by
    bend z^2 / 2. Only +, -, *, / and sqrt are used, so that every machine draws the same bytes.
    """

    width: int
    height: int
    focal: float
    horizon: float
    eye: float = 1.5
    lane: float = -1.7
    bend: float = 0.0
    turn: float = 0.0

    @property
    def cosine(self) -> float:
        """The cosine of the turn."""
        return 1.0 / float(np.sqrt(1.0 + self.turn * self.turn))

    def drift(self, z: Array) -> Array:
        """The sideways drift of the middle of the road; straight on after 220 m."""
        near = np.minimum(z, np.float32(220.0))
        return (near * (z - np.float32(0.5) * near) * np.float32(self.bend)).astype(np.float32, copy=False)

    def view(self, s: Array, z: Array) -> tuple[Array, Array]:
        """Places on the map as (across, depth) seen from the camera."""
        c = np.float32(self.cosine)
        t = np.float32(self.turn * self.cosine)
        x = s - np.float32(self.lane) + self.drift(z)
        return x * c - z * t, x * t + z * c

    def pixels(self, places: Array) -> tuple[Array, Array]:
        """Pixel coordinates (n, 2) and depths (n,) of places (n, 3)."""
        across, depth = self.view(places[:, 0], places[:, 2])
        safe = np.maximum(depth, np.float32(NEAR))
        px = np.float32(self.width / 2) + np.float32(self.focal) * across / safe
        py = np.float32(self.horizon) - np.float32(self.focal) * (places[:, 1] - np.float32(self.eye)) / safe
        return np.stack([px, py], axis=1), depth

    def ground(self, rows: Array, columns: Array, level: float) -> tuple[Array, Array]:
        """The (s, z) where the rays of a block of pixels below the horizon meet the plane y = level."""
        depth = np.float32(self.focal * (self.eye - level)) / (rows - np.float32(self.horizon))
        across = depth[:, None] * ((columns - np.float32(self.width / 2)) / np.float32(self.focal))[None, :]
        c = np.float32(self.cosine)
        t = np.float32(self.turn * self.cosine)
        z = (depth[:, None] * c - across * t).astype(np.float32, copy=False)
        s = across * c + depth[:, None] * t + np.float32(self.lane) - self.drift(z)
        return s, z

    def scale(self, z: float) -> float:
        """Pixels per metre for an upright thing z metres down the road."""
        return self.focal / max(z, NEAR)


def place(s: float, y: float, z: float) -> Array:
    """One place as a row of three numbers."""
    return np.array([s, y, z], dtype=np.float32)
