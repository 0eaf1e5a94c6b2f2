"""ONNX files, run by onnxruntime on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import parse_json
from certiseg.errors import InputError
from certiseg.models.runtime import Content, Run, RuntimeModel, reason, require_file, runtime_segmenter
from certiseg.models.settings import parse_names, require_library, split_settings
from certiseg.models.tensor_io import ImageInput, ScoreOutput, TensorSpec, find_tensors

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

_EIGHT_BITS = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "ConvInteger", "MatMulInteger"}
_TYPES = {"float": "float32", "float16": "float16", "double": "float64"}


class OnnxModel(RuntimeModel):
    """A graph from a file, or from bytes, in onnxruntime."""

    def connect(self, threads: int) -> Run:
        session = open_session(self.content, self.source, threads)
        name, index = session.get_inputs()[0].name, self.output.index

        def run(array: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(session.run(None, {name: array})[index])

        return run


def load_onnx(path: str | Path, settings: Mapping[str, Any], *, output: str | None = None) -> Segmenter:
    """The model of an ONNX file. Class names are read from its metadata `classes` or `names`, where it has them."""
    path = require_file(path, "model")
    session = open_session(path, str(path), 1)
    try:
        notes = session.get_modelmeta().custom_metadata_map
        ports = onnx_tensors(session, settings, str(path), output)
    except UnicodeDecodeError:
        raise InputError(f"{path}: must be an intact ONNX model, got names that are no text") from None
    of_file = _own_settings(notes, path)
    for key in ("classes", "names"):
        if notes.get(key):
            of_file["class_names"] = parse_names(notes[key], f"{path}: metadata `{key}`")
            break
    model = OnnxModel(path, str(path), ports, _digest_of_files(path), quantised=_is_quantised(path))
    return runtime_segmenter(model, of_file, settings, backend="onnxruntime")


def _own_settings(notes: Mapping[str, str], path: Path) -> dict[str, Any]:
    """What `export_onnx` noted about the preparation."""
    try:
        stored = parse_json(notes.get("certiseg", "{}"))
        return split_settings(stored)[0]
    except (ValueError, AttributeError):
        raise InputError(f"{path}: metadata `certiseg` must be a JSON object, got {notes['certiseg'][:80]!r}") from None


def onnx_tensors(
    session: Any, settings: Mapping[str, Any], source: str, output: str | None = None
) -> tuple[ImageInput, ScoreOutput]:
    """Input and output of a graph, understood."""
    inputs, outputs = ([_spec(value) for value in values] for values in (session.get_inputs(), session.get_outputs()))
    return find_tensors(inputs, outputs, settings, source, output)


def open_session(content: Content, source: str, threads: int) -> Any:
    """An onnxruntime session with settled threads and no optimisation that depends on chance."""
    runtime = require_library("onnxruntime", "onnx", "an ONNX model")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = 4
    try:
        model = str(content) if isinstance(content, Path) else content
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a type per kind of damage
        raise InputError(f"{source}: must be an ONNX model that onnxruntime can load, got: {reason(error)}") from None


def _spec(value: Any) -> TensorSpec:
    """How onnxruntime describes a tensor; open sides are texts, and an unknown shape is empty."""
    shape = tuple(side if isinstance(side, int) and side > 0 else None for side in value.shape or ())
    dtype = value.type.removeprefix("tensor(").removesuffix(")")
    return TensorSpec(value.name, shape or None, _TYPES.get(dtype, dtype))


def _digest_of_files(path: Path) -> str:
    """SHA-256 of the file and of the files beside it that hold its weights."""
    hashed = hashlib.sha256(path.read_bytes())
    for name in sorted(set(_external_files(path))):
        hashed.update(name.encode())
        hashed.update((path.parent / name).read_bytes())
    return hashed.hexdigest()


def _is_quantised(path: Path) -> bool:
    onnx = require_library("onnx", "onnx", "an ONNX model")
    nodes = onnx.load(str(path), load_external_data=False).graph.node
    return any(node.op_type in _EIGHT_BITS for node in nodes)


def _external_files(path: Path) -> Iterator[str]:
    onnx = require_library("onnx", "onnx", "an ONNX model")
    graph = onnx.load(str(path), load_external_data=False).graph
    tensors = [*graph.initializer, *(a.t for node in graph.node for a in node.attribute if a.HasField("t"))]
    for tensor in tensors:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield from (entry.value for entry in tensor.external_data if entry.key == "location")
