"""What a hundred objects add to a draw of `compact`: their values over a bare forward pass, sixteen draws at once."""

from __future__ import annotations

import numpy as np
from PIL import Image

import certiseg as cs
from benchmarks.measure import Figure, interleaved_ratio
from benchmarks.models import compact, street_pixels
from benchmarks.overhead import bare_passes
from certiseg.measures.files import Instance
from certiseg.measures.questions import Scene, kept, resolve
from certiseg.measures.record import Reader
from certiseg.sampling import BUFFERED_DRAWS

OBJECTS, LARGE = 100, (1024, 2048)
AIMS = {(360, 480): 0.02, LARGE: 0.05}


def measure(*, repeats: int = 5) -> list[Figure]:
    """Share and overlap of a hundred objects and what is kept, at 480x360 and at 1024x2048."""
    street, model, tree = street_pixels(), compact(), cs.load_hierarchy("camvid")
    large = Image.fromarray((street * 255).round().astype(np.uint8)).resize(LARGE[::-1])
    figures = []
    for pixels in (street, np.asarray(large, np.float32) / np.float32(255)):
        size = (pixels.shape[0], pixels.shape[1])
        labels = model.predict(pixels)
        reader = Reader(resolve([kept(), *_objects(size)], Scene(labels, tree)))
        batch = np.repeat(labels[None], BUFFERED_DRAWS, axis=0)
        ratio = interleaved_ratio(
            lambda reader=reader, batch=batch: reader.read(batch),
            bare_passes(model, pixels, BUFFERED_DRAWS),
            repeats=repeats,
        )
        name = f"values of {OBJECTS} objects of a draw over a bare forward pass, compact {size[1]}x{size[0]}"
        figures.append(Figure(name, ratio, AIMS[size], "<="))
    return figures


def _objects(size: tuple[int, int]) -> list[cs.measures.Question]:
    """A hundred boxes in ten rows, each a fifteenth of the image high and wide."""
    height, width = size
    asked = []
    for number in range(OBJECTS):
        mask = np.zeros(size, bool)
        top, left = number // 10 * height // 10, number % 10 * width // 10
        mask[top : top + height // 15, left : left + width // 15] = True
        asked += Instance(f"vehicle {number}", "vehicle", mask).questions()
    return asked
