"""Tiny models in every format, and the two checks that every adapter must pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import certiseg as cs
from certiseg.models.segmenter import as_batch

NAMES = ("road", "house", "tree", "sky", "car")
HIERARCHY = {
    "name": "tiny",
    "classes": list(NAMES),
    "levels": {1: {"ground": ["road", "car"], "tall": ["house", "tree"]}, 2: {"solid": ["ground", "tall"]}},
}
SIZE = (24, 32)


class TinyNet(nn.Module):
    """Two convolutions; scores at half the resolution."""

    def __init__(self, classes: int = len(NAMES), *, seed: int = 0, stride: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=stride, padding=1)
        self.last = nn.Conv2d(8, classes, 1)
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.7

    def forward(self, images: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(images)))


class Labels(nn.Module):
    """The arg max of a network, from bytes."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images.float() / 255).argmax(1)


def picture(size: tuple[int, int] = SIZE, seed: int = 0) -> NDArray[np.uint8]:
    """An image with large patches, so that some pixels are sure."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 256, (-(-size[0] // 8), -(-size[1] // 8), 3), dtype=np.uint8)
    return np.ascontiguousarray(patches.repeat(8, axis=0).repeat(8, axis=1)[: size[0], : size[1]])


def noisy_batch(size: tuple[int, int] = SIZE, count: int = 3) -> Tensor:
    """Images around [0, 1] that leave it, as noise makes them."""
    rng = np.random.default_rng(1)
    clean = picture(size).astype(np.float32) / 255
    return as_batch(clean + 0.25 * rng.standard_normal((count, *clean.shape), dtype=np.float32))


def assert_same_function(adapted: cs.Segmenter, original: cs.Segmenter, size: tuple[int, int] = SIZE) -> None:
    """Scores within 1e-4 and labels equal on more than 99.9 % of the pixels."""
    images = noisy_batch(size)
    ours, theirs = adapted(images), original(images)
    if ours.kind == theirs.kind != "labels":
        assert ours.values.shape == theirs.values.shape
        assert float((ours.values - theirs.values).abs().max()) < 1e-4
    assert (ours.labels() == theirs.labels()).mean() > 0.999


def assert_certifies(segmenter: Any, folder: Path, *, again: Any = None, batch_size: int = 4) -> cs.Certificate:
    """Certify end to end, then verify with the model (loaded `again`): every vote must come out the same."""
    image = picture()
    votes = cs.sample(segmenter, image, sigma=0.1, n0=5, n=60, seed=3, batch_size=batch_size)
    certificate = cs.certify(votes, tiny_hierarchy(), method="nested")
    assert certificate.abstain_rate < 1
    path = folder / "tiny.certificate.npz"
    certificate.save(path)
    outcome = cs.verify(path, model=segmenter if again is None else again, image=image)
    assert outcome.passed, outcome.checks[-1]
    assert outcome.checks[-1].name == "redraw"
    return certificate


def tiny_hierarchy() -> Any:
    from certiseg.hierarchy import hierarchy_from_dict

    return hierarchy_from_dict(HIERARCHY, source="tiny")


def onnx_file(path: Path, module: nn.Module, example: Tensor, *, any_size: bool = True, notes: Any = None) -> Path:
    """Any module as an ONNX file, without certiseg's notes."""
    import onnx

    from certiseg.models.export import onnx_of

    graph = onnx.load_from_string(onnx_of(module, example, "tiny", any_size=any_size))
    if notes:
        onnx.helper.set_model_props(graph, notes)
    path.write_bytes(graph.SerializeToString())
    return path


def tflite_file(path: Path, network: TinyNet, *, size: tuple[int, int] = SIZE, labels: bool) -> Path:
    """The network in TFLite's format: floats to scores, or bytes to labels as phones have it."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT()
    model.version, model.description = 3, "tiny"
    graph = _Graph(schema)
    current = graph.tensor("image", (1, *size, 3), "UINT8" if labels else "FLOAT32")
    graph.inputs = [current]
    if labels:
        shape = (1, *size, 3)
        current = graph.add("CAST", [current], graph.tensor("floats", shape, "FLOAT32"), None)
        scale = graph.constant("scale", np.float32([1 / 255]), "FLOAT32")
        current = graph.add("MUL", [current, scale], graph.tensor("scaled", shape, "FLOAT32"), schema.MulOptionsT())
    half = (size[0] // 2, size[1] // 2)
    # SAME padding with stride 2 pads right and below alone, unlike torch: pad first, as exporters do.
    border = graph.constant("border", np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]), "INT32")
    padded = graph.tensor("padded", (1, size[0] + 2, size[1] + 2, 3), "FLOAT32")
    current = graph.add("PAD", [current, border], padded, schema.PadOptionsT())
    current = graph.convolution(current, network.first, (1, *half, 8), relu=True)
    current = graph.convolution(current, network.last, (1, *half, network.last.out_channels), relu=False)
    if labels:
        axis = graph.constant("axis", np.int32([3]), "INT32")
        options = schema.ArgMaxOptionsT()
        options.outputType = schema.TensorType.INT64
        current = graph.add("ARG_MAX", [current, axis], graph.tensor("labels", (1, *half), "INT64"), options)
    graph.outputs = [current]
    model.subgraphs, model.buffers, model.operatorCodes = [graph.finish()], graph.buffers, graph.codes
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


class _Graph:
    """A TFLite graph under construction."""

    def __init__(self, schema: Any) -> None:
        self.schema, self.graph = schema, schema.SubGraphT()
        self.buffers, self.codes = [schema.BufferT()], []
        self.tensors: list[Any] = []
        self.operators: list[Any] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str, buffer: int = 0) -> int:
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
        tensor.type = getattr(self.schema.TensorType, dtype)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def constant(self, name: str, values: NDArray[Any], dtype: str) -> int:
        buffer = self.schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        self.buffers.append(buffer)
        return self.tensor(name, values.shape, dtype, len(self.buffers) - 1)

    def add(self, kind: str, inputs: list[int], output: int, options: Any) -> int:
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        self.codes.append(code)
        operator = self.schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = len(self.codes) - 1, inputs, [output]
        if options is not None:
            name = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType, operator.builtinOptions = getattr(self.schema.BuiltinOptions, name), options
        self.operators.append(operator)
        return output

    def convolution(self, source: int, layer: nn.Conv2d, shape: tuple[int, ...], *, relu: bool) -> int:
        assert layer.bias is not None
        weight = self.constant("weight", layer.weight.detach().permute(0, 2, 3, 1).numpy(), "FLOAT32")
        bias = self.constant("bias", layer.bias.detach().numpy(), "FLOAT32")
        options = self.schema.Conv2DOptionsT()
        options.padding = self.schema.Padding.VALID
        options.strideH, options.strideW = layer.stride
        options.dilationHFactor = options.dilationWFactor = 1
        activation = self.schema.ActivationFunctionType
        options.fusedActivationFunction = activation.RELU if relu else activation.NONE
        return self.add("CONV_2D", [source, weight, bias], self.tensor("scores", shape, "FLOAT32"), options)

    def finish(self) -> Any:
        self.graph.name, self.graph.tensors, self.graph.operators = "main", self.tensors, self.operators
        self.graph.inputs, self.graph.outputs = self.inputs, self.outputs
        return self.graph
