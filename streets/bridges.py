"""A bridge over the street, with or without a train."""

import numpy as np

from streets.canvas import Stage, shade
from streets.draws import Draws, stream
from streets.facades import STONE, Style, weather_wall
from streets.labels import BRIDGE, TRAIN
from streets.light import Colour
from streets.panel import Panel, hang, texel_scale
from streets.sketch import Sketch


def draw_bridge(stage: Stage, z: float, seed: int) -> None:
    """A bridge over the street: dark soffit, girder or brick spandrel, parapet, sometimes a train on top."""
    rng = stream(seed)
    low, tall, deep = rng.between(4.4, 5.2), rng.between(1.6, 2.4), rng.between(5.0, 9.0)
    reach = 26.0
    steel = rng.chance(0.5)
    lit = stage.light.on_spot((0.0, -1.0, 0.0), 0.0)
    sketch = Sketch(stage)
    soffit = [(-reach, low, z + deep), (reach, low, z + deep), (reach, low, z), (-reach, low, z)]
    sketch.polygon(soffit, shade((120, 116, 110), lit, 0.35), BRIDGE)
    sketch.stamp(z + deep, grain=0.2)
    scale = texel_scale(stage.camera.scale(z))
    ends = ((-reach, z), (reach, z))
    if rng.chance(0.5):
        _train(stage, low + tall, z + 2.0, scale, rng)
    colour: Colour = (92, 110, 104) if steel else (142, 104, 84)
    panel = Panel(2 * reach, tall, scale, colour, BRIDGE)
    if not steel:
        weather_wall(panel, Style(colour, True, STONE, 3, 3, (1, 1), (1, 1), "plain", STONE, "flat"), rng, stage.grain)
    for k in range(int(2 * reach / 1.5) if steel else 0):
        panel.rect(k * 1.5, 0, k * 1.5 + 0.14, tall, (72, 88, 84))
    u, v = panel.axes()
    panel.rgb *= 1 + np.float32(0.08) * stage.grain.cloud(u * 8, v * 2)
    panel.rect(0, 0, panel.width, 0.2, (66, 70, 70))
    panel.rect(0, tall - 0.2, panel.width, tall, (120, 118, 112))
    hang(stage, panel, ends[0], ends[1], low, (0.0, 0.0, -1.0))


def _train(stage: Stage, base: float, z: float, scale: float, rng: Draws) -> None:
    """A passenger train on the bridge."""
    panel = Panel(52.0, 2.6, scale, (188, 190, 194), TRAIN)
    u, v = panel.axes()
    panel.rgb *= 1 + np.float32(0.04) * stage.grain.cloud(u * 8, v * 8)
    panel.rect(0, 0, 52.0, 0.8, rng.pick(((44, 62, 118), (150, 40, 44), (46, 104, 82))))
    for k in range(24):
        panel.fade(k * 2.2 + 0.3, 1.1, k * 2.2 + 1.9, 1.9, (120, 132, 144), (34, 38, 42))
    hang(stage, panel, (-26.0, z), (26.0, z), base, (0.0, 0.0, -1.0))
