"""Torch modules as ONNX: for a backend at one size, or as a file of its own."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.models.outputs import tensor_of
from certiseg.models.preparation import prepare
from certiseg.models.runtime import reason
from certiseg.models.settings import NAMES, require_library

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

SETTINGS_KEY = "certiseg"
"""Where an ONNX file of ours keeps what happens around the graph, as JSON."""
NOTED = NAMES - {"num_classes", "class_names"}
_OPSET = 17


class _ScoresOnly(nn.Module):
    """A module whose only output is its scores."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> Tensor:
        return tensor_of(self.module(images))


def onnx_of(module: nn.Module, image: Tensor, name: str, *, any_size: bool = False) -> bytes:
    """A module as ONNX for inputs of the size of `image` (1, 3, H, W), or of any size.

    The tracing exporter takes a tenth of the time of the newer one, which is asked where tracing fails.
    """
    require_library("onnx", "onnx", "exporting a model")
    with torch.inference_mode(False):
        example = torch.empty(image.shape, dtype=image.dtype).copy_(image).contiguous()
    wrapped = _ScoresOnly(module).eval()
    try:
        return _traced(wrapped, example, any_size)
    except Exception:
        try:
            return _captured(wrapped, example, any_size)
        except Exception as error:  # the exporters raise whatever they like
            raise InputError(f"{name} must be exportable to ONNX, got: {reason(error)}; use --backend torch") from error


def export_onnx(segmenter: Segmenter, path: str | Path, *, size: tuple[int, int] = (256, 320)) -> None:
    """Write a segmenter's torch module to an ONNX file for images of any size.

    Normalisation, class names and the rest of the preparation go into the file's metadata, from where
    `load_model(path)` takes them again. size: that of the example the graph is traced with.
    """
    onnx = require_library("onnx", "onnx", "exporting a model")
    if not isinstance(segmenter.model, nn.Module):
        raise InputError(f"model must be a torch module to be exported, got {segmenter.name}")
    with torch.inference_mode():
        example, _ = prepare(torch.full((1, segmenter.settings.channels or 3, *size), 0.5), segmenter.settings)
    fixed = isinstance(segmenter.settings.input_size, tuple)
    graph = onnx.load_from_string(onnx_of(segmenter.model, example, segmenter.name, any_size=not fixed))
    notes = {name: value for name, value in asdict(segmenter.settings).items() if name in NOTED}
    stored = {SETTINGS_KEY: json.dumps(notes)}
    if segmenter.class_names is not None:
        stored["classes"] = json.dumps(segmenter.class_names)
    onnx.helper.set_model_props(graph, stored)
    with write_atomically(path) as file:
        file.write(graph.SerializeToString())


def _traced(module: nn.Module, example: Tensor, any_size: bool) -> bytes:
    content = io.BytesIO()
    open_sides = {0: "batch", 2: "height", 3: "width"}
    output_sides = {0: "batch", 2: "score_height", 3: "score_width"}
    with _quiet(), torch.inference_mode(False), torch.no_grad():
        torch.onnx.export(
            module,
            (example,),
            content,  # type: ignore[arg-type]
            dynamo=False,
            opset_version=_OPSET,
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": open_sides, "scores": output_sides} if any_size else None,
        )
    return content.getvalue()


def _captured(module: nn.Module, example: Tensor, any_size: bool) -> bytes:
    open_sides = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    if any_size:  # a batch of one would be taken for fixed
        example = example.repeat(2, 1, 1, 1)
    with _quiet(), torch.inference_mode(False), torch.no_grad():
        program = torch.onnx.export(
            module,
            (example,),
            dynamo=True,
            verbose=False,
            input_names=["image"],
            output_names=["scores"],
            dynamic_shapes=(open_sides,) if any_size else None,
        )
    assert program is not None
    content: bytes = program.model_proto.SerializeToString()
    return content


@contextmanager
def _quiet() -> Iterator[None]:
    """No word from the exporters about their own age or about libraries that are not there."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
