"""Daylight in a street canyon: the sun, the sky, the haze, and the shadows that the two rows of houses cast."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Colour = tuple[float, float, float]

BACK, AHEAD, STEP = -80.0, 260.0, 0.5


@dataclass(frozen=True)
class Weather:
    """The light of the day in linear units: a white sheet under `ambient` alone returns `ambient`.

    `sun` points to the sun and has length one; `sky` is the linear colour overhead, `rim` that near the horizon.
    """

    name: str
    sun: Colour
    sunlight: Colour
    ambient: Colour
    sky: Colour
    rim: Colour
    cloudiness: float
    cloud: Colour
    haze: float


@dataclass
class Skyline:
    """Height in metres of one row of houses along the road, and how much sun it stops."""

    offset: float
    height: Array = field(default_factory=lambda: np.zeros(int((AHEAD - BACK) / STEP), dtype=np.float32))
    stops: Array = field(default_factory=lambda: np.ones(int((AHEAD - BACK) / STEP), dtype=np.float32))

    def raise_to(self, near: float, far: float, height: float, stops: float = 1.0) -> None:
        """Record a house or a tree between two distances."""
        span = slice(max(int((near - BACK) / STEP), 0), max(int((far - BACK) / STEP), 0))
        self.stops[span] = np.where(self.height[span] < height, np.float32(stops), self.stops[span])
        self.height[span] = np.maximum(self.height[span], np.float32(height))


class Light:
    """The light that reaches a place in the street, from the sun and from the sky."""

    def __init__(self, weather: Weather, left: Skyline, right: Skyline) -> None:
        self.weather = weather
        self.screen = right if weather.sun[0] > 0 else left

    def reach(self, s: Array, y: Array, z: Array) -> Array:
        """The share of sunlight, 0 to 1, that gets past the row of houses on the sunny side."""
        sx, sy, sz = (np.float32(value) for value in self.weather.sun)
        way = (np.float32(self.screen.offset) - s) / sx
        path = np.maximum(way, np.float32(0.0))
        crossing = z + sz * path
        slot = np.clip((crossing - np.float32(BACK)) / np.float32(STEP), 0, len(self.screen.height) - 1).astype(
            np.int32
        )
        clearance = y + sy * path - self.screen.height[slot]
        passed = np.clip(clearance / (np.float32(0.2) + np.float32(0.03) * path) + np.float32(0.5), 0, 1)
        passed = np.where(way > np.float32(-0.5), passed, np.float32(1.0))
        share: Array = np.maximum(passed, 1 - self.screen.stops[slot])
        return share

    def reach_at(self, s: float, y: float, z: float) -> float:
        """The share of sunlight at one place."""
        s_, y_, z_ = (np.array([value], dtype=np.float32) for value in (s, y, z))
        return float(self.reach(s_, y_, z_)[0])

    def facing(self, normal: Colour) -> float:
        """The cosine between a surface and the sun, or 0 when the surface looks away."""
        return max(0.0, sum(a * b for a, b in zip(normal, self.weather.sun, strict=True)))

    def on(self, normal: Colour, reach: Array, openness: Array) -> Array:
        """Linear light (3, rows, columns) on a surface: sky seen through `openness`, sun through `reach`."""
        ambient, sunlight = (
            np.array(c, dtype=np.float32).reshape(3, 1, 1) for c in (self.weather.ambient, self.weather.sunlight)
        )
        light = (ambient * np.float32(0.75 + 0.25 * normal[1])) * openness
        cosine = self.facing(normal)
        return light + (sunlight * np.float32(cosine)) * reach if cosine > 0 else light

    def on_spot(self, normal: Colour, reach: float) -> Colour:
        """Linear light on one small surface."""
        sky, cosine = 0.75 + 0.25 * normal[1], self.facing(normal) * reach
        r, g, b = (a * sky + s * cosine for a, s in zip(self.weather.ambient, self.weather.sunlight, strict=True))
        return r, g, b
