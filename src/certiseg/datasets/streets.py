"""`streets`: two dozen rendered street scenes with exact labels, which ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.images import read_ids

if TYPE_CHECKING:
    import numpy as np

SCENES = Path(__file__).parent / "scenes"
"""The scenes as a `folder` data set, with `lanes/` beside `images/` and `labels/`."""


def scene_lane(name: str) -> NDArray[np.bool_]:
    """Where the camera's own lane lies in a scene (H, W), up to 40 m ahead, whatever stands on it."""
    found = {path.stem: path for path in sorted(SCENES.glob("*/lanes/*.png"))}
    if name not in found:
        raise InputError(f"name must be a scene of streets, got {name!r}; for example {next(iter(found))}")
    return read_ids(found[name]) > 0
