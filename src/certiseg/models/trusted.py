"""TorchScript and torch.export files. Both can run code of whoever wrote them, so they need the user's word."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from certiseg.errors import InputError
from certiseg.models.outputs import tensor_of
from certiseg.models.runtime import reason, require_file
from certiseg.models.segmenter import Segmenter
from certiseg.models.settings import merge_settings
from certiseg.models.tensor_io import ImageInput, TensorSpec, image_input

SUFFIXES = (".pt", ".ts", ".torchscript", ".pt2")


class TrustedModel:
    """A loaded program as a callable; fixed batches are fed one after the other."""

    def __init__(self, program: Any, port: ImageInput | None, sha256: str) -> None:
        self.program, self.port, self.sha256 = program, port, sha256

    def fingerprint(self) -> str:
        """The hash of the file's bytes."""
        return self.sha256

    def __call__(self, images: Tensor) -> Tensor:
        if self.port is None or self.port.batch is None:
            return tensor_of(self.program(images))
        if self.port.batch != 1:
            raise InputError(f"program must take one image, or any number, per call, got {self.port.batch}")
        return torch.cat([tensor_of(self.program(image[None].contiguous())) for image in images])


def load_trusted(path: str | Path, settings: Mapping[str, Any], *, trust: bool) -> Segmenter:
    """The model of a TorchScript (.pt, .ts) or torch.export (.pt2) file, only where the user trusts it."""
    path = require_file(path, "model")
    if not trust:
        raise InputError(
            f"{path}: must come from somebody you trust, because TorchScript and torch.export files can run code when "
            "they are loaded; if you do, say so with --trust-model or load_model(..., trust=True)"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program, port = _exported(path) if path.suffix == ".pt2" else (_script(path), None)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path}: must be a TorchScript or torch.export program (weights alone are no model), got: {reason(error)}"
        ) from None
    model = TrustedModel(program, port, hashlib.sha256(path.read_bytes()).hexdigest())
    facts: dict[str, Any] = {"input_size": None if port is None else port.size}
    return Segmenter(model, **merge_settings(facts, settings), name=path.name)


def _script(path: Path) -> Any:
    return torch.jit.load(path, "cpu").eval()  # type: ignore[no-untyped-call]


def _exported(path: Path) -> tuple[Any, ImageInput]:
    """The program of a torch.export file and what it takes."""
    exported = torch.export.load(path)
    names = set(exported.graph_signature.user_inputs)
    inputs = [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in names]
    specs = []
    for node in inputs:
        value = node.meta["val"]
        sides = tuple(side if isinstance(side, int) else None for side in value.shape)
        specs.append(TensorSpec(node.name, sides, str(value.dtype).removeprefix("torch.")))
    return exported.module(), image_input(specs, str(path))
