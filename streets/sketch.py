"""Cut-outs made of polygons at places in the street: vehicles, people, poles, roofs."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from streets.camera import NEAR
from streets.canvas import Stage
from streets.labels import VOID
from streets.light import Colour

Array = npt.NDArray[np.float32]
Place = tuple[float, float, float]
CIRCLE = np.round(np.stack([f(np.arange(20) * (np.pi / 10)) for f in (np.cos, np.sin)], axis=1), 6).tolist()
"""Twenty points on the unit circle, rounded so that no machine differs."""

CEILING = np.float32(2.0)
"""The brightest linear light that a blurred sketch can hold."""


class Sketch:
    """Polygons at places in the street, drawn in order into one cut-out and stamped on the picture together."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.corners: list[Place] = []
        self.pieces: list[tuple[int, Colour, int]] = []

    def polygon(self, places: Sequence[Place], colour: Colour, label: int) -> None:
        """Add a polygon of places with a linear colour."""
        self.corners.extend(places)
        self.pieces.append((len(places), colour, label))

    def stamp(self, depth: float, *, soften: float = 0.0, grain: float = 0.06) -> None:
        """Draw the pieces; soften colours by a radius in metres and add grain, then cover the picture."""
        stage, camera = self.stage, self.stage.camera
        points, depths = camera.pixels(np.array(self.corners, dtype=np.float32))
        if float(depths.min()) <= NEAR:
            return
        left, top = (max(0, int(np.floor(float(value)))) for value in points.min(axis=0))
        right = min(camera.width, int(np.ceil(float(points[:, 0].max()))) + 1)
        bottom = min(camera.height, int(np.ceil(float(points[:, 1].max()))) + 1)
        if right <= left or bottom <= top:
            return
        corner = np.array([left + 0.5, top + 0.5], dtype=np.float32)
        piece = self._pieces(points - corner, right - left, bottom - top)
        colours = np.array([(0.0, 0.0, 0.0), *(colour for _, colour, _ in self.pieces)], dtype=np.float32)
        labels = np.array([VOID, *(label for _, _, label in self.pieces)], dtype=np.uint8)[piece]
        colour = _softened(colours.T[:, piece], labels != VOID, soften * camera.scale(depth))
        colour *= 1 + np.float32(grain) * self._noise((bottom - top, right - left), left, top, depth)
        stage.cover(top, left, colour, labels, depth)

    def _pieces(self, points: Array, width: int, height: int) -> npt.NDArray[np.int32]:
        """Which piece shows at each pixel, counted from 1 in the order drawn; 0 where none does."""
        image = Image.new("I", (width, height), 0)
        pen = ImageDraw.Draw(image)
        flat = points.reshape(-1).tolist()
        start = 0
        for number, (count, _, _) in enumerate(self.pieces, start=1):
            pen.polygon(flat[start : start + 2 * count], fill=number)
            start += 2 * count
        return np.asarray(image, dtype=np.int32)

    def _noise(self, shape: tuple[int, int], left: int, top: int, depth: float) -> Array:
        """Noise on a cut-out, fixed to its size in metres so that every picture size shows the same."""
        step = np.float32(20.0 / self.stage.camera.scale(depth))
        u = (np.arange(shape[1], dtype=np.float32) + np.float32(left)) * step
        v = (np.arange(shape[0], dtype=np.float32) + np.float32(top)) * step
        fine = self.stage.grain.rough(u[None, :] * 2, v[:, None] * 2)
        return self.stage.grain.cloud(u[None, :], v[:, None]) + fine * np.float32(0.5)


def _softened(colour: Array, solid: npt.NDArray[np.bool_], radius: float) -> Array:
    """Linear colours blurred inside their own outline only; the blur works on bytes with a gamma of 2."""
    if radius < 0.6:
        return colour
    blur = ImageFilter.GaussianBlur(radius)
    weight = np.asarray(Image.fromarray(solid.astype(np.uint8) * 255).filter(blur), dtype=np.float32)
    coded = (np.sqrt(np.clip(colour / CEILING, 0, 1)) * np.float32(255.0) + np.float32(0.5)).astype(np.uint8)
    planes = [np.asarray(Image.fromarray(plane).filter(blur), dtype=np.float32) for plane in coded]
    soft = np.stack(planes) / np.maximum(weight, np.float32(1.0))
    return np.where(solid, soft * soft * CEILING, colour)
