"""The sky: a gradient with clouds on a flat ceiling, so that they shrink toward the horizon; and the far skyline."""

import numpy as np

from streets.canvas import Stage, planes
from streets.labels import BUILDING, SKY, TREE, VOID


def paint_sky(stage: Stage) -> None:
    """Fill the whole picture with sky; everything else covers it."""
    camera, weather = stage.camera, stage.light.weather
    rows, columns = min(camera.height, int(camera.horizon) + 4) // 2 + 1, -(-camera.width // 2)
    focal = np.float32(camera.focal / 2)
    up = np.maximum((np.float32(camera.horizon / 2) - np.arange(rows, dtype=np.float32)) / focal, np.float32(0.0))[
        :, None
    ]
    across = ((np.arange(columns, dtype=np.float32) - np.float32(columns / 2)) / focal)[None, :]
    height = up / (up + np.float32(0.22))
    rim, top, cloud = (planes(c) for c in (weather.rim, weather.sky, weather.cloud))
    colour = rim + (top - rim) * height
    ceiling = 1 / (up + np.float32(0.10))
    u, v = across * ceiling * 9 + np.float32(camera.turn * 40), ceiling * 14
    shape = stage.grain.smooth(u, v) + np.float32(0.35) * stage.grain.smooth(u * 3, v * 3)
    amount = np.clip((shape + np.float32(weather.cloudiness * 2 - 1)) * np.float32(0.9), 0, 1)
    colour = colour + (cloud - colour) * (amount * np.clip(up * 6, 0.15, 1))
    colour *= 1 + np.float32(0.03) * shape
    large = np.repeat(np.repeat(colour, 2, axis=1), 2, axis=2)
    seen = stage.picture[:, : large.shape[1]]
    seen[:] = large[:, : seen.shape[1], : camera.width]
    stage.label[:] = SKY


def paint_distance(stage: Stage) -> None:
    """Far roofs and tree tops along the horizon, pale with haze, for the places where the street leaves a gap."""
    camera = stage.camera
    bearing = (np.arange(camera.width, dtype=np.float32) - np.float32(camera.width / 2)) / np.float32(camera.focal)
    bearing = bearing + np.float32(camera.turn + 1.0)
    still = np.zeros_like(bearing)
    roofs = np.float32(0.020) + np.float32(0.016) * stage.grain.rough(bearing * 26, still)
    trees = np.float32(0.022) + np.float32(0.018) * stage.grain.smooth(bearing * 90, still)
    tall = int(0.06 * camera.focal) + 2
    top = max(0, int(camera.horizon) - tall)
    rows = np.arange(top, min(camera.height, int(camera.horizon) + 2), dtype=np.float32)
    up = ((np.float32(camera.horizon) - rows) / np.float32(camera.focal))[:, None]
    noise = stage.grain.rough(bearing[None, :] * 300, up * 300)
    label = np.where(up < roofs, np.uint8(BUILDING), np.uint8(VOID))
    label = np.where(up < trees + np.float32(0.003) * noise, np.uint8(TREE), label)
    tone = np.where(label == TREE, np.float32(0.16), np.float32(0.3)) * (1 + np.float32(0.25) * noise)
    stage.cover(top, 0, tone * planes(stage.light.weather.ambient), label, np.float32(500.0))
