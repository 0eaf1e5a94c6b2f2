"""Cars, off-roaders and vans in the street: which faces show, and how paint, glass and rubber take the light."""

from math import sqrt

import numpy as np

from streets.bodies import Body, Face, Point, Shape, body_at, skin
from streets.canvas import Stage
from streets.draws import stream
from streets.light import Colour
from streets.sketch import Place, Sketch

PAINTS: tuple[Colour, ...] = (
    (26, 27, 30), (30, 38, 64), (158, 162, 166), (104, 108, 112), (138, 26, 30), (224, 224, 220), (28, 58, 48),
    (52, 80, 130), (86, 24, 32), (184, 186, 188), (22, 23, 25), (124, 130, 138), (54, 56, 60), (170, 160, 132),
)  # fmt: skip

FIXED: dict[str, tuple[Colour, float]] = {
    "grille": ((20, 20, 22), 0.01),
    "chrome": ((168, 170, 172), 0.2),
    "glass 0": ((20, 22, 24), 0.03),
    "glass 1": ((24, 27, 30), 0.07),
    "glass 2": ((30, 34, 38), 0.14),
    "glass 3": ((40, 46, 50), 0.24),
    "seat": ((12, 12, 13), 0.02),
    "lamp": ((206, 210, 212), 0.2),
    "bright lamp": ((240, 242, 244), 0.4),
    "dark lamp": ((84, 88, 92), 0.08),
    "amber": ((206, 112, 34), 0.03),
    "red": ((158, 18, 22), 0.03),
    "white plate": ((232, 232, 226), 0.0),
    "yellow plate": ((224, 186, 44), 0.0),
    "ink": ((60, 58, 48), 0.0),
    "tyre": ((25, 25, 26), 0.004),
    "rim": ((142, 144, 148), 0.05),
    "hole": ((44, 45, 47), 0.0),
    "under": ((8, 8, 9), 0.0),
}
"""Materials that are the same on every car: display colour, and the share of sky they mirror."""

PAINTED: dict[str, tuple[float, float]] = {
    "bonnet": (1.0, 0.12),
    "roof": (1.0, 0.10),
    "nose": (0.96, 0.07),
    "tail": (0.95, 0.06),
    "door": (0.98, 0.07),
    "doors": (0.96, 0.06),
    "screen": (0.85, 0.06),
    "rear glass": (0.85, 0.06),
    "shoulder": (1.1, 0.26),
    "corner": (0.86, 0.05),
    "bumper": (0.86, 0.05),
    "intake": (0.78, 0.04),
    "rear bumper": (0.82, 0.05),
    "low door": (0.76, 0.02),
    "skirt": (0.48, 0.0),
    "seam": (0.38, 0.0),
}
"""Materials that take the paint of the car: how much of it they keep, and the share of sky they mirror."""


def draw_car(stage: Stage, kind: str, s: float, z: float, heading: tuple[float, float], seed: int) -> None:
    """Draw a car whose middle stands at (s, z) and whose front points along `heading` (across, along)."""
    rng = stream(seed)
    body = body_at(kind, seed)
    frame = Frame(stage, s, z, heading, rng.pick(PAINTS))
    sketch = Sketch(stage)
    _underside(sketch, frame, body)
    seen = []
    for k, face in enumerate(skin(body)):
        places = frame.places(face.corners)
        distance = frame.facing(places)
        if distance > 0:
            seen.append((-distance, k, face, places))
    fine = stage.camera.scale(z) > 7.0
    for _, _, face, places in sorted(seen, key=lambda item: item[:2]):
        normal = frame.normal(places)
        sketch.polygon(places, frame.lit(normal, face.material), body.label)
        for corners, material in _worth(face, fine):
            sketch.polygon(frame.places(corners), frame.lit(normal, material), body.label)
    sketch.stamp(max(z, 2.5), soften=0.011, grain=0.05)


def _worth(face: Face, fine: bool) -> list[tuple[Shape, str]]:
    """The details that show at this distance: far cars keep lamps, plates, glass and tyres."""
    small = ("seam", "hole", "rim", "ink", "chrome", "seat", "bright lamp", "low door")
    return [(shape, kind) for shape, kind in face.details if fine or kind not in small]


class Frame:
    """The frame of one car: where its points are in the street, which faces we see, and how they are lit."""

    def __init__(self, stage: Stage, s: float, z: float, heading: tuple[float, float], paint: Colour) -> None:
        self.s, self.z, self.heading, self.paint = s, z, heading, paint
        reach = stage.light.reach_at(s, 1.0, z)
        weather = stage.light.weather
        self.sun, self.ambient = weather.sun, weather.ambient
        self.sunlight = tuple(c * reach for c in weather.sunlight)
        drift = float(stage.camera.drift(np.array([z], dtype=np.float32))[0])
        self.eye = (stage.camera.lane - drift, stage.camera.eye, 0.0)

    def places(self, corners: Shape) -> list[Place]:
        """Points (along, up, right) of the car as places in the street."""
        hs, hz = self.heading
        return [(self.s + a * hs + b * hz, y, self.z + a * hz - b * hs) for a, y, b in corners]

    def normal(self, places: list[Place]) -> Point:
        """The outward normal of a face, outward being away from the heart of the car."""
        a, b, c = places[0], places[len(places) // 3], places[-1]
        p, q = [y - x for x, y in zip(a, b, strict=True)], [y - x for x, y in zip(a, c, strict=True)]
        n = (p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0])
        size = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) or 1.0
        away = n[0] * (a[0] - self.s) + n[1] * (a[1] - 0.6) + n[2] * (a[2] - self.z)
        k = 1 / size if away > 0 else -1 / size
        return n[0] * k, n[1] * k, n[2] * k

    def facing(self, places: list[Place]) -> float:
        """The distance of a face that looks at the camera, or 0 for one that looks away."""
        n = self.normal(places)
        first, last = places[0], places[len(places) // 2]
        to = [(x + y) / 2 - e for x, y, e in zip(first, last, self.eye, strict=True)]
        if n[0] * to[0] + n[1] * to[1] + n[2] * to[2] >= 0:
            return 0.0
        return sqrt(to[0] * to[0] + to[1] * to[1] + to[2] * to[2])

    def lit(self, normal: Point, material: str) -> Colour:
        """The linear colour of a material, with the sky mirrored where the surface looks up."""
        keep, gloss = PAINTED.get(material, (0.0, 0.0))
        base = (self.paint[0] * keep, self.paint[1] * keep, self.paint[2] * keep)
        if material in FIXED:
            base, gloss = FIXED[material]
        up = normal[1]
        cosine = max(0.0, sum(a * b for a, b in zip(normal, self.sun, strict=True)))
        glint = cosine * cosine * gloss * 2.2 if up > 0.2 else 0.0
        mirror = gloss * (0.6 + 1.2 * max(0.0, up) * max(0.0, up))
        sky = 0.62 + 0.38 * up
        r, g, b = (
            c * c / 65025.0 * (ambient * sky + sun * cosine) + ambient * mirror * 1.6 + sun * glint
            for c, ambient, sun in zip(base, self.ambient, self.sunlight, strict=True)
        )
        return r, g, b


def _underside(sketch: Sketch, frame: Frame, body: Body) -> None:
    """The dark below the sills and the treads of the tyres at both ends."""
    half, wide = body.half_length, body.half_width
    shade = frame.lit((0.0, -1.0, 0.0), "under")
    for end in (0.9, -0.9):
        corners = ((0.16, -0.8), (0.16, 0.8), (0.42, 0.8), (0.42, -0.8))
        sketch.polygon(frame.places(tuple((end * half, y, w * wide) for y, w in corners)), shade, body.label)
    for axle in body.axles:
        for b in (-wide, wide):
            corners = ((0.0, 0.74), (0.0, 0.98), (body.wheel * 1.6, 0.98), (body.wheel * 1.6, 0.74))
            tread = tuple((axle * half, y, b * w) for y, w in corners)
            sketch.polygon(frame.places(tread), frame.lit((0.0, 0.0, -1.0), "tyre"), body.label)
