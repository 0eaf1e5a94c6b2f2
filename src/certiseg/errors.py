"""The exceptions a user may see; their text is the whole message."""

from __future__ import annotations

import traceback
from pathlib import Path


class InputError(ValueError):
    """Input that breaks a rule: `<argument> must <rule>, got <value>; <what to do>`."""


class EngineLostError(RuntimeError):
    """Those who draw a run cannot go on: no worker starts, or one failed as any other would have."""


def in_one_line(error: BaseException) -> str:
    """What went wrong, and in which line of the source, for errors that nobody has foreseen."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}{place}".split())
