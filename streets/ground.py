"""The ground: asphalt, lane markings, kerbs, paving slabs, parking bays and the shadows that lie on all of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from streets.camera import Camera
from streets.canvas import Stage, linear, planes
from streets.labels import MARKING, MARKING_OFF, PARKING, ROAD, SHOULDER, SIDEWALK, VEGETATION
from streets.lettering import word
from streets.light import Colour

Array = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Quad = list[tuple[float, float, float]]
KERB = 0.12
BAY = 2.05
LANE_REACH = 40.0


@dataclass(frozen=True)
class Road:
    """The road and its two pavements; `left` and `right` are the distances of the kerbs from the centre line."""

    left: float
    right: float
    parking: tuple[bool, bool]
    shoulder: float
    verge: tuple[float, float]
    gaps: tuple[tuple[int, float, float], ...]
    centre: str
    yellow: bool
    crossing: float
    stop: float
    text: tuple[str, float]
    arrow: float
    patches: tuple[tuple[float, float, float, float, float], ...]
    asphalt: Colour
    slab: Colour


@dataclass(frozen=True)
class Footprint:
    """Where a thing stands, for its shadow: middle, half sizes, height, how deep it shades, and on what level."""

    s: float
    z: float
    across: float
    along: float
    height: float
    contact: float = 1.0
    level: float = 0.0


def paint_ground(stage: Stage, road: Road, footprints: list[Footprint], bridge: float) -> None:
    """Paint all that lies below the horizon."""
    top, rows, columns = _below_horizon(stage.camera)
    s, z = stage.camera.ground(rows, columns, 0.0)
    label = np.full(s.shape, ROAD, dtype=np.uint8)
    tone = _asphalt(stage, road, s, z)
    colour = tone * linear(road.asphalt)
    _strips(stage, road, s, z, colour, label)
    _markings(stage, road, s, z, colour, label, tone)
    _pavement(stage, road, (rows, columns), (s, z), colour, label)
    reach = stage.light.reach(s, np.zeros_like(s), z)
    contact, cast = _shadows(stage, footprints, top, (len(rows), len(columns)))
    if bridge > 0:
        reach = reach * ((z < np.float32(bridge - 2)) | (z > np.float32(bridge + 6)))
    lit = stage.light.on((0.0, 1.0, 0.0), reach * cast, contact * (np.float32(0.55) + np.float32(0.45) * cast))
    stage.cover(top, 0, colour * lit, label, np.minimum(z, np.float32(400.0)))


def own_lane(camera: Camera, road: Road) -> Mask:
    """The pixels of the lane in which the camera drives, from the bay, shoulder or kerb on its left to the centre."""
    top, rows, columns = _below_horizon(camera)
    s, z = camera.ground(rows, columns, 0.0)
    left = road.left - (BAY if road.parking[0] else road.shoulder)
    centre = 0.75 if road.centre == "hatched" else 0.0
    mask = np.zeros((camera.height, camera.width), dtype=bool)
    mask[top:] = (s > np.float32(-left)) & (s < np.float32(-centre)) & (z > 0) & (z < np.float32(LANE_REACH))
    return mask


def _below_horizon(camera: Camera) -> tuple[int, Array, Array]:
    """The first row below the horizon, and the middles of the rows from there on and of the columns."""
    top = max(0, int(np.ceil(camera.horizon + 0.5)))
    rows = np.arange(top, camera.height, dtype=np.float32) + np.float32(0.5)
    return top, rows, np.arange(camera.width, dtype=np.float32) + np.float32(0.5)


def _asphalt(stage: Stage, road: Road, s: Array, z: Array) -> Array:
    """The tone of the road: aggregate close by, mottling farther off, wheel tracks, patches and seams."""
    grain = stage.grain
    near = np.minimum(np.float32(1.0), 5 / z)
    middle = np.minimum(np.float32(1.0), 26 / z)
    tone = 1 + np.float32(0.20) * near * grain.rough(s * 55, z * 55)
    tone += np.float32(0.13) * middle * grain.cloud(s * 31, z * 23)
    tone += np.float32(0.11) * grain.cloud(s * np.float32(5.0), z * np.float32(1.7))
    track = np.abs(np.abs(np.abs(s) - np.float32(1.75)) - np.float32(0.72))
    tone *= np.float32(0.97) + np.float32(0.08) * np.clip(track * 2, 0, 1)
    for s0, s1, z0, z1, factor in road.patches:
        inside = (s > np.float32(s0)) & (s < np.float32(s1)) & (z > np.float32(z0)) & (z < np.float32(z1))
        tone = np.where(inside, tone * np.float32(factor), tone)
    seam = np.abs(s - np.float32(0.35) - np.float32(0.05) * grain.cloud(z * 9, z)) < np.float32(0.018)
    return np.where(seam, tone * np.float32(0.72), tone)


def _strips(stage: Stage, road: Road, s: Array, z: Array, colour: Array, label: npt.NDArray[np.uint8]) -> None:
    """Parking bays and the hard shoulder along the kerbs."""
    for side, edge, parked in ((-1, road.left, road.parking[0]), (1, road.right, road.parking[1])):
        out = s * np.float32(side)
        inside = (out < np.float32(edge)) & ~_in_gap(road, side, z)
        if parked:
            bay = inside & (out > np.float32(edge - BAY))
            colour *= np.where(bay, planes((1.28, 1.24, 1.16)), np.float32(1.0))
            label[bay] = PARKING
            line = bay & ((out < np.float32(edge - BAY + 0.1)) | (_phase(z, 5.6) < np.float32(0.1)))
            colour[:, line] = linear((176, 176, 172))[:, 0] * (
                1 + np.float32(0.2) * stage.grain.rough(s[line] * 30, z[line] * 30)
            )
            label[line] = MARKING_OFF
        elif road.shoulder > 0:
            strip = inside & (out > np.float32(edge - road.shoulder))
            sett = stage.grain.rough(s[strip] * 9, np.floor(z[strip] * 9))
            colour[:, strip] = linear((122, 118, 112))[:, 0] * (1 + np.float32(0.3) * sett)
            label[strip] = SHOULDER


def _markings(
    stage: Stage, road: Road, s: Array, z: Array, colour: Array, label: npt.NDArray[np.uint8], tone: Array
) -> None:
    """White and yellow paint, worn by the traffic."""
    driving = np.abs(s) < np.float32(0)
    inner = (-road.left + BAY * road.parking[0], road.right - BAY * road.parking[1])
    across = (s > np.float32(inner[0] + 0.3)) & (s < np.float32(inner[1] - 0.3))
    near_stop = (z > np.float32(road.stop)) & (z < np.float32(road.stop + 0.35)) & across & (s < 0)
    driving |= near_stop
    if road.centre == "dashes":
        driving |= (np.abs(s) < np.float32(0.06)) & (_phase(z, 6.0) < np.float32(2.6))
    elif road.centre == "solid":
        driving |= np.abs(np.abs(s) - np.float32(0.12)) < np.float32(0.05)
    elif road.centre == "hatched":
        driving |= (np.abs(np.abs(s) - np.float32(0.75)) < np.float32(0.06)) & (_phase(z, 4.0) < np.float32(2.8))
        stripes = (np.abs(s) < np.float32(0.66)) & (_phase(z + s * 2, 2.4) < np.float32(0.5))
        _paint(stage, stripes, s, z, colour, label, MARKING_OFF, (186, 186, 182))
    if road.crossing > 0:
        zebra = (z > np.float32(road.crossing)) & (z < np.float32(road.crossing + 3.0)) & across
        driving |= zebra & (_phase(s, 1.2) < np.float32(0.6))
    driving |= _words(road, s, z)
    _paint(stage, driving, s, z, colour, label, MARKING, (196, 196, 192))
    if road.yellow:
        edge = np.zeros(s.shape, dtype=bool)
        for side, kerb, parked in ((-1, road.left, road.parking[0]), (1, road.right, road.parking[1])):
            out = np.float32(kerb) - s * np.float32(side)
            lines = (np.abs(out - np.float32(0.28)) < np.float32(0.05)) | (
                np.abs(out - np.float32(0.48)) < np.float32(0.05)
            )
            if not parked:
                edge |= lines & ~_in_gap(road, side, z)
        _paint(stage, edge, s, z, colour, label, MARKING, (178, 160, 92))


def _words(road: Road, s: Array, z: Array) -> Mask:
    """A word and an arrow in our lane, stretched along the road as they are in life."""
    lane = -road.left / 2 if not road.parking[0] else -(road.left - BAY) / 2
    text, start = road.text
    ink = np.zeros(s.shape, dtype=bool)
    if text:
        bits = word(text)
        column = np.floor((s - np.float32(lane - 1.15)) * np.float32(bits.shape[1] / 2.3)).astype(np.int32)
        row = np.floor((np.float32(start + 3.6) - z) * np.float32(5 / 3.6)).astype(np.int32)
        inside = (column >= 0) & (column < bits.shape[1]) & (row >= 0) & (row < 5)
        ink |= inside & bits[np.clip(row, 0, 4), np.clip(column, 0, bits.shape[1] - 1)]
    if road.arrow > 0:
        along, off = z - np.float32(road.arrow), np.abs(s - np.float32(lane))
        ink |= (along > 0) & (along < np.float32(2.2)) & (off < np.float32(0.09))
        ink |= (along >= np.float32(2.2)) & (along < np.float32(4.0)) & (off < (4 - along) * np.float32(0.25))
    return ink


def _paint(
    stage: Stage, where: Mask, s: Array, z: Array, colour: Array, label: npt.NDArray[np.uint8], kind: int, paint: Colour
) -> None:
    """Lay worn paint on the asphalt."""
    u, v = s[where], z[where]
    worn = np.float32(0.75) + np.float32(0.25) * stage.grain.cloud(u * 12, v * 5)
    worn *= 1 + np.float32(0.12) * stage.grain.rough(u * 40, v * 40)
    under = colour[:, where]
    colour[:, where] = under + (linear(paint)[:, 0] - under) * np.clip(worn, 0.35, 1.0)
    label[where] = kind


def _pavement(
    stage: Stage,
    road: Road,
    axes: tuple[Array, Array],
    low: tuple[Array, Array],
    colour: Array,
    label: npt.NDArray[np.uint8],
) -> None:
    """Raised pavements with slabs, a grass verge now and then, and the stone face of the kerb."""
    s, z = low
    ps, pz = stage.camera.ground(axes[0], axes[1], KERB)
    for side, edge, verge in ((-1, road.left, road.verge[0]), (1, road.right, road.verge[1])):
        out = ps * np.float32(side)
        top = (out > np.float32(edge)) & ~_in_gap(road, side, pz)
        face = (s * np.float32(side) > np.float32(edge)) & ~_in_gap(road, side, z) & ~top
        u, v, beyond = ps[top], pz[top], out[top] - np.float32(edge)
        slab = stage.grain.rough(np.floor(u / np.float32(0.6)), np.floor(v / np.float32(0.75)))
        speck = stage.grain.rough(u * 40, v * 40) * np.minimum(np.float32(1.0), 6 / v)
        joint = (_phase(u, 0.6) < np.float32(0.025)) | (_phase(v, 0.75) < np.float32(0.03))
        tone = (
            1 + np.float32(0.10) * slab + np.float32(0.09) * speck + np.float32(0.10) * stage.grain.cloud(u * 5, v * 3)
        )
        tone = np.where(joint & (v < 16), tone * np.float32(0.72), tone)
        paving = linear(road.slab)[:, 0] * tone
        stone = beyond < np.float32(0.15)
        paving[:, stone] = linear((150, 148, 142))[:, 0] * (1 + np.float32(0.12) * speck[stone])
        kinds = np.full(u.shape, SIDEWALK, dtype=np.uint8)
        grass = (beyond > np.float32(0.15)) & (beyond < np.float32(verge))
        blades = np.float32(0.35) * stage.grain.rough(u[grass] * 40, v[grass] * 25) + np.float32(
            0.3
        ) * stage.grain.cloud(u[grass] * 9, v[grass] * 9)
        paving[:, grass] = linear((98, 118, 58))[:, 0] * (1 + blades)
        kinds[grass] = VEGETATION
        colour[:, top], label[top] = paving, kinds
        colour[:, face] = linear((104, 102, 98))[:, 0] * (
            1 + np.float32(0.15) * stage.grain.rough(z[face] * 3, z[face] * 7)
        )
        label[face] = SIDEWALK


def _in_gap(road: Road, side: int, z: Array) -> Mask:
    """Where a side street opens on one side."""
    inside = np.zeros(z.shape, dtype=bool)
    for where, near, far in road.gaps:
        if where == side:
            inside |= (z > np.float32(near)) & (z < np.float32(far))
    return inside


def _shadows(stage: Stage, footprints: list[Footprint], top: int, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Contact shade under things and the shadows they cast, as two factors of the light on the ground."""
    sx, sy, sz = stage.light.weather.sun
    under: list[tuple[Quad, int]] = []
    cast: list[tuple[Quad, int]] = []
    for foot in (foot for foot in footprints if foot.z < 70):
        base = _rectangle(foot, 0.0)
        under.append((_rectangle(foot, 0.13), int(255 - 219 * foot.contact)))
        ds, dz = -sx / sy * foot.height, -sz / sy * foot.height
        tip = [(s + ds, foot.level, z + dz) for s, _, z in base]
        cast.append((tip, 0))
        cast += [([base[k - 1], base[k], tip[k], tip[k - 1]], 0) for k in range(4)]
    soft = max(1.0, stage.camera.width * 0.004)
    return _fill(stage, under, top, shape, soft), _fill(stage, cast, top, shape, soft * 0.5)


def _rectangle(foot: Footprint, margin: float) -> Quad:
    """The four corners of a footprint, a margin wider all round."""
    across, along = foot.across + margin, foot.along + margin
    corners = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return [(foot.s + a * across, foot.level, foot.z + c * along) for a, c in corners]


def _fill(stage: Stage, quads: list[tuple[Quad, int]], top: int, shape: tuple[int, int], blur: float) -> Array:
    """Dark quads on a light ground, blurred, as 0..1; quads that reach behind the camera are left out."""
    image = Image.new("L", (shape[1], shape[0]), 255)
    pen = ImageDraw.Draw(image)
    if quads:
        points, depth = stage.camera.pixels(np.array([place for quad, _ in quads for place in quad], dtype=np.float32))
        points[:, 1] -= np.float32(top)
        for corners, near, (_, value) in zip(
            points.reshape(-1, 8).tolist(), depth.reshape(-1, 4).min(axis=1).tolist(), quads, strict=True
        ):
            if near > 0.9:
                pen.polygon(corners, fill=value)
    return np.asarray(image.filter(ImageFilter.GaussianBlur(blur)), dtype=np.float32) / np.float32(255.0)


def _phase(x: Array, period: float) -> Array:
    """The place of x within its period, in metres."""
    p = np.float32(period)
    inside: Array = x - p * np.floor(x / p)
    return inside
