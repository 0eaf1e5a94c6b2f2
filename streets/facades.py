"""Front walls of houses, painted flat: brick, stone or render, rows of windows, doors and shop fronts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streets.canvas import planes
from streets.draws import Draws
from streets.grain import Grain
from streets.labels import BUILDING, TEXT
from streets.lettering import SHOPS, word
from streets.light import Colour
from streets.panel import Panel

Array = npt.NDArray[np.float32]
WHITE: Colour = (226, 224, 216)
STONE: Colour = (186, 178, 160)


@dataclass(frozen=True)
class Style:
    """How a house looks: its wall, its windows and what stands at street level."""

    wall: Colour
    bricks: bool
    frame: Colour
    storey: float
    bay: float
    window: tuple[float, float]
    panes: tuple[int, int]
    ground: str
    trim: Colour
    roof: str
    arched: bool = False


WALLS: dict[str, tuple[Colour, ...]] = {
    "brick": ((148, 100, 84), (164, 118, 98), (176, 160, 130), (160, 148, 122), (130, 90, 76), (184, 168, 136)),
    "render": ((216, 212, 202), (206, 196, 172), (196, 200, 204), (190, 172, 150), (222, 218, 196)),
    "stone": ((172, 160, 136), (156, 148, 132), (186, 172, 146), (146, 140, 130)),
    "modern": ((150, 150, 148), (120, 104, 92), (172, 166, 154), (104, 108, 114)),
}


PAINTS: tuple[Colour, ...] = (
    (38, 44, 58), (30, 60, 48), (96, 28, 34), (168, 36, 38), (28, 30, 32), (60, 84, 120), (206, 200, 186),
    (44, 70, 128), (122, 92, 52), (70, 72, 74), (200, 168, 70), (88, 46, 84), (46, 50, 52), (226, 222, 214),
)  # fmt: skip
"""The colours of shops and doors: mostly dark, some bright."""


def choose_style(rng: Draws) -> Style:
    """A random house, in the proportions of an English town."""
    kind = rng.pick(("brick", "brick", "brick", "render", "render", "stone", "modern"))
    walls = WALLS[kind]
    wall = rng.pick(walls)
    modern = kind == "modern"
    ground = rng.pick(("shop", "shop", "shop", "house", "plain"))
    wide = rng.between(1.5, 2.4) if modern else rng.between(0.85, 1.25)
    tall = rng.between(1.3, 1.7) if modern else rng.between(1.45, 1.95)
    return Style(
        wall=wall,
        bricks=kind == "brick" or (modern and rng.chance(0.4)),
        frame=(96, 98, 100) if modern else (WHITE if rng.chance(0.85) else (70, 64, 58)),
        storey=rng.between(2.9, 3.5),
        bay=wide + rng.between(0.7, 1.5),
        window=(wide, tall),
        panes=(2, 1) if modern else rng.pick(((1, 2), (2, 2), (2, 4), (3, 4))),
        ground=ground,
        trim=STONE if rng.chance(0.6) else WHITE,
        roof="flat" if modern or rng.chance(0.25) else "pitched",
        arched=kind == "stone" and rng.chance(0.7),
    )


def facade(width: float, height: float, scale: float, style: Style, rng: Draws, grain: Grain) -> Panel:
    """Paint a front wall of a given size in metres at `scale` texels per metre."""
    panel = Panel(width, height, scale, style.wall, BUILDING)
    weather_wall(panel, style, rng, grain)
    floors = max(1, round(height / style.storey))
    storey = height / floors
    count = max(1, int(width / style.bay))
    bay = width / count
    for floor in range(1, floors):
        if style.roof == "flat" and not style.bricks:
            panel.rect(0, floor * storey - 0.15, width, floor * storey + 0.1, _mix(style.wall, style.trim, 0.5))
        for k in range(count):
            middle = (k + 0.5) * bay + rng.between(-0.04, 0.04)
            window(panel, middle, floor * storey + 0.75, style, rng)
    if style.ground == "shop":
        shop_front(panel, min(storey, 3.6), style, rng)
    else:
        house_front(panel, count, bay, style, rng)
    _edges(panel, style, rng)
    _stains(panel, rng, grain)
    return panel


def weather_wall(panel: Panel, style: Style, rng: Draws, grain: Grain) -> None:
    """Bricks or blocks: each has its own tone, and mortar shows when the texels are fine enough."""
    u, v = panel.axes()
    length, course = (0.225, 0.075) if style.bricks else (0.9, 0.35)
    coarse = panel.scale * course < 2.0
    if coarse:
        length, course = length * 2, course * 2
    row = np.floor(v / np.float32(course))
    shift = np.float32(0.5) * (row - 2 * np.floor(row * np.float32(0.5)))
    across = u / np.float32(length) + shift
    tone = grain.rough(across + np.float32(rng.integers(256)), row + np.float32(rng.integers(256)))
    strength = 0.17 if style.bricks else 0.04
    if panel.scale * course < 6.0:
        strength *= 0.5
    panel.rgb *= 1 + np.float32(strength) * tone
    if panel.scale * course > 4.0 and not coarse:
        joint = ((v / np.float32(course) - row) < np.float32(0.16)) | ((across - np.floor(across)) < np.float32(0.06))
        mortar = planes(_mix(style.wall, (176, 170, 160), 0.55))
        fade = joint * np.float32(0.75 if style.bricks else 0.12)
        panel.rgb += (mortar - panel.rgb) * fade


def window(panel: Panel, middle: float, sill: float, style: Style, rng: Draws) -> None:
    """A window: lintel, reveal in shade, frame, panes that mirror the sky above and a dark room below, sill."""
    wide, tall = style.window
    tall = min(tall, panel.height - sill - 0.25)
    if tall < 0.5:
        return
    u0, u1, v1 = middle - wide / 2, middle + wide / 2, sill + tall
    panel.rect(u0 - 0.12, v1, u1 + 0.12, v1 + 0.2, style.trim)
    panel.rect(u0, sill, u1, v1, (44, 42, 40))
    panel.rect(u0 + 0.04, sill, u1 - 0.04, v1 - 0.08, style.frame)
    sheen = rng.between(0.15, 1.0)
    blind = rng.chance(0.25)
    if panel.scale < 11.0:
        panel.rect(u0 + 0.12, sill + 0.1, u1 - 0.12, v1 - 0.14, _mix((24, 27, 30), (130, 142, 154), sheen * 0.35))
        return
    across, up = style.panes
    inner_w, inner_h = (wide - 0.2) / across, (tall - 0.24) / up
    for i in range(across):
        for j in range(up):
            a, c = u0 + 0.1 + i * inner_w, sill + 0.1 + j * inner_h
            high = (j + 1) / up
            top = _mix((26, 29, 33), (150, 166, 182), sheen * high * 0.7)
            bottom = _mix((22, 24, 27), (120, 130, 140), sheen * (high - 1 / up) * 0.6)
            if blind and high > 0.5:
                top, bottom = (176, 170, 158), (150, 144, 134)
            panel.fade(a + 0.025, c + 0.025, a + inner_w - 0.025, c + inner_h - 0.025, top, bottom)
    if style.arched:
        _arch(panel, u0, u1, v1, style)
    panel.rect(u0 - 0.12, sill - 0.1, u1 + 0.12, sill, style.trim)
    panel.tint(u0 - 0.1, sill - 0.22, u1 + 0.1, sill - 0.1, 0.72)


def _arch(panel: Panel, u0: float, u1: float, top: float, style: Style) -> None:
    """Round the head of a window: wall colour outside a half circle."""
    radius = (u1 - u0) / 2
    here = panel.span(u0, top - radius, u1, top + 0.2)
    u, v = panel.axes()
    du, dv = u[:, here[1]] - np.float32((u0 + u1) / 2), v[here[0]] - np.float32(top - radius)
    outside = du * du + dv * dv > np.float32(radius * radius)
    np.copyto(panel.rgb[:, *here], planes(style.trim) * np.float32(0.94), where=outside)


def shop_front(panel: Panel, top: float, style: Style, rng: Draws) -> None:
    """A shop at street level: fascia with a name, plate glass, door, stall riser and pilasters."""
    paint = rng.pick(PAINTS)
    board = 0.62
    panel.rect(0, 0, panel.width, top, _mix(paint, (40, 40, 42), 0.45))
    start = 0.0
    while start < panel.width - 2.5:
        wide = min(rng.between(4.0, 6.5), panel.width - start)
        if panel.width - start - wide < 3.0:
            wide = panel.width - start
        _one_shop(panel, start, start + wide, top, board, rng.pick(PAINTS), rng)
        start += wide
    panel.tint(0, top - board - 0.16, panel.width, top - board, 0.5)
    panel.rect(0, top, panel.width, top + 0.12, _mix(style.trim, paint, 0.2))


def _one_shop(panel: Panel, u0: float, u1: float, top: float, board: float, paint: Colour, rng: Draws) -> None:
    """The fascia, the glass and the door of one shop between u0 and u1."""
    ink: Colour = (232, 226, 210) if sum(paint) < 380 else (34, 34, 40)
    panel.rect(u0 + 0.1, top - board, u1 - 0.1, top, paint)
    lettered = rng.chance(0.8)
    if lettered:
        panel.label[panel.span(u0 + 0.1, top - board, u1 - 0.1, top)] = TEXT
        write(panel, rng.pick(SHOPS), u0, u1, top - board + 0.14, top - 0.16, ink)
    glass_top = top - board - 0.12
    door = u0 + rng.between(0.15, 0.6) * (u1 - u0)
    warm = rng.chance(0.45)
    for a, c, foot in ((u0 + 0.25, door - 0.1, 0.55), (door, door + 0.95, 0.12), (door + 1.05, u1 - 0.25, 0.55)):
        if c - a < 0.3:
            continue
        glow = (196, 166, 122) if warm else (116, 122, 128)
        panel.fade(a, foot, c, glass_top, _mix(glow, (70, 76, 82), 0.3), (34, 35, 38))
        goods = rng.random((int((c - a) * 5), 4)).tolist()
        for at, big, row, hue in goods if panel.scale > 9 else []:
            left, size = a + at * (c - a - 0.1), 0.08 + 0.22 * big
            shelf = foot + 0.55 * int(3 * row) * (foot > 0.3)
            colour = _mix(PAINTS[int(hue * len(PAINTS))], (52, 52, 54), 0.5)
            panel.rect(left, shelf, min(left + size, c), min(shelf + size * 1.6, glass_top), colour)
        step = (c - a) / max(1, round((c - a) / 1.4))
        for k in range(1, round((c - a) / step)):
            panel.rect(a + k * step - 0.03, foot, a + k * step + 0.03, glass_top, paint)
    for edge in (u0, u1 - 0.2):
        panel.rect(edge, 0, edge + 0.2, top - board, _mix(paint, WHITE, 0.25))


def house_front(panel: Panel, count: int, bay: float, style: Style, rng: Draws) -> None:
    """Street level of a dwelling or an office: a plinth, a door in one bay, windows in the others."""
    panel.rect(0, 0, panel.width, 0.4, _mix(style.wall, (90, 86, 80), 0.5))
    every = max(2, rng.count(2, 3))
    for k in range(count):
        middle = (k + 0.5) * bay
        if k % every == 0 and style.ground == "house":
            u0, u1 = middle - 0.5, middle + 0.5
            panel.rect(u0 - 0.18, 0, u1 + 0.18, 2.5, style.trim)
            panel.rect(u0, 0.1, u1, 2.1, rng.pick(PAINTS))
            panel.fade(u0 + 0.05, 2.12, u1 - 0.05, 2.4, (110, 120, 130), (50, 54, 60))
            panel.tint(u0, 0.1, u0 + 0.08, 2.1, 0.55)
        else:
            window(panel, middle, 0.95, style, rng)


def write(panel: Panel, text: str, u0: float, u1: float, v0: float, v1: float, ink: Colour) -> None:
    """Letter a text in the middle of a rectangle."""
    bits = word(text)
    wide = min((v1 - v0) * 0.85 * bits.shape[1] / 5, (u1 - u0) * 0.85)
    middle = (u0 + u1) / 2
    here = panel.span(middle - wide / 2, v0, middle + wide / 2, v1)
    rows, columns = panel.label[here].shape
    row = np.arange(rows) * 5 // max(rows, 1)
    column = np.arange(columns) * bits.shape[1] // max(columns, 1)
    np.copyto(panel.rgb[:, *here], planes(ink), where=bits[row[:, None], column[None, :]])


def _edges(panel: Panel, style: Style, rng: Draws) -> None:
    """The cornice at the top, the shade below it, and a drain pipe at one side."""
    panel.rect(0, panel.height - 0.22, panel.width, panel.height, _mix(style.trim, style.wall, 0.35))
    panel.tint(0, panel.height - 0.5, panel.width, panel.height - 0.22, 0.68)
    if style.roof == "pitched" and rng.chance(0.7):
        panel.rect(0.15, 0.1, 0.27, panel.height - 0.2, (52, 50, 50))


def _stains(panel: Panel, rng: Draws, grain: Grain) -> None:
    """Dirt that runs down, soot at the foot, and patches."""
    u, v = panel.axes()
    a, c = np.float32(rng.integers(256)), np.float32(rng.integers(256))
    streaks = grain.cloud(u * 9 + a, v * np.float32(1.3) + c)
    patches = grain.cloud(u * np.float32(3.0) + c, v * 3 + a)
    foot = np.clip(np.float32(0.8) + v * np.float32(0.15), 0, 1)
    panel.rgb *= (1 + np.float32(0.05) * streaks + np.float32(0.04) * patches) * foot


def _mix(a: Colour, b: Colour, share: float) -> Colour:
    """A colour between two, `share` of the way to the second."""
    return (a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share)
