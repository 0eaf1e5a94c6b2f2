"""The shapes of cars, off-roaders and vans: a line over the back, and the skin that follows from it."""

from dataclasses import dataclass
from functools import cache

from streets.labels import CAR, SUV
from streets.sketch import CIRCLE

Point = tuple[float, float, float]
Shape = tuple[Point, ...]
Detail = tuple[Shape, str]


@dataclass(frozen=True)
class Body:
    """The shape of a vehicle: half length, half width, and the line over its back from front bumper to rear.

    Each point of the line is (along as a share of the half length, height in metres, share of the half width, material
    of the strip to the next point). `cowl` and `tail` are the points where the glass begins and ends; `panes` are the
    windows along the side; `axles` are shares of the half length.
    """

    label: int
    half_length: float
    half_width: float
    line: tuple[tuple[float, float, float, str], ...]
    cowl: int
    tail: int
    sill: float
    wheel: float
    axles: tuple[float, float]
    panes: tuple[tuple[float, float], ...]

    @property
    def roof(self) -> float:
        """The height of the roof."""
        return max(y for _, y, _, _ in self.line)


@dataclass(frozen=True)
class Face:
    """A piece of the skin: corners as (along, up, right), a material, and flat details painted over it."""

    corners: Shape
    material: str
    details: tuple[Detail, ...] = ()


def _two_box(label: int, length: float, width: float, lift: float, roof: float, back: str = "rear glass") -> Body:
    """Hatchback, estate, off-roader or van, by how high it stands, how tall its roof is and what its back is."""
    line = (
        (0.975, 0.22 + lift, 0.74, "intake"), (1.0, 0.42 + lift, 0.78, "bumper"), (0.99, 0.54 + lift, 0.80, "nose"),
        (0.94, 0.69 + lift, 0.82, "bonnet"), (0.84, 0.77 + lift, 0.85, "bonnet"), (0.66, 0.85 + lift, 0.87, "bonnet"),
        (0.44, 0.93 + lift, 0.88, "screen"), (0.12, roof - 0.09, 0.72, "roof"), (-0.02, roof - 0.03, 0.70, "roof"),
        (-0.30, roof, 0.70, "roof"), (-0.60, roof - 0.02, 0.69, "roof"), (-0.76, roof - 0.08, 0.68, back),
        (-0.92, 0.99 + lift, 0.82, "tail"), (-0.985, 0.62 + lift, 0.85, "rear bumper"),
        (-1.0, 0.50 + lift, 0.85, "rear bumper"), (-0.97, 0.24 + lift, 0.80, "rear bumper"),
    )  # fmt: skip
    panes = ((0.33, -0.16), (-0.20, -0.50), (-0.54, -0.72)) if back == "rear glass" else ((0.33, -0.06),)
    return Body(label, length / 2, width / 2, line, 6, 12, 0.24 + lift, 0.30 + lift * 0.4, (0.62, -0.60), panes)


def _three_box(label: int, length: float, width: float) -> Body:
    """A saloon."""
    line = (
        (0.975, 0.20, 0.74, "intake"), (1.0, 0.39, 0.78, "bumper"), (0.99, 0.51, 0.80, "nose"),
        (0.95, 0.65, 0.82, "bonnet"), (0.84, 0.74, 0.85, "bonnet"), (0.62, 0.82, 0.87, "bonnet"),
        (0.36, 0.89, 0.88, "screen"), (0.04, 1.33, 0.71, "roof"), (-0.06, 1.38, 0.70, "roof"),
        (-0.22, 1.40, 0.70, "roof"), (-0.36, 1.38, 0.69, "roof"), (-0.44, 1.34, 0.68, "rear glass"),
        (-0.68, 0.96, 0.84, "bonnet"), (-0.95, 0.92, 0.85, "tail"), (-1.0, 0.56, 0.86, "rear bumper"),
        (-0.97, 0.24, 0.80, "rear bumper"),
    )  # fmt: skip
    return Body(label, length / 2, width / 2, line, 6, 12, 0.24, 0.30, (0.62, -0.60), ((0.26, -0.14), (-0.18, -0.52)))


BODIES: dict[str, tuple[Body, ...]] = {
    "car": (
        _two_box(CAR, 3.7, 1.66, 0.0, 1.44),
        _three_box(CAR, 4.5, 1.74),
        _two_box(CAR, 4.2, 1.74, 0.02, 1.47),
        _two_box(CAR, 4.0, 1.70, 0.04, 1.56),
    ),
    "suv": (
        _two_box(SUV, 4.5, 1.86, 0.20, 1.82),
        _two_box(SUV, 4.9, 1.92, 0.14, 2.15, "doors"),
        _two_box(SUV, 4.3, 1.80, 0.16, 1.70),
    ),
}


def body_at(kind: str, variant: int) -> Body:
    """One of the bodies of a kind."""
    return BODIES[kind][variant % len(BODIES[kind])]


@cache
def skin(body: Body) -> tuple[Face, ...]:
    """All faces of a vehicle."""
    return (*_loft(body), *_flank(body, 1), *_flank(body, -1))


PATCHES: dict[str, tuple[tuple[float, float, float, float, str], ...]] = {
    "nose": (
        (0.0, 0.0, 0.29, 0.92, "dark lamp"), (0.02, 0.08, 0.26, 0.85, "lamp"), (0.05, 0.2, 0.16, 0.7, "bright lamp"),
        (0.71, 0.0, 1.0, 0.92, "dark lamp"), (0.74, 0.08, 0.98, 0.85, "lamp"), (0.84, 0.2, 0.95, 0.7, "bright lamp"),
        (0.33, 0.1, 0.67, 0.75, "grille"), (0.46, 0.3, 0.54, 0.65, "chrome"),
    ),
    "intake": (
        (0.14, 0.18, 0.86, 0.72, "grille"), (0.0, 0.0, 1.0, 0.12, "under"), (0.05, 0.35, 0.13, 0.7, "dark lamp"),
        (0.87, 0.35, 0.95, 0.7, "dark lamp"),
    ),
    "bumper": ((0.33, 0.08, 0.67, 0.92, "white plate"), (0.37, 0.3, 0.63, 0.7, "ink"), (0.0, 0.9, 1.0, 1.0, "seam")),
    "tail": (
        (0.0, 0.02, 0.16, 0.9, "red"), (0.02, 0.30, 0.14, 0.48, "amber"), (0.02, 0.52, 0.14, 0.62, "lamp"),
        (0.84, 0.02, 1.0, 0.9, "red"), (0.86, 0.30, 0.98, 0.48, "amber"), (0.86, 0.52, 0.98, 0.62, "lamp"),
        (0.33, 0.42, 0.67, 0.76, "yellow plate"), (0.37, 0.52, 0.63, 0.67, "ink"), (0.42, 0.28, 0.58, 0.34, "chrome"),
    ),
    "screen": (
        (0.05, 0.05, 0.95, 0.30, "glass 0"), (0.05, 0.30, 0.95, 0.52, "glass 1"), (0.05, 0.52, 0.95, 0.74, "glass 2"),
        (0.05, 0.74, 0.95, 0.95, "glass 3"),
    ),
    "rear glass": (
        (0.05, 0.05, 0.95, 0.24, "glass 3"), (0.05, 0.24, 0.95, 0.46, "glass 2"), (0.05, 0.46, 0.95, 0.68, "glass 1"),
        (0.05, 0.68, 0.95, 0.94, "glass 0"), (0.16, 0.62, 0.32, 0.94, "seat"), (0.68, 0.62, 0.84, 0.94, "seat"),
    ),
    "doors": (
        (0.08, 0.12, 0.47, 0.5, "glass 1"), (0.53, 0.12, 0.92, 0.5, "glass 1"), (0.08, 0.12, 0.47, 0.25, "glass 3"),
        (0.53, 0.12, 0.92, 0.25, "glass 3"), (0.493, 0.02, 0.507, 1.0, "seam"),
    ),
    "rear bumper": ((0.0, 0.86, 1.0, 1.0, "seam"),),
}  # fmt: skip
"""Lamps, plates and glass on the strips, as (p0, q0, p1, q1, material): p across, q along the line from the front."""


def _loft(body: Body) -> list[Face]:
    """The strips across the car, from the front bumper over the roof to the rear bumper."""
    faces = []
    for (a0, y0, w0, material), (a1, y1, w1, _) in zip(body.line[:-1], body.line[1:], strict=True):
        b0, b1 = w0 * body.half_width, w1 * body.half_width
        first, second = a0 * body.half_length, a1 * body.half_length
        corners = ((first, y0, -b0), (first, y0, b0), (second, y1, b1), (second, y1, -b1))
        details = tuple((_patch(corners, *where), kind) for *where, kind in PATCHES.get(material, ()))
        faces.append(Face(corners, material, details))
    return faces


def _patch(corners: Shape, p0: float, q0: float, p1: float, q1: float) -> Shape:
    """A rectangle in the coordinates of a four-cornered face."""
    a, b, c, d = corners
    return tuple(between(between(a, b, p), between(d, c, p), q) for p, q in ((p0, q0), (p1, q0), (p1, q1), (p0, q1)))


def between(p: Point, q: Point, t: float) -> Point:
    """A point on the way from p to q."""
    return p[0] + (q[0] - p[0]) * t, p[1] + (q[1] - p[1]) * t, p[2] + (q[2] - p[2]) * t


def _flank(body: Body, side: int) -> list[Face]:
    """One side of the car: rounded corners, doors with wheels, and glass."""
    half, b = body.half_length, side * body.half_width
    line = [(a * half, y, w * b) for a, y, w, _ in body.line]
    cowl, tail = body.cowl, body.tail
    front = [(0.90 * half, body.sill, b), (0.945 * half, line[2][1] - 0.08, b), (0.90 * half, line[3][1] - 0.02, b)]
    rear = [
        (-0.95 * half, line[tail][1] - 0.16, b),
        (-0.955 * half, line[tail + 1][1] - 0.1, b),
        (-0.91 * half, body.sill, b),
    ]
    brow = [(x, y - 0.03, 0.99 * b) for x, y, _ in line[4 : cowl + 1]]
    hip = (line[tail][0] + 0.02, line[tail][1] - 0.02, 0.99 * b)
    lamp = (line[2], line[3], between(line[3], front[2], 0.75), between(line[2], front[1], 0.75))
    glow = (
        line[tail],
        between(line[tail], line[tail + 1], 0.95),
        between(line[tail + 1], rear[1], 0.5),
        between(line[tail], rear[0], 0.5),
    )
    doors = (*front, *brow, hip, *rear)
    return [
        Face((*line[:4], *reversed(front)), "corner", ((lamp, "lamp"),)),
        Face((*line[tail:], *reversed(rear)), "corner", ((glow, "red"),) if line[tail][0] < -0.8 * half else ()),
        Face((*line[3 : cowl + 1], *reversed(brow), front[2]), "shoulder"),
        Face(doors, "door", _door_details(body, b, brow[-1], hip)),
        Face((brow[-1], *line[cowl + 1 : tail], hip), "door", _side_glass(body, line, b)),
    ]


def _door_details(body: Body, b: float, front: Point, rear: Point) -> tuple[Detail, ...]:
    """Light along the shoulder, shade at the sill, door seams, handles and both wheels."""
    half, top = body.half_length, min(front[1], rear[1])

    def bar(a0: float, y0: float, a1: float, y1: float, lift: float = 0.0) -> Shape:
        return (a0 * half, y0, b), (a1 * half, y0 + lift, b), (a1 * half, y1 + lift, b), (a0 * half, y1, b)

    details: list[Detail] = [
        (bar(0.80, top - 0.13, -0.93, top - 0.05, rear[1] - front[1]), "shoulder"),
        (bar(0.90, body.sill, -0.92, body.sill + 0.24), "low door"),
        (bar(0.90, body.sill, -0.92, body.sill + 0.11), "skirt"),
    ]
    details += [(bar(a, body.sill + 0.1, a - 0.01, top - 0.02), "seam") for a in (0.36, -0.18, -0.52)]
    details += [(bar(a, top - 0.17, a - 0.07, top - 0.13), "seam") for a in (-0.08, -0.42)]
    for axle in body.axles:
        details += _wheel(axle * half, body.wheel, b, body.sill)
    return tuple(details)


def _wheel(middle: float, radius: float, b: float, sill: float) -> list[Detail]:
    """Arch, tyre, rim and five spokes."""
    details: list[Detail] = []
    for size, material in ((1.2, "under"), (1.0, "tyre"), (0.68, "rim"), (0.6, "hole")):
        r = radius * size
        ring = [(middle + r * x, radius + r * y, b * 1.005) for x, y in CIRCLE]
        if material == "under":
            ring = [(a, max(y, sill - 0.08), c) for a, y, c in ring]
        details.append((tuple(ring), material))
    for k in range(0, 20, 4):
        (x0, y0), (x1, y1) = CIRCLE[k], CIRCLE[(k + 1) % 20]
        r, hub = radius * 0.64, radius * 0.12
        corners = ((x0 * r, y0 * r), (x1 * r, y1 * r), (x1 * hub, y1 * hub), (x0 * hub, y0 * hub))
        details.append((tuple((middle + x, radius + y, b) for x, y in corners), "rim"))
    details.append((tuple((middle + radius * 0.2 * x, radius + radius * 0.2 * y, b) for x, y in CIRCLE), "rim"))
    return details


def _side_glass(body: Body, line: list[Point], b: float) -> tuple[Detail, ...]:
    """The side windows between the pillars, lighter toward the roof where the sky is mirrored."""
    low, high = line[body.cowl][1] + 0.03, line[body.cowl + 1][1] - 0.01
    top_b, half = line[body.cowl + 1][2], body.half_length
    rake = line[body.cowl][0] - line[body.cowl + 1][0]
    fall = line[body.tail - 1][0] - line[body.tail][0]
    details: list[Detail] = []
    for k, (a0, a1) in enumerate(body.panes):
        final = k == len(body.panes) - 1 and len(body.panes) > 1
        first, second = a0 * half, a1 * half
        upper = (first - (rake * 0.84 if k == 0 else 0.0), second + (fall * 0.35 if final else 0.0))
        lower = second - (fall * 0.15 if final else 0.0)
        pane = ((first, low, b * 0.97), (upper[0], high, top_b), (upper[1], high, top_b), (lower, low, b * 0.97))
        for band, (t0, t1) in enumerate(((0.0, 0.35), (0.35, 0.62), (0.62, 0.82), (0.82, 1.0))):
            strip = tuple(between(pane[i], pane[j], t) for i, j, t in ((0, 1, t0), (0, 1, t1), (3, 2, t1), (3, 2, t0)))
            details.append((strip, f"glass {band}"))
    return tuple(details)
