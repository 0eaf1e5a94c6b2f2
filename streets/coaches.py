"""Buses and lorries: boxes whose two visible sides are panels with windows, wheels, lamps and lettering."""

import numpy as np

from streets.canvas import Stage
from streets.draws import Draws, stream
from streets.facades import write
from streets.labels import TRUCK_BUS
from streets.light import Colour
from streets.panel import Panel, hang, visible_scale

LIVERIES: tuple[tuple[Colour, Colour], ...] = (
    ((176, 34, 36), (226, 220, 206)), ((38, 84, 146), (214, 214, 206)), ((206, 200, 180), (46, 92, 74)),
    ((52, 120, 86), (220, 214, 190)), ((214, 214, 212), (60, 66, 120)),
)  # fmt: skip
WIDTH, CLEAR = 2.45, 0.3


def coach_size(kind: str, seed: int) -> tuple[float, float]:
    """Length and height in metres."""
    if kind == "lorry":
        return 7.0, 3.2
    return 10.0, 4.1 if seed % 3 == 0 else 3.0


def draw_coach(stage: Stage, kind: str, s: float, z: float, ahead: bool, seed: int) -> None:
    """Draw a bus or a lorry with its middle at (s, z), going our way (ahead) or coming toward us."""
    rng = stream(seed)
    length, height = coach_size(kind, seed)
    body, trim = rng.pick(LIVERIES)
    near, far = z - length / 2, z + length / 2
    if near < 2.0:
        return
    drift = float(stage.camera.drift(np.array([near], dtype=np.float32))[0])
    flank = s - WIDTH / 2 if s + drift > stage.camera.lane + stage.camera.turn * near else s + WIDTH / 2
    right = flank < s
    a, b = ((flank, far), (flank, near)) if right else ((flank, near), (flank, far))
    scale = visible_scale(stage.camera, a, b)
    if scale > 0:
        side = _side(kind, length, height, min(scale, 110.0), (body, trim), stage, rng)
        hang(stage, side, a, b, 0.0, (-1.0 if right else 1.0, 0.0, 0.0))
    a, b = (s - WIDTH / 2, near), (s + WIDTH / 2, near)
    scale = visible_scale(stage.camera, a, b)
    if scale > 0:
        end = (
            _rear(kind, height, min(scale, 110.0), (body, trim), stage)
            if ahead
            else _face(kind, height, min(scale, 110.0), (body, trim), stage)
        )
        hang(stage, end, a, b, 0.0, (0.0, 0.0, -1.0))


def _sheet(width: float, height: float, scale: float, colour: Colour, stage: Stage) -> Panel:
    """Painted metal with a little dirt toward the road, dark below the skirt."""
    panel = Panel(width, height, scale, colour, TRUCK_BUS)
    u, v = panel.axes()
    dirt = np.clip(np.float32(0.75) + v * np.float32(0.12), 0, 1)
    panel.rgb *= dirt * (1 + np.float32(0.05) * stage.grain.cloud(u * 12, v * 6))
    panel.rect(0, 0, width, CLEAR, (22, 22, 23))
    panel.tint(0, height - 0.12, width, height, 1.1)
    return panel


def _side(
    kind: str,
    length: float,
    height: float,
    scale: float,
    livery: tuple[Colour, Colour],
    stage: Stage,
    rng: Draws,
) -> Panel:
    """The long side."""
    body, trim = livery
    panel = _sheet(length, height, scale, trim if kind == "lorry" else body, stage)
    if kind == "lorry":
        write(panel, rng.pick(("MOVERS", "FRESH", "PARCELS", "TIMBER")), 0.5, length - 0.5, 1.5, 2.4, body)
        panel.rect(0, 0.3, length, 0.9, (40, 40, 42))
    else:
        panel.rect(0, 0.75, length, 0.95, trim)
        for floor in range(2 if height > 3.5 else 1):
            low = 1.25 + floor * 1.5
            panel.rect(0.3, low - 0.05, length - 0.3, low + 0.95, (26, 28, 30))
            for k in range(int((length - 0.8) / 1.3)):
                panel.fade(0.4 + k * 1.3, low, 0.4 + k * 1.3 + 1.2, low + 0.88, (128, 140, 150), (34, 37, 41))
    u, v = panel.axes()
    for axle in (1.6, length - 2.2):
        out = (u - np.float32(axle)) * (u - np.float32(axle)) + (v - np.float32(0.48)) * (v - np.float32(0.48))
        for radius, tone in ((0.58, 14.0), (0.48, 28.0), (0.27, 118.0), (0.12, 60.0)):
            np.copyto(panel.rgb, np.float32(tone), where=out < np.float32(radius * radius))
    return panel


def _rear(kind: str, height: float, scale: float, livery: tuple[Colour, Colour], stage: Stage) -> Panel:
    """The back: window or doors, lamps, plate."""
    body, trim = livery
    panel = _sheet(WIDTH, height, scale, trim if kind == "lorry" else body, stage)
    if kind == "lorry":
        panel.rect(WIDTH / 2 - 0.02, 0.9, WIDTH / 2 + 0.02, height - 0.1, (70, 70, 72))
        for u in (0.35, WIDTH - 0.4):
            panel.rect(u, 0.9, u + 0.04, height - 0.15, (110, 110, 112))
    else:
        panel.rect(0, 1.1, WIDTH, 1.3, trim)
        for floor in range(2 if height > 3.5 else 1):
            low = 1.6 + floor * 1.45
            panel.fade(0.25, low, WIDTH - 0.25, low + 0.85, (96, 106, 116), (28, 30, 33))
        for k in range(5):
            panel.rect(0.5, 0.66 + k * 0.07, WIDTH - 0.5, 0.69 + k * 0.07, (40, 40, 42))
    for u in (0.08, WIDTH - 0.26):
        panel.rect(u, 0.6, u + 0.18, 1.0, (186, 26, 26))
        panel.rect(u, 1.0, u + 0.18, 1.12, (220, 130, 40))
    panel.rect(WIDTH / 2 - 0.28, 0.48, WIDTH / 2 + 0.28, 0.6, (222, 186, 50))
    _tyres(panel)
    return panel


def _face(kind: str, height: float, scale: float, livery: tuple[Colour, Colour], stage: Stage) -> Panel:
    """The front: windscreen, destination, lamps, plate."""
    body, trim = livery
    panel = _sheet(WIDTH, height, scale, body, stage)
    top = min(height - 0.5, 2.5)
    panel.fade(0.12, 1.15, WIDTH - 0.12, top, (124, 136, 146), (30, 32, 35))
    panel.rect(WIDTH / 2 - 0.02, 1.15, WIDTH / 2 + 0.02, top, (30, 30, 31))
    if kind == "lorry":
        panel.fade(0, top + 0.1, WIDTH, height, trim, trim)
    else:
        panel.rect(0.4, top + 0.06, WIDTH - 0.4, min(top + 0.36, height - 0.05), (24, 24, 22))
        write(panel, "CENTRE", 0.4, WIDTH - 0.4, top + 0.12, min(top + 0.3, height - 0.1), (230, 186, 60))
        if height > 3.5:
            panel.fade(0.12, 3.0, WIDTH - 0.12, 3.8, (120, 132, 142), (36, 39, 43))
    for u in (0.15, WIDTH - 0.5):
        panel.rect(u, 0.55, u + 0.35, 0.78, (228, 230, 226))
    panel.rect(0.7, 0.6, WIDTH - 0.7, 0.8, (34, 34, 36))
    panel.rect(WIDTH / 2 - 0.28, 0.42, WIDTH / 2 + 0.28, 0.54, (228, 228, 220))
    _tyres(panel)
    return panel


def _tyres(panel: Panel) -> None:
    """The treads below the skirt; the rest of the gap is open shade."""
    for u in (0.12, WIDTH - 0.42):
        panel.rect(u, 0, u + 0.3, 0.4, (16, 16, 17))
