"""OpenVINO models (MODEL.xml with MODEL.bin beside it, or an ONNX file), run on the CPU in 32-bit floats."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.models.runtime import Content, Run, RuntimeModel, reason, require_file, runtime_segmenter
from certiseg.models.settings import require_library
from certiseg.models.tensor_io import ImageInput, ScoreOutput, TensorSpec, find_tensors

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

_TYPES = {"f32": "float32", "f16": "float16", "f64": "float64", "u8": "uint8", "i8": "int8"}


class OpenVinoModel(RuntimeModel):
    """A graph from a file, or from the bytes of an ONNX file, in OpenVINO."""

    def connect(self, threads: int) -> Run:
        core = _core()
        # Without the hint some processors would quietly compute in 16 bits.
        exact = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
        exact["ENABLE_CPU_PINNING"] = False  # connections side by side would share one core
        compiled = core.compile_model(read_graph(self.content, self.source), "CPU", exact)
        request, output = compiled.create_infer_request(), compiled.output(self.output.index)

        def run(array: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(request.infer([array])[output])

        return run


def load_openvino(path: str | Path, settings: Mapping[str, Any], *, output: str | None = None) -> Segmenter:
    """The model of an OpenVINO file. Class names are read from `model_info/labels`, where it has them."""
    path = require_file(path, "model")
    weights = path.with_suffix(".bin")
    if path.suffix == ".xml" and not weights.is_file():
        raise InputError(f"{path}: must have its weights beside it, got no {weights.name}")
    graph = read_graph(path, str(path))
    hashed = hashlib.sha256(path.read_bytes())
    if path.suffix == ".xml":
        hashed.update(weights.read_bytes())
    of_file: dict[str, Any] = {}
    if graph.has_rt_info(["model_info", "labels"]):
        of_file["class_names"] = str(graph.get_rt_info(["model_info", "labels"]).astype(str)).split()
    ports = openvino_tensors(graph, settings, str(path), output)
    quantised = any(step.get_type_name() == "FakeQuantize" for step in graph.get_ops())
    model = OpenVinoModel(path, str(path), ports, hashed.hexdigest(), quantised=quantised)
    return runtime_segmenter(model, of_file, settings, backend="openvino")


def openvino_tensors(
    graph: Any, settings: Mapping[str, Any], source: str, output: str | None = None
) -> tuple[ImageInput, ScoreOutput]:
    """Input and output of a graph, understood."""
    inputs, outputs = ([_spec(v, i) for i, v in enumerate(values)] for values in (graph.inputs, graph.outputs))
    return find_tensors(inputs, outputs, settings, source, output)


def read_graph(content: Content, source: str) -> Any:
    """The graph of a file, or of the bytes of an ONNX file."""
    try:
        return _core().read_model(str(content) if isinstance(content, Path) else content)
    except InputError:
        raise
    except Exception as error:
        text = re.sub(r"^(Exception from|Check) .*?:\d+:?$|^Check '.*", "", str(error), flags=re.MULTILINE)
        raise InputError(f"{source}: must be a model that OpenVINO can read, got: {reason(Exception(text))}") from None


def _core() -> Any:
    return require_library("openvino", "openvino", "an OpenVINO model").Core()


def _spec(value: Any, index: int) -> TensorSpec:
    shape = value.get_partial_shape()
    sides = None if shape.rank.is_dynamic else tuple(int(s.get_length()) if s.is_static else None for s in shape)
    dtype = value.get_element_type().get_type_name()
    name = value.get_any_name() if value.get_names() else str(index)
    return TensorSpec(name, sides, _TYPES.get(dtype, dtype))
