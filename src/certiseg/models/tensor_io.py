"""Ports of model files: how a file of some runtime takes images, and where its scores come out.

ONNX, OpenVINO and TFLite describe their tensors alike - a name, a shape with gaps, a type - so what that means for
images is read here once, and refused here once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.images.values import MAX_CHANNELS
from certiseg.models.outputs import tensor_of_array

if TYPE_CHECKING:
    from torch import Tensor

    from certiseg.models.settings import ScoreKind

MAX_BATCH = 1024
"""Images per call that a model file may insist on: each of its calls is filled up to that many."""
_FLOATS, _BYTES = ("float32", "float16", "float64"), ("uint8", "int8")
_LIKELY_OUTPUTS = ("out", "logits", "scores", "output")


@dataclass(frozen=True)
class TensorSpec:
    """A tensor as a runtime describes it; None stands for a side that is left open, or an unknown shape."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str
    scale: float | None = None
    """Of quantised values q: they stand for scale * (q - zero)."""
    zero: int = 0

    def __str__(self) -> str:
        sides = "?" if self.shape is None else ", ".join("?" if side is None else str(side) for side in self.shape)
        return f"{self.name} ({sides}) {self.dtype}"


@dataclass(frozen=True)
class ImageInput:
    """Where images go in."""

    layout: Literal["NCHW", "NHWC"]
    dtype: str
    batch: int | None
    size: tuple[int, int] | None
    channels: int | None = 3

    @property
    def integer(self) -> bool:
        return self.dtype in _BYTES

    def feed(self, images: Tensor) -> NDArray[Any]:
        """(B, channels, H, W) as the array that the runtime wants; bytes below zero are bytes minus 128."""
        array = images.cpu().numpy()
        if self.layout == "NHWC":
            array = array.transpose(0, 2, 3, 1)
        if self.dtype == "int8":
            array = array.astype(np.int16) - 128
        return np.ascontiguousarray(array, self.dtype)


@dataclass(frozen=True)
class ScoreOutput:
    """Where scores or labels come out."""

    spec: TensorSpec
    index: int
    labels: bool
    channels_last: bool
    num_classes: int | None

    def read(self, array: NDArray[Any]) -> Tensor:
        """What the runtime gave, as (B, C, h, w) scores or (B, h, w) labels."""
        values = tensor_of_array(array)
        if self.labels:
            sides = values.squeeze(-1 if self.channels_last else 1) if values.ndim == 4 else values
            return sides
        if self.spec.scale is not None and not values.is_floating_point():
            values = (values.float() - self.spec.zero) * self.spec.scale
        return values.movedim(-1, 1) if self.channels_last and values.ndim == 4 else values


def find_tensors(
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    settings: Mapping[str, Any],
    source: str,
    output: str | None = None,
) -> tuple[ImageInput, ScoreOutput]:
    """Where images go in and scores come out; `output` names the scores where several tensors could hold them."""
    port = image_input(inputs, source, settings.get("channels"))
    kind, count = settings.get("scores"), settings.get("num_classes")
    return port, score_output(outputs, port, source, kind=kind, num_classes=count, output=output)


def image_input(inputs: Sequence[TensorSpec], source: str, channels: int | None = None) -> ImageInput:
    """The one image input of a model file, or one sentence on why there is none."""
    if len(inputs) != 1:
        names = ", ".join(str(spec) for spec in inputs) or "none"
        raise InputError(f"{source}: must have one input, the image, got {names}")
    spec = inputs[0]
    if spec.dtype not in (*_FLOATS, *_BYTES):
        raise InputError(f"{source}: input must take floats or bytes (uint8, int8), got {spec}")
    shape = spec.shape if spec.shape is not None else (None,) * 4
    if len(shape) != 4:
        raise InputError(f"{source}: input must have the shape (B, channels, H, W) or (B, H, W, channels), got {spec}")
    batch, *sides = shape
    layout = _layout(sides, channels)
    found, (height, width) = (sides[2], sides[:2]) if layout == "NHWC" else (sides[0], sides[1:])
    if found not in (channels, None) and (channels is not None or not 1 <= found <= MAX_CHANNELS):
        wanted = f"1 to {MAX_CHANNELS}" if channels is None else str(channels)
        raise InputError(f"{source}: input must have {wanted} channels, (B, C, H, W) or (B, H, W, C), got {spec}")
    if (height is None) != (width is None):
        raise InputError(f"{source}: input must leave both height and width open, or neither, got {spec}")
    size = None if height is None or width is None else (height, width)
    if batch is not None and batch > MAX_BATCH:
        raise InputError(f"{source}: input must take at most {MAX_BATCH:,} images per call, got {spec}")
    return ImageInput(layout, spec.dtype, batch, size, found)


def _layout(sides: Sequence[int | None], channels: int | None) -> Literal["NCHW", "NHWC"]:
    """Channels last where only the last side can be them: as stated, three, or the only small one."""
    first, _, last = sides
    if channels is not None:
        return "NHWC" if last == channels and first != channels else "NCHW"
    if 3 in (first, last):
        return "NHWC" if first != 3 else "NCHW"
    small = [side is not None and side <= MAX_CHANNELS for side in (first, last)]
    return "NHWC" if small == [False, True] and first is not None else "NCHW"


def score_output(
    outputs: Sequence[TensorSpec],
    port: ImageInput,
    source: str,
    *,
    kind: ScoreKind | None,
    num_classes: int | None,
    output: str | None = None,
) -> ScoreOutput:
    """The output that holds the scores (`output` names it where several could), and what its shape says."""
    spec = _chosen(outputs, output, source)
    labels = kind == "labels" if kind is not None else _holds_labels(spec, port)
    if spec.shape is not None and len(spec.shape) not in ((3, 4) if labels else (4,)):
        wanted = "(B, h, w)" if labels else "(B, C, h, w) or (B, h, w, C)"
        raise InputError(f"{source}: output must have the shape {wanted}, got {spec}; scores= says what it is")
    last, found = port.layout == "NHWC", None
    if spec.shape is not None and len(spec.shape) == 4:
        first, final = spec.shape[1], spec.shape[3]
        if num_classes is not None and num_classes in (first, final):
            last = final == num_classes if first != final else last
        found = final if last else first
    if labels:
        return ScoreOutput(spec, outputs.index(spec), True, last, None)
    if spec.dtype not in _FLOATS and spec.scale is None:
        raise InputError(f"{source}: output must hold floats, or labels of shape (B, h, w), got {spec}")
    if num_classes is not None and found not in (None, num_classes, 1 if num_classes == 2 else None):
        raise InputError(f"{source}: output must have the scores of {num_classes} classes, got {spec}")
    return ScoreOutput(spec, outputs.index(spec), False, last, found)


def _chosen(outputs: Sequence[TensorSpec], wanted: str | None, source: str) -> TensorSpec:
    """The only output, the one of the wanted name, or the one of a name that says so."""
    names = [spec.name for spec in outputs]
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{source}: output must be one of {', '.join(names)}, got {wanted!r}")
        return outputs[names.index(wanted)]
    likely = [name for name in _LIKELY_OUTPUTS if name in names]
    if len(outputs) > 1 and not likely:
        raise InputError(f"{source}: must have one output, got {', '.join(names)}; choose one with output=NAME")
    if not outputs:
        raise InputError(f"{source}: must have an output, got none")
    return outputs[names.index(likely[0])] if len(outputs) > 1 else outputs[0]


def _holds_labels(spec: TensorSpec, port: ImageInput) -> bool:
    """Whole numbers without a class axis are labels."""
    if spec.dtype in _FLOATS:
        return False
    if spec.shape is None or len(spec.shape) != 4:
        return True
    return 1 in (spec.shape[3 if port.layout == "NHWC" else 1], spec.shape[1])
