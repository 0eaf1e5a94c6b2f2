"""What stands along the street: houses with roofs, gardens behind walls, fences and hedges, arches, bridges."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streets.boundaries import boundary
from streets.canvas import Stage, planes, shade
from streets.draws import Draws, stream
from streets.facades import STONE, Style, choose_style, facade, weather_wall, window
from streets.labels import ARCHWAY, BUILDING, VOID
from streets.light import Colour
from streets.panel import Panel, hang, texel_scale, visible_scale
from streets.sketch import Sketch
from streets.trees import bare_tree, leafy_tree

Array = npt.NDArray[np.float32]
Spot = tuple[float, float]


@dataclass(frozen=True)
class Lot:
    """A stretch of one side (-1 left, +1 right) of the street, from near to far, its front at |s| = front.

    `screen` is the height of the house that stands before its near end, 0 when there is none.
    """

    kind: str
    side: int
    near: float
    far: float
    front: float
    height: float
    seed: int
    season: str = "bare"
    depth: float = 9.0
    screen: float = 0.0

    def draw(self, stage: Stage) -> None:
        """Draw the lot."""
        if self.kind == "house":
            draw_house(stage, self)
        elif self.kind == "garden":
            draw_garden(stage, self)
        elif self.kind == "arch":
            draw_house(stage, self, arch=True)


def _front(lot: Lot, back: float = 0.0) -> tuple[Spot, Spot]:
    """The ends of the front line as seen from the road, left end first."""
    s = lot.side * (lot.front + back)
    return ((s, lot.near), (s, lot.far)) if lot.side < 0 else ((s, lot.far), (s, lot.near))


def draw_house(stage: Stage, lot: Lot, *, arch: bool = False) -> None:
    """A house: roof, the end wall that looks up the street, and the front."""
    rng = stream(lot.seed)
    style = choose_style(rng)
    rise = rng.between(1.8, 3.2)
    if style.roof == "pitched":
        _roof(stage, lot, rise, rng)
    _end_wall(stage, lot, style, rise if style.roof == "pitched" else 0.0, rng)
    a, b = _front(lot)
    scale = visible_scale(stage.camera, a, b)
    if scale <= 0:
        return
    panel = facade(lot.far - lot.near, lot.height, texel_scale(scale), style, rng, stage.grain)
    if arch:
        _cut_arch(panel, rng)
    hang(stage, panel, a, b, 0.0, (-float(lot.side), 0.0, 0.0))


def _cut_arch(panel: Panel, rng: Draws) -> None:
    """A carriage arch through a front: stone ring and dark passage, both of the class Archway."""
    u, v = panel.axes()
    half, spring = min(2.1, panel.width * 0.32), rng.between(2.2, 2.8)
    du, dv = u - np.float32(panel.width / 2), np.maximum(v - np.float32(spring), 0)
    out = du * du + dv * dv
    ring = out < np.float32((half + 0.45) * (half + 0.45))
    hole = out < np.float32(half * half)
    np.copyto(panel.rgb, planes(STONE) * np.float32(0.92), where=ring)
    gloom = np.clip(np.float32(70.0) - v * np.float32(14.0), 14, 90) * (np.float32(1.2) - np.abs(du) * np.float32(0.2))
    np.copyto(panel.rgb, gloom, where=hole)
    panel.label[ring] = ARCHWAY


def _end_wall(stage: Stage, lot: Lot, style: Style, rise: float, rng: Draws) -> None:
    """The wall across the near end of a house, with its gable."""
    s0, s1 = lot.side * lot.front, lot.side * (lot.front + lot.depth)
    a, b = ((s1, lot.near), (s0, lot.near)) if lot.side < 0 else ((s0, lot.near), (s1, lot.near))
    scale = visible_scale(stage.camera, a, b)
    if scale <= 0:
        return
    if lot.screen >= lot.height + rise:
        return
    panel = Panel(lot.depth, lot.height + rise - lot.screen, texel_scale(scale), style.wall, BUILDING)
    weather_wall(panel, style, rng, stage.grain)
    if lot.screen == 0.0 and rng.chance(0.6):
        for floor in range(int(lot.height / style.storey)):
            for k in range(rng.count(1, 2)):
                window(panel, lot.depth * (0.3 + 0.36 * k), floor * style.storey + 1.0, style, rng)
    if rise > 0:
        u, v = panel.axes()
        slope = np.float32(lot.height - lot.screen) + np.float32(rise) * (1 - np.abs(u / np.float32(lot.depth / 2) - 1))
        panel.label[v > slope] = VOID
    hang(stage, panel, a, b, lot.screen, (0.0, 0.0, -1.0))


def _roof(stage: Stage, lot: Lot, rise: float, rng: Draws) -> None:
    """The street slope of a pitched roof in courses of slate or tile, and a chimney at each end."""
    tile: Colour = rng.pick(((86, 88, 94), (74, 74, 78), (128, 80, 62), (104, 84, 74)))
    run = lot.depth / 2
    size = float(np.sqrt(run * run + rise * rise))
    normal = (-lot.side * rise / size, run / size, 0.0)
    middle = (lot.near + lot.far) / 2
    reach = stage.light.reach_at(lot.side * (lot.front - 0.2), lot.height + rise, middle)
    lit = stage.light.on_spot(normal, reach)
    _chimneys(stage, lot, rise, rng)
    sketch = Sketch(stage)
    courses = 9
    for k in range(courses):
        low, high = k / courses, (k + 1) / courses
        colour = shade(tile, lit, rng.between(0.78, 1.15))
        ends = [(low, lot.near), (low, lot.far), (high, lot.far), (high, lot.near)]
        quad = [(lot.side * (lot.front - 0.25 + t * run), lot.height + t * rise - 0.05, z) for t, z in ends]
        sketch.polygon(quad, colour, BUILDING)
    sketch.stamp(max(lot.near, 2.0), grain=0.12)


def _chimneys(stage: Stage, lot: Lot, rise: float, rng: Draws) -> None:
    """Brick stacks on the ridge with clay pots."""
    s, top = lot.side * (lot.front + lot.depth / 2), lot.height + rise
    for z in (lot.far - 0.5, lot.near + 0.5):
        if rng.chance(0.35) or z < 6:
            continue
        sketch = Sketch(stage)
        tall = rng.between(0.9, 1.6)
        lit = stage.light.on_spot((0.0, 0.0, -1.0), 1.0)
        side = stage.light.on_spot((-float(lot.side), 0.0, 0.0), 1.0)
        brick: Colour = (124, 82, 66)
        inner = s - lot.side * 0.5
        box(sketch, (inner, top - 0.8, z), (inner, top + tall, z + 0.9), shade(brick, side), BUILDING)
        box(sketch, (s - 0.5, top - 0.8, z), (s + 0.5, top + tall, z), shade(brick, lit), BUILDING)
        for k in (-0.28, 0.0, 0.28):
            pot = shade((168, 110, 82), lit)
            box(sketch, (s + k - 0.1, top + tall, z), (s + k + 0.1, top + tall + 0.45, z), pot, BUILDING)
        sketch.stamp(z, grain=0.1)


def box(
    sketch: Sketch, low: tuple[float, float, float], high: tuple[float, float, float], c: Colour, label: int
) -> None:
    """An upright rectangle between two opposite corners: across when z is equal, along when s is equal."""
    (s0, y0, z0), (s1, y1, z1) = low, high
    quad = [(s0, y0, z0), (s1, y0, z1), (s1, y1, z1), (s0, y1, z0)]
    sketch.polygon(quad, c, label)


def draw_garden(stage: Stage, lot: Lot) -> None:
    """A garden, a yard or a park: trees, perhaps a house set back, and a wall, fence or hedge along the pavement."""
    rng = stream(lot.seed)
    if rng.chance(0.35):
        back = Lot("house", lot.side, lot.near, lot.far, lot.front + 9.0, lot.height, lot.seed + 1, lot.season)
        draw_house(stage, back)
    spacing = rng.between(4.0, 6.0) * (1.0 if lot.near < 60 else 2.0)
    count = max(1, int((lot.far - lot.near) / spacing))
    for k in reversed(range(count)):
        z = lot.near + (k + rng.between(0.2, 0.8)) * (lot.far - lot.near) / count
        s = lot.side * (lot.front + rng.between(1.5, 6.0))
        tall, seed = rng.between(6.5, 12.0), rng.seed()
        grow(stage, s, z, tall, lot.season, seed)
    kind = rng.pick(("wall", "wall", "railings", "railings", "boards", "hedge", "hedge", "hoarding"))
    a, b = _front(lot)
    scale = visible_scale(stage.camera, a, b)
    if scale > 0:
        boundary(stage, kind, (a, b), texel_scale(scale), rng)


def grow(stage: Stage, s: float, z: float, height: float, season: str, seed: int) -> None:
    """A tree that suits the season; one in six is evergreen."""
    if seed % 6 == 0:
        leafy_tree(stage, s, z, height * 0.8, "evergreen", seed)
    elif season == "bare":
        bare_tree(stage, s, z, height, seed)
    else:
        leafy_tree(stage, s, z, height, "leafy", seed)
