"""Trees: bare winter crowns grown by branching, and leafy crowns built of clumps."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from streets.camera import place
from streets.canvas import Stage, planes, shade
from streets.draws import Draws, stream
from streets.labels import TREE, VOID
from streets.light import Colour

Array = npt.NDArray[np.float32]
Segment = tuple[Array, Array, Array]
LEAVES: dict[str, Colour] = {"leafy": (92, 106, 54), "evergreen": (60, 74, 46)}


class Cut(NamedTuple):
    """The block of an upright cut-out, its pixels per metre, and the pixel of its foot within the block."""

    top: int
    left: int
    rows: int
    columns: int
    scale: float
    foot_x: float
    foot_y: float

    def metres(self) -> tuple[Array, Array]:
        """Metres right of the foot (1, columns) and above it (rows, 1)."""
        u = (np.arange(self.columns, dtype=np.float32) - np.float32(self.foot_x)) / np.float32(self.scale)
        v = (np.float32(self.foot_y) - np.arange(self.rows, dtype=np.float32)) / np.float32(self.scale)
        return u[None, :], v[:, None]


def _cut(stage: Stage, s: float, z: float, width: float, height: float) -> Cut | None:
    """The part of a cut-out of so many metres at (s, z) that is inside the picture; None when nothing is."""
    points, depth = stage.camera.pixels(place(s, 0.0, z)[None, :])
    if float(depth[0]) < 2.0:
        return None
    x, y, scale = float(points[0, 0]), float(points[0, 1]), stage.camera.scale(float(depth[0]))
    left, right = max(0, int(x - width / 2 * scale)), min(stage.camera.width, int(x + width / 2 * scale) + 1)
    top, bottom = max(0, int(y - height * scale)), min(stage.camera.height, int(y) + 1)
    if right <= left or bottom <= top:
        return None
    return Cut(top, left, bottom - top, right - left, scale, x - left, y - top)


def bare_tree(stage: Stage, s: float, z: float, height: float, seed: int) -> None:
    """A tree in winter: trunk, boughs and twigs, with a haze of fine twigs through which the sky shows.

    As people who label pictures do, the crown counts as Tree out to its outline, gaps between twigs included.
    """
    cut = _cut(stage, s, z, height * 1.1, height * 1.1)
    if cut is None:
        return
    scale = cut.scale
    wood = Image.new("L", (cut.columns, cut.rows))
    pen = ImageDraw.Draw(wood)
    for start, end, girth in _branches(stream(seed), height, _generations(height * scale)):
        lines = np.concatenate([start, end], axis=1) * np.array([scale, -scale] * 2, dtype=np.float32)
        lines += np.array([cut.foot_x, cut.foot_y] * 2, dtype=np.float32)
        for line, thick in zip(lines.tolist(), girth.tolist(), strict=True):
            pen.line(line, fill=255, width=max(1, int(thick * scale + 0.5)))
    twigs = np.asarray(wood.filter(ImageFilter.BoxBlur(max(1.0, 0.22 * scale))), dtype=np.float32)
    solid = np.asarray(wood, dtype=np.float32) / np.float32(255.0)
    u, v = cut.metres()
    noise = stage.grain.rough(u * 22 + np.float32(seed % 97), v * 22)
    noise = noise + stage.grain.cloud(u * 16, v * 16 + np.float32(seed % 89))
    crown = (twigs > np.float32(16.0) + 9 * noise) | (solid > 0)
    fine = np.clip(twigs / np.float32(170.0) + noise * np.float32(0.36) * (twigs > 9), 0, 0.85)
    opaque = np.clip(np.maximum(solid * np.float32(0.94), fine * (v > np.float32(1.2))), 0, 1)
    lit = 0.35 + 0.65 * stage.light.reach_at(s, height * 0.7, z)
    bark = planes(shade((84, 75, 66), stage.light.on_spot((-0.1, 0.3, -0.6), lit)))
    behind = stage.picture[:, cut.top : cut.top + cut.rows, cut.left : cut.left + cut.columns]
    colour = behind + (bark * (1 + np.float32(0.25) * noise) - behind) * opaque
    label = np.where(crown, np.uint8(TREE), np.uint8(VOID))
    stage.cover(cut.top, cut.left, colour, label, np.float32(z))


def _generations(pixels: float) -> int:
    """How often boughs branch in a crown so many pixels tall."""
    return 4 + sum(pixels > limit for limit in (60, 150, 330))


def _branches(rng: Draws, height: float, depth: int) -> list[Segment]:
    """Boughs by generation as (starts, ends, girths); each bough ends in three that turn away from it."""
    start = np.array([[0.0, -0.05]], dtype=np.float32)
    way = np.array([[rng.between(-0.06, 0.06), 1.0]], dtype=np.float32) * np.float32(height * 0.25)
    girth = np.array([height * 0.04], dtype=np.float32)
    segments = []
    for generation in range(depth):
        end = start + way
        segments.append((start, end, girth))
        count = 3 if generation else 4
        start = np.repeat(end, count, axis=0) - np.repeat(way, count, axis=0) * rng.uniform(
            0.0, 0.35, (len(end) * count, 1)
        ).astype(np.float32)
        lean = np.tile(np.linspace(-0.36, 0.36, count), len(end)) + rng.uniform(-0.16, 0.16, len(end) * count)
        t = lean.astype(np.float32)
        c, k = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
        old = np.repeat(way, count, axis=0)
        way = np.stack([old[:, 0] * c - old[:, 1] * k, old[:, 0] * k + old[:, 1] * c], axis=1)
        way = way * rng.uniform(0.58, 0.86, (len(way), 1)).astype(np.float32)
        way[:, 1] += np.float32(height * 0.008)
        girth = np.repeat(girth, count) * np.float32(0.55)
    return segments


def leafy_tree(stage: Stage, s: float, z: float, height: float, kind: str, seed: int) -> None:
    """A tree in leaf: a trunk under a crown of clumps, light on the sunny side and dark below."""
    wide = height * (0.5 if kind == "evergreen" else 0.78)
    cut = _cut(stage, s, z, wide * 1.25, height * 1.06)
    if cut is None:
        return
    ink = Image.new("L", (cut.columns, cut.rows))
    pen = ImageDraw.Draw(ink)
    girth, scale = height * 0.022, cut.scale
    stem = ((-girth, 0.0), (girth, 0.0), (girth * 0.7, height * 0.5), (-girth * 0.7, height * 0.5))
    pen.polygon([(cut.foot_x + x * scale, cut.foot_y - y * scale) for x, y in stem], fill=40)
    crown = _clumps(stream(seed), wide / 2, height * 0.36, kind == "evergreen", stage.light.weather.sun[0])
    for x, y, radius, tone in crown:
        cx, cy, r = cut.foot_x + x * scale, cut.foot_y - (height * 0.62 + y) * scale, max(radius * scale, 0.7)
        pen.ellipse((cx - r, cy - r * 0.8, cx + r, cy + r * 0.8), fill=int(tone))
    sun = stage.light.weather.sun
    lit = stage.light.on_spot((sun[0] * 0.6, 0.6, -0.4), 0.8 * stage.light.reach_at(s, height * 0.7, z))
    tone_map, inside = _foliage(stage, ink, cut, girth)
    label = np.where(inside, np.uint8(TREE), np.uint8(VOID))
    stage.cover(cut.top, cut.left, planes(shade(LEAVES[kind], lit)) * tone_map, label, np.float32(z))


def _clumps(rng: Draws, half: float, tall: float, cone: bool, sun: float) -> list[list[float]]:
    """Clumps of a crown as (x, y, radius, tone), dark ones behind first; a crown is a few masses, not one ball."""
    masses = rng.uniform(-0.55, 0.55, (7, 3))
    spread = rng.uniform(0.35, 0.62, 7)
    ball = rng.uniform(-1, 1, (800, 3))
    ball = ball[(ball * ball).sum(axis=1) < 1.0][:360]
    owner = rng.integers(0, 7, len(ball))
    xyz = ball * (0.95 if cone else spread[owner][:, None]) + (0.0 if cone else masses[owner])
    if cone:
        xyz[:, 0] *= 0.2 + 0.8 * (1 - xyz[:, 1]) / 2
    order = np.argsort(-xyz[:, 2], kind="stable")
    xyz, ball = xyz[order], ball[order]
    light = 0.3 * xyz[:, 1] + 0.55 * ball[:, 1] + 0.4 * ball[:, 0] * (1 if sun > 0 else -1) - 0.25 * ball[:, 2]
    tone = np.clip(92 + 70 * light + rng.uniform(-26, 26, len(xyz)), 14, 250)
    radius = rng.uniform(0.07, 0.16, len(xyz)) * min(half, tall) * 1.2
    rows: list[list[float]] = np.stack([xyz[:, 0] * half, xyz[:, 1] * tall, radius, tone], axis=1).tolist()
    return rows


def _foliage(stage: Stage, ink: Image.Image, cut: Cut, trunk: float) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Tones turned into leaves, with noise and a ragged outline: the linear tone, and where the tree is."""
    drawn = np.asarray(ink) > 0
    tone = np.asarray(ink.filter(ImageFilter.BoxBlur(max(0.7, 0.10 * cut.scale))), dtype=np.float32)
    tone = tone / np.float32(105.0)
    u, v = cut.metres()
    leaves = stage.grain.rough(u * 14, v * 14) + stage.grain.rough(u * 31, v * 31)
    noise = leaves * np.float32(0.30) + stage.grain.cloud(u * 14, v * 14) * np.float32(0.75)
    spread = Image.fromarray(drawn.astype(np.uint8) * 255).filter(ImageFilter.BoxBlur(max(0.7, 0.28 * cut.scale)))
    edge = np.asarray(spread, dtype=np.float32) / np.float32(255.0)
    kept = (edge + np.float32(0.30) * noise > np.float32(0.62)) | (np.abs(u) < np.float32(trunk))
    return np.clip(tone * tone * (1 + noise), 0.02, 3.0), drawn & kept
