"""Backends: a torch model exported to another runtime. What is certified is the exported function.

The choice is made once, before the first draw; its name stands in the votes and in the certificate, and `verify`
exports again with the same one. The fingerprint is that of the original weights together with the backend's name.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor, nn

from certiseg.errors import InputError
from certiseg.models.export import export_onnx, onnx_of
from certiseg.models.onnx import OnnxModel, onnx_tensors, open_session
from certiseg.models.openvino import OpenVinoModel, load_openvino, openvino_tensors, read_graph
from certiseg.models.outputs import tensor_of
from certiseg.models.segmenter import Segmenter, fingerprint_of
from certiseg.models.settings import Backend, BackendChoice, require_library
from certiseg.settings import require_one_of

if TYPE_CHECKING:
    from certiseg.models.runtime import RuntimeModel

BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""torch-bfloat16 is torch's autocast: another function, so it is never chosen by `auto`."""
_KEPT_SIZES = 4
_ENOUGH_SECONDS = 2.0
_TOLERANCE = 1e-3
"""How far an export may be from the original, relative to its largest score, before it counts as another function."""


def with_backend(segmenter: Segmenter, backend: str, size: tuple[int, int] | None = None) -> Segmenter:
    """The same model in another runtime: one of BACKENDS, or the fastest that keeps 32 bits (auto).

    size: height and width of the images to come; a model that cannot be exported is then refused here instead of at
        the first draw, and `auto` measures at this size.
    """
    require_one_of("backend", backend, get_args(BackendChoice))
    if backend == segmenter.backend:
        return segmenter
    if backend == "auto":
        return fastest(segmenter, size or (360, 480))
    moved = _moved(segmenter, backend)
    if size is not None:
        moved(example_image(size, segmenter.settings.channels or 3))
    return moved


def available_backends(segmenter: Segmenter) -> list[str]:
    """The backends that can run this model with the libraries that are installed; its present one first."""
    if isinstance(segmenter.model, nn.Module) and segmenter.device.type == "cpu":
        others = ["onnxruntime", "openvino"]
    else:
        others = ["openvino"] if isinstance(segmenter.model, OnnxModel) else []
    needs = {"onnxruntime": ("onnxruntime", "onnx"), "openvino": ("openvino", "onnx")}
    found = [name for name in others if all(find_spec(library) for library in needs[name])]
    return [segmenter.backend, *(name for name in found if name != segmenter.backend)]


def fastest(segmenter: Segmenter, size: tuple[int, int], *, passes: int = 3) -> Segmenter:
    """The segmenter on whichever available backend takes the least time for an image of this size."""
    images = example_image(size, segmenter.settings.channels or 3)
    best, least = segmenter, least_seconds(segmenter, images, passes=passes)
    for backend in available_backends(segmenter)[1:]:
        try:
            moved = with_backend(segmenter, backend, size)
            taken = least_seconds(moved, images, passes=passes)
        except InputError:  # what cannot be exported is not the fastest
            continue
        if taken < least:
            best, least = moved, taken
    return best


def example_image(size: tuple[int, int], channels: int) -> Tensor:
    """An image of noise: whatever an export got wrong shows on it."""
    return torch.rand(1, channels, *size, generator=torch.Generator().manual_seed(0))


def least_seconds(segmenter: Segmenter, images: Tensor, *, passes: int = 3) -> float:
    """The least time of a few passes after one that warms up; of one pass where a pass takes seconds."""
    segmenter(images)
    times: list[float] = []
    while len(times) < passes and sum(times) < _ENOUGH_SECONDS:
        started = time.perf_counter()
        segmenter(images)
        times.append(time.perf_counter() - started)
    return min(times)


def _moved(segmenter: Segmenter, backend: str) -> Segmenter:
    model: Any = segmenter.model
    if isinstance(model, OnnxModel) and backend == "openvino" and not isinstance(model.content, bytes):
        found = load_openvino(model.content, {"scores": segmenter.kind, "num_classes": segmenter.num_classes})
        return segmenter.adjusted(model=found.model, backend=backend)
    if isinstance(model, ExportedModel | Autocast):
        model = model.module
        if backend == "torch":
            return segmenter.adjusted(model=model, backend=backend)
    if not isinstance(model, nn.Module):
        raise InputError(
            f"backend must be {segmenter.backend} for {segmenter.name}, got {backend!r}: "
            "only torch modules can be exported"
        )
    if segmenter.arrays == "numpy":
        raise InputError(f"backend must be torch for a model that takes numpy arrays, got {backend!r}")
    if backend == "torch-bfloat16":
        return segmenter.adjusted(model=Autocast(model), backend=backend)
    purpose = f"the backend {backend}"
    for library, extra in (("onnx", "onnx"), ("onnxruntime", "onnx") if backend == "onnxruntime" else (backend,) * 2):
        require_library(library, extra, purpose)
    return segmenter.adjusted(model=ExportedModel(model, backend, segmenter.name), backend=backend)


class Autocast(nn.Module):
    """A torch module that computes in bfloat16 where torch's autocast finds that safe; scores are 32 bits again."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> Any:
        with torch.autocast(images.device.type, torch.bfloat16):
            return self.module(images)


class ExportedModel:
    """A torch module that runs elsewhere: exported once per input size, one image per call of the runtime."""

    reentrant = True

    def __init__(self, module: nn.Module, backend: str, name: str) -> None:
        self.module, self.backend, self.name = module, backend, name
        self._by_size: OrderedDict[tuple[Any, ...], RuntimeModel] = OrderedDict()
        self._lock = threading.Lock()

    def fingerprint(self) -> str:
        """That of the original weights; the backend's name is part of the preparation."""
        return fingerprint_of("", self.module.state_dict(), {})

    def __call__(self, images: Tensor) -> Tensor:
        key = (*images.shape[1:], images.dtype)
        with self._lock:
            if key not in self._by_size:
                self._by_size[key] = self._export(images[:1])
            exported = self._by_size[key]
            if len(self._by_size) > _KEPT_SIZES:
                self._by_size.popitem(last=False)
        return exported(images)

    def __getstate__(self) -> dict[str, Any]:
        return {"module": self.module, "backend": self.backend, "name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _export(self, image: Tensor) -> RuntimeModel:
        source = f"{self.name} exported to {self.backend}"
        content = onnx_of(self.module, image, self.name)
        settings = {"scores": "labels" if _gives_labels(self.module, image) else "logits"}
        model: RuntimeModel
        if self.backend == "openvino":
            model = OpenVinoModel(content, source, openvino_tensors(read_graph(content, source), settings, source), "")
        else:
            model = OnnxModel(content, source, onnx_tensors(open_session(content, source, 1), settings, source), "")
        # Another image than the traced one: a trace can hold its own input's results as constants.
        _compare(self.module, model, image.flip(2, 3), source)
        return model


def _gives_labels(module: nn.Module, image: Tensor) -> bool:
    return tensor_of(module(image)).ndim == 3


def _compare(module: nn.Module, model: RuntimeModel, image: Tensor, source: str) -> None:
    """Refuse an export that computes something else."""
    wanted, got = tensor_of(module(image)), model(image)
    if wanted.shape != got.shape:
        raise InputError(f"{source}: must return scores of shape {tuple(wanted.shape)}, got {tuple(got.shape)}")
    if not wanted.is_floating_point():
        wrong = float((wanted != got).float().mean())
        if wrong > _TOLERANCE:
            raise InputError(
                f"{source}: must return the module's own labels, but {wrong:.1%} differ; use --backend torch"
            )
        return
    largest = max(float(wanted.abs().max()), 1.0)
    difference = float((wanted - got).abs().max())
    if not difference <= _TOLERANCE * largest:
        raise InputError(
            f"{source}: must compute the module's scores, but they differ by {difference:.2g}; use --backend torch"
        )


__all__ = [
    "BACKENDS",
    "Autocast",
    "ExportedModel",
    "available_backends",
    "export_onnx",
    "fastest",
    "least_seconds",
    "with_backend",
]
