"""Ports: bytes below zero, quantised scores, layouts, and who runs on how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.models.tensor_io import ImageInput, TensorSpec, find_tensors, image_input, score_output

FLOATS = TensorSpec("x", (1, 3, 8, 10), "float32")


def test_signed_bytes_are_bytes_minus_128() -> None:
    port = image_input([TensorSpec("x", (1, 8, 10, 3), "int8")], "m")
    assert (port.layout, port.integer, port.size, port.batch) == ("NHWC", True, (8, 10), 1)
    fed = port.feed(torch.tensor([0, 127, 255], dtype=torch.uint8).view(1, 3, 1, 1))
    assert fed.dtype == np.int8
    assert fed.ravel().tolist() == [-128, -1, 127]


def test_quantised_scores_become_numbers() -> None:
    port = ImageInput("NHWC", "uint8", 1, (8, 10))
    spec = TensorSpec("y", (1, 8, 10, 4), "uint8", scale=0.5, zero=100)
    found = score_output([spec], port, "m", kind=None, num_classes=None)
    assert (found.labels, found.num_classes) == (False, 4)
    values = found.read(np.full((1, 8, 10, 4), 102, np.uint8))
    assert values.shape == (1, 4, 8, 10)
    assert values.unique().tolist() == [1.0]


def test_half_floats_are_fed_as_such() -> None:
    assert (
        image_input([TensorSpec("x", (None, 3, None, None), "float16")], "m").feed(torch.rand(1, 3, 2, 2)).dtype == "f2"
    )


@pytest.mark.parametrize(
    "shape, dtype, labels",
    [
        ((1, 8, 10), "int64", True),
        ((1, 1, 8, 10), "int32", True),
        (None, "int64", True),
        ((1, 5, 8, 10), "float32", False),
        (None, "float32", False),
    ],
)
def test_whole_numbers_without_classes_are_labels(shape: Any, dtype: str, labels: bool) -> None:
    _, found = find_tensors([FLOATS], [TensorSpec("y", shape, dtype)], {}, "m")
    assert found.labels is labels
    if labels and shape is not None:
        assert found.read(np.zeros(shape, dtype)).shape == (1, 8, 10)


def test_a_known_class_count_settles_the_layout() -> None:
    _, found = find_tensors([FLOATS], [TensorSpec("y", (1, 8, 10, 5), "float32")], {"num_classes": 5}, "m")
    assert found.channels_last
    assert found.read(np.zeros((1, 8, 10, 5), np.float32)).shape == (1, 5, 8, 10)


def test_the_output_with_a_telling_name_is_taken() -> None:
    outputs = [TensorSpec("aux", (1, 5, 8, 10), "float32"), TensorSpec("out", (1, 5, 8, 10), "float32")]
    assert find_tensors([FLOATS], outputs, {}, "m")[1].index == 1
    assert find_tensors([FLOATS], outputs, {}, "m", "aux")[1].index == 0
    with pytest.raises(cs.InputError, match="must have an output, got none"):
        find_tensors([FLOATS], [], {}, "m")
