"""The picture being painted: linear light and labels, covered from the far end of the street to the near."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from streets.camera import Camera
from streets.grain import Grain
from streets.labels import SKY, VOID
from streets.light import Colour, Light

Array = npt.NDArray[np.float32]


def planes(colour: Colour) -> Array:
    """A colour as three planes (3, 1, 1), to multiply maps with."""
    return np.array(colour, dtype=np.float32).reshape(3, 1, 1)


def linear(colour: Colour) -> Array:
    """Display values 0..255 as linear light 0..1 in three planes (3, 1, 1), with a display gamma of 2."""
    c = planes(colour) / np.float32(255.0)
    return c * c


def shade(colour: Colour, light: Colour, factor: float = 1.0) -> Colour:
    """The linear colour of a surface with a display colour under a light."""
    r, g, b = (c * c / 65025.0 * power * factor for c, power in zip(colour, light, strict=True))
    return r, g, b


@dataclass
class Stage:
    """All that a thing needs to draw itself: the picture so far, the camera, the light and the noise."""

    camera: Camera
    light: Light
    grain: Grain
    picture: Array = field(init=False)
    label: npt.NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.camera.height, self.camera.width)
        self.picture = np.zeros((3, *shape), dtype=np.float32)
        self.label = np.full(shape, SKY, dtype=np.uint8)

    def cover(
        self, top: int, left: int, colour: Array, label: npt.NDArray[np.uint8], depth: Array | np.float32 | float
    ) -> None:
        """Paint a block (3, rows, columns) over the picture where its label is not void; haze first, by depth."""
        rows, columns = label.shape
        here = (slice(top, top + rows), slice(left, left + columns))
        weather = self.light.weather
        veil = np.minimum(np.float32(0.6), np.float32(weather.haze) * depth / (depth + np.float32(150.0)))
        hazy = colour * (1 - veil)
        hazy += veil * planes(weather.rim)
        solid = label != VOID
        np.copyto(self.picture[:, *here], hazy, where=solid)
        np.copyto(self.label[here], label, where=solid)
