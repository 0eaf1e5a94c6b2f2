"""What the loader tests share: writing small files in a layout, and what a message must look like."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.errors import InputError

Save = Callable[..., Path]
Refuse = Callable[..., str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write an array as an image file below tmp_path; without an array, a grey picture of 4x6 pixels."""

    def write(place: str, array: np.ndarray | None = None) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 6, 3), 90, np.uint8) if array is None else array).save(path)
        return path

    return write


@pytest.fixture
def refuse() -> Refuse:
    """Call a function that must raise InputError with one sentence that holds these words."""

    def call(function: Callable[[], object], *words: object) -> str:
        with pytest.raises(InputError) as caught:
            function()
        text = str(caught.value)
        assert "\n" not in text
        assert " must " in text
        assert ", got" in text
        for word in words:
            assert str(word) in text, text
        return text

    return call
