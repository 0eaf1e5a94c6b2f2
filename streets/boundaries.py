"""The line between a garden and the pavement: walls, hedges, railings, boards."""

import numpy as np

from streets.canvas import Stage, planes
from streets.draws import Draws
from streets.facades import STONE, choose_style, weather_wall, write
from streets.labels import FENCE, TEXT, VEGETATION, VOID, WALL
from streets.light import Colour
from streets.panel import Panel, hang

Spot = tuple[float, float]


def boundary(stage: Stage, kind: str, ends: tuple[Spot, Spot], scale: float, rng: Draws) -> None:
    """The line between garden and pavement, hung along its two ends."""
    (s0, z0), (s1, z1) = ends
    width = float(np.sqrt((s1 - s0) * (s1 - s0) + (z1 - z0) * (z1 - z0)))
    normal = (-1.0 if s0 > 0 else 1.0, 0.0, 0.0)
    if kind == "wall":
        panel = _wall(width, rng.between(0.9, 2.3), scale, rng, stage)
    elif kind == "hedge":
        panel = _hedge(width, rng.between(1.1, 2.0), scale, rng, stage)
    elif kind == "railings":
        panel = _railings(width, rng.between(1.2, 2.0), scale, rng, stage)
    else:
        panel = _boards(width, rng.between(1.5, 2.4), scale, rng, stage, kind == "hoarding")
    hang(stage, panel, ends[0], ends[1], 0.0, normal)


def _wall(width: float, height: float, scale: float, rng: Draws, stage: Stage) -> Panel:
    """A garden wall of brick or stone with a coping."""
    style = choose_style(rng)
    panel = Panel(width, height, scale, style.wall, WALL)
    weather_wall(panel, style, rng, stage.grain)
    panel.rect(0, height - 0.1, width, height, STONE)
    panel.tint(0, height - 0.2, width, height - 0.1, 0.7)
    panel.tint(0, 0, width, 0.25, 0.75)
    return panel


def _hedge(width: float, height: float, scale: float, rng: Draws, stage: Stage) -> Panel:
    """A hedge with a ragged top."""
    panel = Panel(width, height + 0.4, scale, (78, 92, 50), VEGETATION)
    u, v = panel.axes()
    a = np.float32(rng.integers(256))
    leaves = stage.grain.rough(u * 20 + a, v * 20) * np.float32(0.28) + stage.grain.cloud(
        u * 10 + a, v * 10
    ) * np.float32(0.4)
    panel.rgb *= (1 + leaves) * np.clip(np.float32(0.5) + v * np.float32(0.38 / height), 0.4, 1.1)
    ragged = np.float32(height) + stage.grain.cloud(u * 14 + a, v * 4) * np.float32(0.35)
    panel.label[v > ragged] = VOID
    return panel


def _railings(width: float, height: float, scale: float, rng: Draws, stage: Stage) -> Panel:
    """Iron railings before shrubs: the shrubs between the bars count as fence, as in hand-made labels."""
    panel = _hedge(width, height - 0.4, scale, rng, stage)
    panel.rgb *= np.float32(0.85)
    panel.label[:] = FENCE
    u, v = panel.axes()
    cell = u / np.float32(0.14)
    bars = (cell - np.floor(cell) < np.float32(0.24)) & (v > 0)
    np.copyto(panel.rgb, planes((30, 32, 34)), where=bars)
    panel.rect(0, panel.height - 0.14, panel.width, panel.height - 0.08, (34, 36, 38))
    panel.rect(0, 0.12, panel.width, 0.18, (34, 36, 38))
    if rng.chance(0.6):
        panel.rect(0, 0, panel.width, 0.45, (150, 138, 118), WALL)
        panel.rect(0, 0.38, panel.width, 0.45, (176, 168, 150))
    return panel


def _boards(width: float, height: float, scale: float, rng: Draws, stage: Stage, painted: bool) -> Panel:
    """A fence of boards, bare or painted; a painted one carries a notice."""
    wood: Colour = (184, 188, 190) if painted else (126, 98, 70)
    panel = Panel(width, height, scale, wood, FENCE)
    u, v = panel.axes()
    plank = np.floor(u / np.float32(1.2 if painted else 0.14))
    tone = stage.grain.rough(plank + np.float32(rng.integers(256)), plank) + np.zeros_like(v)
    vein = stage.grain.cloud(u * 40, v * 3)
    panel.rgb *= 1 + np.float32(0.05 if painted else 0.13) * tone + np.float32(0.05) * vein
    seam = (u / np.float32(1.2 if painted else 0.14) - plank < np.float32(0.05 if painted else 0.12)) & (v > 0)
    panel.rgb *= np.where(seam, np.float32(0.6), np.float32(1.0))
    if painted and width > 4:
        middle = width / 2
        panel.rect(middle - 1.5, 0.7, middle + 1.5, height - 0.3, (58, 92, 150), TEXT)
        write(panel, "TO LET", middle - 1.5, middle + 1.5, 0.9, height - 0.5, (236, 232, 226))
    return panel
