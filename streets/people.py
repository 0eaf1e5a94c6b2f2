"""People and what they push or ride: upright cut-outs made of limbs, wheels and clothes."""

from dataclasses import dataclass
from math import sqrt

from streets.canvas import Stage, shade
from streets.draws import Draws, stream
from streets.labels import ANIMAL, BICYCLIST, CHILD, MOTORCYCLE, PEDESTRIAN, PRAM
from streets.light import Colour
from streets.sketch import CIRCLE, Sketch

Flat = tuple[float, float]

COATS: tuple[Colour, ...] = (
    (38, 38, 42), (52, 52, 58), (34, 42, 62), (74, 66, 58), (110, 40, 40), (60, 72, 66), (92, 92, 96), (44, 36, 34),
    (186, 182, 174), (46, 66, 96), (120, 96, 70), (28, 28, 30), (84, 88, 60), (186, 60, 50),
)  # fmt: skip
LEGS: tuple[Colour, ...] = ((36, 38, 46), (44, 52, 76), (30, 30, 32), (70, 68, 66), (62, 72, 98), (96, 88, 74))
SKIN: tuple[Colour, ...] = ((206, 160, 134), (188, 142, 116), (140, 98, 74), (98, 66, 50), (216, 176, 152))
HAIR: tuple[Colour, ...] = ((40, 32, 28), (74, 54, 40), (120, 92, 60), (30, 28, 28), (140, 136, 130))


TUBES: tuple[tuple[Flat, Flat], ...] = (
    ((-0.52, 0.34), (-0.05, 0.3)), ((-0.05, 0.3), (-0.2, 0.85)), ((-0.2, 0.82), (0.36, 0.85)),
    ((-0.05, 0.3), (0.38, 0.78)), ((-0.52, 0.34), (-0.18, 0.8)), ((0.34, 0.95), (0.52, 0.34)),
)  # fmt: skip
"""The frame of a bicycle seen from its side."""


@dataclass
class Doll:
    """A pen for flat figures: points in metres right of and above the foot, scaled, perhaps mirrored."""

    stage: Stage
    s: float
    z: float
    label: int
    size: float = 1.0
    mirror: float = 1.0
    base: float = 0.0

    def __post_init__(self) -> None:
        self.sketch = Sketch(self.stage)
        reach = self.stage.light.reach_at(self.s, 1.0, self.z)
        sun = 1.0 if self.stage.light.weather.sun[0] > 0 else -1.0
        self.front = self.stage.light.on_spot((0.0, 0.3, -0.95), reach * 0.8)
        self.bright = self.stage.light.on_spot((sun * 0.95, 0.7, -0.5), reach)
        self.dim = (self.front[0] * 0.5, self.front[1] * 0.5, self.front[2] * 0.5)
        self.sunny = sun * self.mirror

    def piece(self, points: list[Flat], colour: Colour, light: Colour | None = None, label: int | None = None) -> None:
        """A filled outline."""
        across = self.size * self.mirror
        shape = [(self.s + u * across, self.base + v * self.size, self.z) for u, v in points]
        self.sketch.polygon(shape, shade(colour, light or self.front), self.label if label is None else label)

    def limb(self, p: Flat, q: Flat, start: float, end: float, colour: Colour) -> None:
        """A tapering round-ended limb with a bright and a dim edge."""
        du, dv = q[0] - p[0], q[1] - p[1]
        size = sqrt(du * du + dv * dv) or 1.0
        nu, nv = -dv / size, du / size
        for lo, hi, light in ((-1.0, 1.0, self.front), (0.35, 1.0, None), (-1.0, -0.45, None)):
            edge = (lo + hi) / 2 * nu * self.sunny
            side = light or (self.bright if edge > 0 else self.dim)
            quad = [(p[0] + nu * start * k, p[1] + nv * start * k) for k in (lo, hi)]
            quad += [(q[0] + nu * end * k, q[1] + nv * end * k) for k in (hi, lo)]
            self.piece(quad, colour, side)
        self.disc(p, start * 0.98, colour)
        self.disc(q, end * 0.98, colour)

    def disc(self, p: Flat, r: float, colour: Colour, squash: float = 1.0, light: Colour | None = None) -> None:
        """A filled circle or ellipse."""
        self.piece([(p[0] + r * float(x), p[1] + r * squash * float(y)) for x, y in CIRCLE], colour, light)

    def ring(self, p: Flat, r: float, thick: float, colour: Colour, squeeze: float = 1.0) -> None:
        """A wheel rim that one can see through."""
        for k in range(20):
            (x0, y0), (x1, y1) = CIRCLE[k], CIRCLE[(k + 1) % 20]
            corners = ((x0, y0, r), (x1, y1, r), (x1, y1, r - thick), (x0, y0, r - thick))
            self.piece([(p[0] + float(x) * m * squeeze, p[1] + float(y) * m) for x, y, m in corners], colour)

    def stamp(self) -> None:
        """Put the figure into the picture."""
        self.sketch.stamp(max(self.z, 2.0), soften=0.008, grain=0.14)


def head(doll: Doll, p: Flat, r: float, rng: Draws, *, face: float) -> None:
    """A head with hair; `face` is how far the face is turned into view, 0 from behind."""
    skin, hair = rng.pick(SKIN), rng.pick(HAIR)
    doll.disc((p[0], p[1]), r, skin, 1.25)
    doll.disc((p[0] + r * 0.35 * doll.sunny, p[1]), r * 0.6, skin, 1.5, doll.bright)
    doll.disc((p[0] - 0.25 * r * face, p[1] + r * (0.35 if face else 0.1)), r * 1.02, hair, 0.95 if face else 1.15)
    if face:
        doll.disc((p[0] + 0.3 * r, p[1] - r * 0.3), r * 0.72, skin, 1.1)


def draw_walker(stage: Stage, s: float, z: float, seed: int, *, child: bool = False, base: float = 0.12) -> None:
    """A pedestrian or a child, walking across or along the street."""
    rng = stream(seed)
    tall = rng.between(1.05, 1.3) if child else rng.between(1.6, 1.86)
    doll = Doll(stage, s, z, CHILD if child else PEDESTRIAN, tall, 1.0 if rng.chance(0.5) else -1.0, base)
    coat, legs = rng.pick(COATS), rng.pick(LEGS)
    sideways = rng.chance(0.45)
    stride = rng.between(0.06, 0.15) if sideways else 0.045
    girth = 1.25 if child else 1.0
    shoe: Colour = (30, 28, 28)
    for foot, lift in ((-stride, 0.03), (stride, 0.0)):
        knee = (foot * 0.55 + (0.03 if sideways else 0.0), 0.27 + lift)
        hip = (0.0 if sideways else foot * 0.9, 0.5)
        doll.limb(knee, (foot, 0.05 + lift), 0.036 * girth, 0.026 * girth, legs)
        doll.limb(hip, knee, 0.052 * girth, 0.038 * girth, legs)
        toe = 0.05 if sideways else 0.015
        doll.limb((foot - 0.01, 0.02 + lift), (foot + toe, 0.018 + lift), 0.02, 0.018, shoe)
    wide = (0.075 if sideways else 0.115) * girth
    hem = rng.pick((0.44, 0.46, 0.34))
    _torso(doll, wide, hem, coat)
    for arm in (-1.0, 1.0):
        shoulder = (0.0 if sideways else arm * wide * 0.95, 0.79)
        elbow = (shoulder[0] + arm * (0.07 if sideways else 0.03), 0.63)
        hand = (elbow[0] + (0.05 if sideways else 0.0), 0.49)
        doll.limb(shoulder, elbow, 0.034 * girth, 0.03 * girth, coat)
        doll.limb(elbow, hand, 0.029 * girth, 0.024 * girth, coat)
        doll.disc(hand, 0.022, rng.pick(SKIN))
    head(doll, (0.0, 0.92), 0.058 * girth, rng, face=1.0 if sideways else float(rng.count(0, 1)))
    if rng.chance(0.4):
        bag = rng.pick(COATS)
        doll.piece([(-0.16, 0.36), (-0.05, 0.36), (-0.06, 0.5), (-0.15, 0.5)], bag)
    doll.stamp()


def _torso(doll: Doll, wide: float, hem: float, coat: Colour) -> None:
    """A coat with shoulders, a lit side, a shaded side and an open front."""
    flare = 1.05 if hem > 0.4 else 1.2
    outline = [(-wide * flare, hem), (-wide * 0.85, 0.62), (-wide, 0.79), (-wide * 0.55, 0.845), (wide * 0.55, 0.845)]
    outline += [(wide, 0.79), (wide * 0.85, 0.62), (wide * flare, hem)]
    doll.piece(outline, coat)
    k = doll.sunny
    doll.piece(
        [(k * wide * 0.45, hem), (k * wide * flare, hem), (k * wide * 0.95, 0.79), (k * wide * 0.4, 0.83)],
        coat,
        doll.bright,
    )
    doll.piece(
        [(-k * wide * 0.6, hem), (-k * wide * flare, hem), (-k * wide * 0.95, 0.79), (-k * wide * 0.6, 0.82)],
        coat,
        doll.dim,
    )
    dark = (coat[0] * 0.6, coat[1] * 0.6, coat[2] * 0.6)
    doll.piece([(-0.006, hem), (0.006, hem), (0.006, 0.8), (-0.006, 0.8)], dark)


def draw_cyclist(stage: Stage, s: float, z: float, seed: int) -> None:
    """A cyclist, from behind or from the side."""
    rng = stream(seed)
    doll = Doll(stage, s, z, BICYCLIST, 1.0, 1.0 if rng.chance(0.5) else -1.0)
    coat, legs, steel = rng.pick(COATS), rng.pick(LEGS), rng.pick(COATS)
    if rng.chance(0.3):
        coat = (206, 216, 62)
    if rng.chance(0.68):
        _rider_from_behind(doll, coat, legs, rng)
    else:
        _rider_from_side(doll, coat, legs, steel, rng)
    doll.stamp()


def _rider_from_behind(doll: Doll, coat: Colour, legs: Colour, rng: Draws) -> None:
    """The rear wheel, legs at the pedals, back, arms to the bars, head."""
    rubber: Colour = (28, 28, 29)
    doll.limb((0.0, 0.06), (0.0, 0.62), 0.03, 0.03, rubber)
    doll.limb((-0.06, 0.35), (0.0, 0.85), 0.012, 0.012, (60, 60, 64))
    doll.limb((0.06, 0.35), (0.0, 0.85), 0.012, 0.012, (60, 60, 64))
    doll.piece([(-0.05, 0.66), (0.05, 0.66), (0.05, 0.72), (-0.05, 0.72)], (190, 34, 30))
    for side, low in ((-1.0, 0.16), (1.0, 0.40)):
        knee = (side * 0.17, low + 0.42)
        doll.limb(knee, (side * 0.12, low), 0.062, 0.045, legs)
        doll.limb((side * 0.1, 0.95), knee, 0.095, 0.07, legs)
        doll.limb((side * 0.12, low - 0.03), (side * 0.15, low - 0.03), 0.04, 0.04, (30, 30, 32))
    doll.limb((-0.34, 1.05), (0.34, 1.05), 0.018, 0.018, (40, 40, 42))
    for side in (-1.0, 1.0):
        doll.limb((side * 0.19, 1.42), (side * 0.30, 1.2), 0.06, 0.05, coat)
        doll.limb((side * 0.30, 1.2), (side * 0.29, 1.06), 0.05, 0.04, coat)
    big = Doll(doll.stage, doll.s, doll.z, doll.label, 1.72, doll.mirror, 0.1)
    big.sketch = doll.sketch
    _torso(big, 0.115, 0.46, coat)
    if rng.chance(0.4):
        pack = rng.pick(COATS)
        doll.piece([(-0.15, 1.1), (0.15, 1.1), (0.14, 1.45), (-0.14, 1.45)], pack)
        doll.piece([(-0.15, 1.1), (0.15, 1.1), (0.15, 1.2), (-0.15, 1.2)], pack, doll.dim)
    head(doll, (0.0, 1.68), 0.1, rng, face=0.0)
    if rng.chance(0.5):
        doll.disc((0.0, 1.74), 0.12, rng.pick(COATS), 0.75)


def _rider_from_side(doll: Doll, coat: Colour, legs: Colour, steel: Colour, rng: Draws) -> None:
    """Two wheels, a diamond frame and a rider who leans on the bars."""
    rubber: Colour = (26, 26, 27)
    for hub in (-0.52, 0.52):
        doll.ring((hub, 0.34), 0.34, 0.035, rubber)
        for k in range(0, 20, 5):
            x, y = (float(v) * 0.31 for v in CIRCLE[k])
            doll.limb((hub, 0.34), (hub + x, 0.34 + y), 0.005, 0.005, (120, 120, 122))
    for p, q in TUBES:
        doll.limb(p, q, 0.018, 0.018, steel)
    doll.limb((0.28, 1.0), (0.44, 1.0), 0.015, 0.015, rubber)
    for knee, foot in (((0.2, 0.72), (0.02, 0.42)), ((0.18, 0.6), (-0.06, 0.18))):
        doll.limb(knee, foot, 0.055, 0.04, legs)
        doll.limb((-0.2, 0.95), knee, 0.085, 0.06, legs)
        doll.limb((foot[0], foot[1] - 0.03), (foot[0] + 0.12, foot[1] - 0.04), 0.035, 0.03, rubber)
    doll.limb((-0.2, 0.98), (0.08, 1.42), 0.15, 0.13, coat)
    doll.limb((0.1, 1.42), (0.26, 1.16), 0.05, 0.045, coat)
    doll.limb((0.26, 1.16), (0.4, 1.03), 0.045, 0.035, coat)
    head(doll, (0.16, 1.64), 0.1, rng, face=1.0)


def draw_motorcycle(stage: Stage, s: float, z: float, seed: int) -> None:
    """A motorcycle or scooter from behind, with a helmeted rider."""
    rng = stream(seed)
    doll = Doll(stage, s, z, MOTORCYCLE)
    coat, paint = rng.pick(COATS[:4]), rng.pick(COATS[4:])
    doll.limb((0.0, 0.1), (0.0, 0.6), 0.085, 0.085, (24, 24, 25))
    for side in (-1.0, 1.0):
        doll.limb((side * 0.14, 0.4), (side * 0.16, 0.5), 0.06, 0.06, (150, 152, 156))
        doll.limb((side * 0.2, 0.82), (side * 0.26, 0.45), 0.1, 0.075, (34, 34, 38))
        doll.limb((side * 0.26, 0.45), (side * 0.22, 0.2), 0.07, 0.05, (34, 34, 38))
    doll.piece([(-0.17, 0.5), (0.17, 0.5), (0.2, 0.9), (-0.2, 0.9)], paint)
    doll.piece([(-0.09, 0.52), (0.09, 0.52), (0.09, 0.66), (-0.09, 0.66)], (220, 186, 52))
    doll.piece([(-0.1, 0.74), (0.1, 0.74), (0.1, 0.82), (-0.1, 0.82)], (196, 30, 28))
    doll.limb((-0.42, 1.08), (0.42, 1.08), 0.022, 0.022, (30, 30, 31))
    for side in (-1.0, 1.0):
        doll.disc((side * 0.44, 1.2), 0.06, (80, 84, 88), 0.7)
        doll.limb((side * 0.23, 1.36), (side * 0.38, 1.1), 0.075, 0.055, coat)
    doll.limb((0.0, 0.92), (0.0, 1.34), 0.2, 0.23, coat)
    doll.disc((0.0, 1.62), 0.145, paint, 1.1)
    doll.disc((0.05 * doll.sunny, 1.68), 0.06, (230, 230, 230), 1.0)
    doll.stamp()


def draw_pram(stage: Stage, s: float, z: float, seed: int) -> None:
    """A pram with a hood; the person who pushes it is drawn apart."""
    rng = stream(seed)
    doll = Doll(stage, s, z, PRAM, 1.0, 1.0 if rng.chance(0.5) else -1.0, 0.12)
    cloth = rng.pick(COATS[2:])
    for hub in (-0.26, 0.28):
        doll.ring((hub, 0.13), 0.13, 0.03, (34, 34, 36))
        doll.limb((hub, 0.13), (0.0, 0.42), 0.014, 0.014, (120, 122, 126))
    doll.limb((0.2, 0.45), (0.52, 0.98), 0.016, 0.016, (70, 70, 74))
    doll.piece([(-0.36, 0.42), (0.26, 0.38), (0.32, 0.66), (-0.42, 0.68)], cloth)
    doll.piece([(-0.36, 0.42), (0.26, 0.38), (0.28, 0.48), (-0.38, 0.5)], cloth, doll.dim)
    doll.piece([(-0.42, 0.66), (-0.36, 0.9), (-0.14, 1.0), (0.05, 0.92), (-0.08, 0.66)], cloth, doll.bright)
    doll.stamp()


def draw_dog(stage: Stage, s: float, z: float, seed: int) -> None:
    """A dog on the pavement."""
    rng = stream(seed)
    doll = Doll(stage, s, z, ANIMAL, 1.0, 1.0 if rng.chance(0.5) else -1.0, 0.12)
    fur: Colour = rng.pick(((92, 66, 44), (40, 36, 34), (196, 176, 146), (120, 96, 70)))
    for u in (-0.24, -0.16, 0.17, 0.25):
        doll.limb((u, 0.32), (u + 0.02, 0.03), 0.035, 0.025, fur)
    doll.limb((-0.22, 0.4), (0.22, 0.42), 0.11, 0.12, fur)
    doll.limb((-0.3, 0.45), (-0.42, 0.6), 0.03, 0.015, fur)
    doll.limb((0.26, 0.48), (0.36, 0.6), 0.07, 0.07, fur)
    doll.limb((0.38, 0.6), (0.5, 0.56), 0.06, 0.035, fur)
    doll.stamp()
