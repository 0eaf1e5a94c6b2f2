"""Street furniture: lamp posts, traffic lights, signs, hanging boards, bollards, cones."""

import numpy as np

from streets.canvas import Stage
from streets.draws import stream
from streets.labels import CONE, POLE, SIGN, TEXT, TRAFFIC_LIGHT
from streets.lettering import SHOPS, word
from streets.light import Colour
from streets.people import Doll
from streets.sketch import CIRCLE

STEEL: Colour = (126, 130, 132)
SHORT = tuple(name for name in SHOPS if len(name) < 6)
DARK: Colour = (62, 66, 66)


def post(doll: Doll, height: float, girth: float, colour: Colour) -> None:
    """A round post: a bright and a dim side."""
    _bar(doll, -girth, 0.0, girth, height, colour)
    k = doll.sunny * girth
    _bar(doll, min(0.2 * k, k), 0.0, max(0.2 * k, k), height, colour, doll.bright)
    _bar(doll, min(-k, -0.5 * k), 0.0, max(-k, -0.5 * k), height, colour, doll.dim)


def _bar(
    doll: Doll,
    u0: float,
    v0: float,
    u1: float,
    v1: float,
    colour: Colour,
    light: Colour | None = None,
    label: int | None = None,
) -> None:
    """An upright rectangle."""
    doll.piece([(u0, v0), (u1, v0), (u1, v1), (u0, v1)], colour, light, label)


def draw_lamp(stage: Stage, s: float, z: float, seed: int) -> None:
    """A lamp post whose arm reaches over the road."""
    rng = stream(seed)
    toward = 1.0 if s < 0 else -1.0
    doll = Doll(stage, s, z, POLE, 1.0, toward, 0.12)
    tall = rng.between(5.5, 8.5)
    colour = STEEL if rng.chance(0.6) else DARK
    _bar(doll, -0.085, 0.0, 0.085, 1.1, colour)
    post(doll, tall, 0.05, colour)
    arm = rng.between(0.6, 1.6)
    doll.limb((0.0, tall), (arm, tall + 0.35), 0.04, 0.035, colour)
    doll.piece(
        [(arm - 0.1, tall + 0.3), (arm + 0.6, tall + 0.36), (arm + 0.55, tall + 0.48), (arm - 0.1, tall + 0.44)],
        (170, 172, 170),
    )
    doll.stamp()


def draw_traffic_light(stage: Stage, s: float, z: float, seed: int) -> None:
    """A signal on a post: black board with a pale edge, three lenses, one lit."""
    rng = stream(seed)
    doll = Doll(stage, s, z, POLE, 1.0, 1.0, 0.12)
    post(doll, 3.3, 0.055, (70, 72, 74))
    _bar(doll, -0.25, 2.25, 0.25, 3.45, (188, 188, 184), label=TRAFFIC_LIGHT)
    _bar(doll, -0.22, 2.28, 0.22, 3.42, (20, 20, 21), label=TRAFFIC_LIGHT)
    doll.label = TRAFFIC_LIGHT
    lit = rng.count(0, 2)
    glow: tuple[Colour, ...] = ((40, 255, 150), (255, 190, 60), (255, 60, 40))
    for k in range(3):
        v = 2.5 + 0.35 * k
        on = (2, 1, 0)[lit] == k
        doll.disc((0.0, v), 0.13, glow[k] if on else (38, 36, 34), 1.0, (1.1, 1.1, 1.1) if on else None)
        doll.piece([(-0.15, v + 0.1), (0.15, v + 0.1), (0.12, v + 0.17), (-0.12, v + 0.17)], (12, 12, 13))
    doll.stamp()


def draw_sign(stage: Stage, s: float, z: float, seed: int) -> None:
    """A road sign on a post: a red ring, a warning triangle, a blue disc or a direction board."""
    rng = stream(seed)
    doll = Doll(stage, s, z, POLE, 1.0, 1.0, 0.12)
    post(doll, 2.9, 0.04, STEEL)
    doll.label = SIGN
    v, kind = 2.55, rng.count(0, 3)
    if kind == 0:
        doll.disc((0.0, v), 0.36, (196, 34, 36))
        doll.disc((0.0, v), 0.27, (228, 228, 224))
        _bar(doll, -0.16, v - 0.12, -0.03, v + 0.12, (26, 26, 28))
        _bar(doll, 0.03, v - 0.12, 0.16, v + 0.12, (26, 26, 28))
    elif kind == 1:
        doll.piece([(-0.45, v - 0.3), (0.45, v - 0.3), (0.0, v + 0.48)], (196, 34, 36))
        doll.piece([(-0.29, v - 0.21), (0.29, v - 0.21), (0.0, v + 0.29)], (228, 228, 224))
        _bar(doll, -0.04, v - 0.17, 0.04, v + 0.1, (26, 26, 28))
    elif kind == 2:
        doll.disc((0.0, v), 0.36, (226, 228, 228))
        doll.disc((0.0, v), 0.33, (36, 84, 160))
        doll.piece(
            [
                (-0.05, v - 0.2),
                (0.05, v - 0.2),
                (0.05, v + 0.02),
                (0.16, v),
                (0.0, v + 0.22),
                (-0.16, v),
                (-0.05, v + 0.02),
            ],
            (232, 232, 230),
        )
    else:
        _bar(doll, -0.5, v - 0.25, 0.5, v + 0.3, (232, 232, 228))
        _bar(doll, -0.46, v - 0.21, 0.46, v + 0.26, (32, 78, 152))
        _letters(doll, "CENTRE", -0.4, v - 0.08, 0.4, v + 0.12, (236, 236, 232))
    doll.stamp()


def draw_board(stage: Stage, s: float, z: float, seed: int) -> None:
    """A lettered board that hangs from a house or stands on the pavement."""
    rng = stream(seed)
    hanging = rng.chance(0.6)
    doll = Doll(stage, s, z, TEXT, 1.0, 1.0, 0.12)
    paints: tuple[Colour, ...] = ((232, 230, 222), (170, 36, 38), (34, 62, 118), (36, 84, 64), (210, 176, 70))
    paint = rng.pick(paints)
    ink: Colour = (34, 34, 40) if sum(paint) > 420 else (234, 230, 220)
    low, high, wide = (3.0, 4.1, 0.42) if hanging else (0.15, 1.15, 0.32)
    if hanging:
        toward = -1.0 if s > 0 else 1.0
        _bar(
            doll,
            min(-0.9 * toward, 0.4 * toward),
            high,
            max(-0.9 * toward, 0.4 * toward),
            high + 0.05,
            DARK,
            label=POLE,
        )
    _bar(doll, -wide, low, wide, high, (60, 58, 56))
    _bar(doll, -wide + 0.04, low + 0.04, wide - 0.04, high - 0.04, paint)
    text = rng.pick(SHORT)
    _letters(doll, text, -wide + 0.08, low + 0.5, wide - 0.08, low + 0.75, ink)
    doll.disc((0.0, low + 0.3), 0.12, ink)
    doll.stamp()


def _letters(doll: Doll, text: str, u0: float, v0: float, u1: float, v1: float, ink: Colour) -> None:
    """Letters as small bars."""
    bits = word(text)
    across, up = (u1 - u0) / bits.shape[1], (v1 - v0) / 5
    for row, column in zip(*np.nonzero(bits), strict=True):
        u, v = u0 + float(column) * across, v1 - float(row + 1) * up
        _bar(doll, u, v, u + across, v + up, ink)


def draw_bollard(stage: Stage, s: float, z: float, seed: int) -> None:
    """A waist-high post with a pale band, or a litter bin's slim cousin."""
    doll = Doll(stage, s, z, POLE, 1.0, 1.0, 0.12)
    post(doll, 0.95, 0.08, (44, 46, 48) if seed % 2 else (104, 96, 84))
    _bar(doll, -0.08, 0.78, 0.08, 0.86, (206, 206, 200))
    doll.disc((0.0, 0.96), 0.085, (50, 52, 54), 0.6)
    doll.stamp()


def draw_cone(stage: Stage, s: float, z: float, seed: int) -> None:
    """A traffic cone with two white bands."""
    doll = Doll(stage, s, z, CONE)
    orange: Colour = (222, 84, 36)
    _bar(doll, -0.2, 0.0, 0.2, 0.05, (150, 60, 34))
    for v0, v1, colour in (
        (0.05, 0.25, orange),
        (0.25, 0.4, (226, 226, 222)),
        (0.4, 0.55, orange),
        (0.55, 0.64, (226, 226, 222)),
        (0.64, 0.75, orange),
    ):
        w0, w1 = 0.17 * (1 - v0 / 0.85), 0.17 * (1 - v1 / 0.85)
        doll.piece([(-w0, v0), (w0, v0), (w1, v1), (-w1, v1)], colour)
        k = doll.sunny
        doll.piece([(k * w0 * 0.3, v0), (k * w0, v0), (k * w1, v1), (k * w1 * 0.3, v1)], colour, doll.bright)
    doll.stamp()


def draw_gantry(stage: Stage, s: float, z: float, seed: int) -> None:
    """A globe crossing on a striped post, amber on top."""
    doll = Doll(stage, s, z, POLE, 1.0, 1.0, 0.12)
    for k in range(8):
        colour: Colour = (222, 222, 218) if k % 2 else (30, 30, 32)
        _bar(doll, -0.05, k * 0.3, 0.05, (k + 1) * 0.3, colour)
    doll.label = SIGN
    amber: Colour = (240, 176, 60)
    doll.piece([(0.2 * float(x), 2.58 + 0.2 * float(y)) for x, y in CIRCLE], amber)
    doll.stamp()
