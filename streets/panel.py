"""Flat sheets painted in metres and hung upright in the street, in perspective: facades, hoardings, sides of buses."""

import numpy as np
import numpy.typing as npt

from streets.camera import NEAR, Camera
from streets.canvas import Stage, planes
from streets.labels import VOID
from streets.light import Colour

Array = npt.NDArray[np.float32]


class Panel:
    """A flat sheet painted in metres, u to the right and v up, to be hung upright in the street."""

    def __init__(self, width: float, height: float, scale: float, colour: Colour, label: int) -> None:
        self.width, self.height = width, height
        self.rows = max(2, int(height * scale))
        self.columns = max(2, int(width * scale))
        self.rgb = np.empty((3, self.rows, self.columns), dtype=np.float32)
        self.rgb[:] = planes(colour)
        self.label = np.full((self.rows, self.columns), label, dtype=np.uint8)

    @property
    def scale(self) -> float:
        """Texels per metre."""
        return self.rows / self.height

    def span(self, u0: float, v0: float, u1: float, v1: float) -> tuple[slice, slice]:
        """The rows and columns of a rectangle, at least one texel each way when inside."""
        across, up = self.columns / self.width, self.rows / self.height
        left, right = round(u0 * across), round(u1 * across)
        top, bottom = round((self.height - v1) * up), round((self.height - v0) * up)
        return slice(max(top, 0), max(bottom, top + 1, 0)), slice(max(left, 0), max(right, left + 1, 0))

    def rect(self, u0: float, v0: float, u1: float, v1: float, colour: Colour, label: int | None = None) -> None:
        """Fill a rectangle."""
        here = self.span(u0, v0, u1, v1)
        self.rgb[:, *here] = planes(colour)
        if label is not None:
            self.label[here] = label

    def fade(self, u0: float, v0: float, u1: float, v1: float, top: Colour, bottom: Colour) -> None:
        """Fill a rectangle with a vertical gradient."""
        here = self.span(u0, v0, u1, v1)
        rows = self.label[here].shape[0]
        t = (np.arange(rows, dtype=np.float32) / np.float32(max(rows - 1, 1)))[:, None]
        first, last = planes(top), planes(bottom)
        self.rgb[:, *here] = first + (last - first) * t

    def tint(self, u0: float, v0: float, u1: float, v1: float, factor: float) -> None:
        """Multiply a rectangle: shade below a sill, light on an edge."""
        self.rgb[:, *self.span(u0, v0, u1, v1)] *= np.float32(factor)

    def axes(self) -> tuple[Array, Array]:
        """The metres of the middle of each column (1, columns) and of each row (rows, 1)."""
        u = (np.arange(self.columns, dtype=np.float32) + np.float32(0.5)) * np.float32(self.width / self.columns)
        v = np.float32(self.height) - (np.arange(self.rows, dtype=np.float32) + np.float32(0.5)) * np.float32(
            self.height / self.rows
        )
        return u[None, :], v[:, None]


def visible_scale(camera: Camera, a: tuple[float, float], b: tuple[float, float]) -> float:
    """Pixels per metre at the nearest visible part of an upright wall over the line a b; 0 when out of sight."""
    s, z = (np.array(pair, dtype=np.float32) for pair in zip(a, b, strict=True))
    across, depth = camera.view(s, z)
    t = np.linspace(0, 1, 65, dtype=np.float32)
    x = across[0] + (across[1] - across[0]) * t
    d = depth[0] + (depth[1] - depth[0]) * t
    half = np.float32(camera.width / 2 / camera.focal)
    inside = d[(d > NEAR) & (np.abs(x) <= half * d * np.float32(1.05))]
    if inside.size:
        return camera.focal / float(inside.min())
    wide = bool((d > NEAR).any()) and float((x[d > NEAR] / d[d > NEAR]).min()) < 0 < float((x / d)[d > NEAR].max())
    return camera.focal / max(float(d.min()), NEAR) if wide else 0.0


def texel_scale(scale: float) -> float:
    """Texels per metre that suit a wall seen at so many pixels per metre."""
    return float(np.clip(scale * 0.62, 2.5, 90.0))


def hang(
    stage: Stage, panel: Panel, a: tuple[float, float], b: tuple[float, float], base: float, normal: Colour
) -> None:
    """Hang a panel upright over the line from a to b on the map, its foot at height `base`, lit by its normal.

    In a level camera an upright wall has one depth and one u per column, so each column averages its own stretch of
    the panel exactly (a running sum along u): no shimmer at grazing angles.
    """
    camera = stage.camera
    s, z = (np.array(pair, dtype=np.float32) for pair in zip(a, b, strict=True))
    across, depth = camera.view(s, z)
    edges, ratio = _columns(camera, across, depth)
    if edges.size < 2:
        return
    slant = (across[1] - across[0]) - ratio * (depth[1] - depth[0])
    u_edge = np.clip((ratio * depth[0] - across[0]) / np.where(slant == 0, np.float32(1e-6), slant), 0, 1)
    u = (u_edge[:-1] + u_edge[1:]) * np.float32(0.5)
    d = depth[0] + u * (depth[1] - depth[0])
    keep = d > NEAR
    if not keep.any():
        return
    per = np.float32(camera.focal) / np.maximum(d, np.float32(NEAR))
    highest = np.float32(camera.horizon) - (np.float32(base + panel.height - camera.eye)) * per[keep]
    lowest = np.float32(camera.horizon) - (np.float32(base - camera.eye)) * per[keep]
    top = max(0, int(np.floor(highest.min())))
    bottom = min(camera.height, int(np.ceil(lowest.max())) + 1)
    if bottom <= top:
        return
    rows = np.arange(top, bottom, dtype=np.float32) + np.float32(0.5)
    v = (np.float32(camera.horizon) - rows)[:, None] / per[None, :] + np.float32(camera.eye - base)
    colour, label = _texels(panel, u_edge, u, v)
    label = np.where((v >= 0) & (v < np.float32(panel.height)) & keep[None, :], label, np.uint8(VOID))
    light = _daylight(stage, normal, s[0] + u * (s[1] - s[0]), v + np.float32(base), z[0] + u * (z[1] - z[0]))
    stage.cover(top, int(edges[0]), colour * light, label, d[None, :])


def _daylight(stage: Stage, normal: Colour, s: Array, y: Array, z: Array) -> Array:
    """The light on an upright wall at columns (s, z) and heights y: less sky near the foot of the street."""
    if stage.light.facing(normal) > 0:
        reach = stage.light.reach((s + np.float32(0.3 * normal[0]))[None, :], y, z[None, :])
    else:
        reach = np.zeros((1, s.size), dtype=np.float32)
    return stage.light.on(normal, reach, np.clip(np.float32(0.72) + y * np.float32(0.06), 0.5, 1.1))


def _columns(camera: Camera, across: Array, depth: Array) -> tuple[npt.NDArray[np.int32], Array]:
    """The left edges of the columns a wall may cover, one more than the columns, and their view ratios."""
    ratios = []
    for x, d, other_x, other_d in (
        (across[0], depth[0], across[1], depth[1]),
        (across[1], depth[1], across[0], depth[0]),
    ):
        if d <= NEAR:
            if other_d <= NEAR:
                return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
            t = (np.float32(NEAR) - d) / (other_d - d)
            x, d = x + t * (other_x - x), np.float32(NEAR)
        ratios.append(float(x / d))
    low, high = (camera.width / 2 + camera.focal * r for r in (min(ratios), max(ratios)))
    first, last = max(0, round(low)), min(camera.width, round(high))
    edges = np.arange(first, last + 1, dtype=np.int32) if last > first else np.zeros(0, dtype=np.int32)
    return edges, (edges.astype(np.float32) - np.float32(camera.width / 2)) / np.float32(camera.focal)


def _texels(panel: Panel, u_edge: Array, u: Array, v: Array) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Linear colour and label of a panel at columns u and heights v, averaged along u."""
    total = np.zeros((3, panel.rows, panel.columns + 1), dtype=np.int32)
    np.cumsum(np.clip(panel.rgb, 0, 255).astype(np.int32), axis=2, out=total[:, :, 1:])
    ends = u_edge * np.float32(panel.columns)
    low = np.clip(np.floor(np.minimum(ends[:-1], ends[1:])), 0, panel.columns - 1).astype(np.int32)
    high = np.clip(np.ceil(np.maximum(ends[:-1], ends[1:])), low + 1, panel.columns).astype(np.int32)
    row = np.clip((np.float32(panel.height) - v) * np.float32(panel.rows / panel.height), 0, panel.rows - 1)
    start = row.astype(np.int32) * np.int32(panel.columns + 1)
    flat = total.reshape(3, -1)
    mean = (flat.take(start + high, axis=1) - flat.take(start + low, axis=1)).astype(np.float32)
    mean *= 1 / (255 * (high - low)).astype(np.float32)
    mean *= mean
    middle = np.clip((u * np.float32(panel.columns)).astype(np.int32), 0, panel.columns - 1)
    return mean, panel.label.take(row.astype(np.int32) * np.int32(panel.columns) + middle)
