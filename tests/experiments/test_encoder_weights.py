"""The published names and ours meet layer by layer."""

import pytest
import torch

from certiseg.models.compact import Encoder
from experiments.encoder_weights import convert


def published() -> dict[str, torch.Tensor]:
    """A state dict with the published names, each tensor filled with its own number."""
    shapes = {"_conv_stem": (32, 3, 3, 3), "_bn0": (32,)}
    inputs, index = 32, 0
    for repeats, kernel, expansion, outputs in (
        *((1, 3, 1, 16), (3, 3, 6, 24), (3, 5, 6, 40), (4, 3, 6, 80)),
        *((4, 5, 6, 112), (5, 5, 6, 192), (1, 3, 6, 320)),
    ):
        for _ in range(repeats):
            inner, block = inputs * expansion, f"_blocks.{index}"
            if expansion > 1:
                shapes |= {f"{block}._expand_conv": (inner, inputs, 1, 1), f"{block}._bn0": (inner,)}
            shapes |= {f"{block}._depthwise_conv": (inner, 1, kernel, kernel), f"{block}._bn1": (inner,)}
            shapes |= {f"{block}._project_conv": (outputs, inner, 1, 1), f"{block}._bn2": (outputs,)}
            inputs, index = outputs, index + 1
    state = {}
    for layer, shape in shapes.items():
        for kind in ("weight",) if len(shape) > 1 else ("weight", "bias", "running_mean", "running_var"):
            state[f"{layer}.{kind}"] = torch.full(shape, float(len(state)))
        if len(shape) == 1:
            state[f"{layer}.num_batches_tracked"] = torch.tensor(len(state))
    return state | {"_conv_head.weight": torch.zeros(1280, 320, 1, 1), "_fc.bias": torch.zeros(1000)}


def test_every_tensor_of_the_encoder_gets_its_own_published_values() -> None:
    state = published()
    converted = convert(state)
    assert set(converted) == {f"encoder.{name}" for name in Encoder().state_dict()}
    numbers = [float(value.flatten()[0]) for value in converted.values()]
    assert len(set(numbers)) == len(numbers) == len(state) - 2
    first = converted["encoder.stages.1.1.depthwise.0.weight"]
    assert first.unique().tolist() == [float(state["_blocks.2._depthwise_conv.weight"].flatten()[0])]
    last = converted["encoder.stages.6.0.project.1.running_var"]
    assert last.unique().tolist() == [float(state["_blocks.20._bn2.running_var"][0])]


def test_another_network_is_refused() -> None:
    with pytest.raises((KeyError, RuntimeError)):
        convert({name: value for name, value in published().items() if "_blocks.7." not in name})
