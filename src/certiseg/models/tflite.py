"""TFLite files, run by LiteRT (`ai-edge-litert`) on the CPU: the format of phones and small devices."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.models.runtime import Run, RuntimeModel, reason, require_file, runtime_segmenter
from certiseg.models.settings import parse_names, require_library
from certiseg.models.tensor_io import TensorSpec, find_tensors

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

_MAX_NAMES_BYTES = 1 << 20


class TfliteModel(RuntimeModel):
    """A TFLite graph in LiteRT's interpreter."""

    def connect(self, threads: int) -> Run:
        interpreter = _interpreter(self.content, self.source, threads)
        index = interpreter.get_input_details()[0]["index"]
        output = interpreter.get_output_details()[self.output.index]["index"]

        def run(array: NDArray[Any]) -> NDArray[Any]:
            if tuple(interpreter.get_input_details()[0]["shape"]) != array.shape:
                interpreter.resize_tensor_input(index, array.shape)
                interpreter.allocate_tensors()
            interpreter.set_tensor(index, array)
            interpreter.invoke()
            return np.asarray(interpreter.get_tensor(output))

        return run


def load_tflite(path: str | Path, settings: Mapping[str, Any], *, output: str | None = None) -> Segmenter:
    """The model of a TFLite file. Class names are read from a list of labels packed into it, where there is one."""
    path = require_file(path, "model")
    source, content = str(path), path.read_bytes()
    interpreter = _interpreter(content, source, 1)
    try:
        inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    except UnicodeDecodeError:
        raise InputError(f"{path}: must be an intact TFLite model, got names that are no text") from None
    ports = find_tensors([_spec(t) for t in inputs], [_spec(t) for t in outputs], settings, source, output)
    model = TfliteModel(content, source, ports, hashlib.sha256(content).hexdigest())
    names = _packed_names(path)
    return runtime_segmenter(model, {} if names is None else {"class_names": names}, settings, backend="litert")


def _interpreter(content: bytes, source: str, threads: int) -> Any:
    library = require_library("ai_edge_litert.interpreter", "tflite", "a TFLite model")
    if content[4:8] != b"TFL3":
        raise InputError(f"{source}: must be a TFLite model, got a file of another kind")
    try:
        interpreter = library.Interpreter(model_content=content, num_threads=threads)
        interpreter.allocate_tensors()
    except Exception as error:
        raise InputError(f"{source}: must be a TFLite model that LiteRT can load, got: {reason(error)}") from None
    return interpreter


def _spec(tensor: Mapping[str, Any]) -> TensorSpec:
    """How LiteRT describes a tensor; a scale of 0 says that it is not quantised."""
    signature = tensor["shape_signature"] if len(tensor["shape_signature"]) else tensor["shape"]
    shape = tuple(int(side) if side > 0 else None for side in signature)
    scale, zero = tensor["quantization"]
    return TensorSpec(tensor["name"], shape, np.dtype(tensor["dtype"]).name, float(scale) or None, int(zero))


def _packed_names(path: Path) -> tuple[str, ...] | None:
    """Names from the first text file with labels in its name; TFLite files with metadata are zip archives, too."""
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            found = [m for m in archive.infolist() if "label" in m.filename and m.filename.endswith(".txt")]
            if not found or found[0].file_size > _MAX_NAMES_BYTES:
                return None
            text = archive.read(found[0]).decode("utf-8", "replace")
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path}: the metadata packed into it must be readable, got: {reason(error)}") from None
    return parse_names(text, f"{path}: {found[0].filename}")
