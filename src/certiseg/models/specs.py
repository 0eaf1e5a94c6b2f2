"""What a user types for a model: SPEC, or SPEC?name=value&... with settings of the model or `weights=FILE`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from certiseg.errors import InputError
from certiseg.models.settings import NAMES, ModelSettings
from certiseg.settings import typed_field

SPECS = {
    "compact": "the network that ships with the package (CamVid classes)",
    "compact:WEIGHTS.safetensors": "the same network with weights of `certiseg train`",
    "hrnet-w48:WEIGHTS.pth": "HRNetV2-W48 with published weights",
    "hrnet-w48-ocr:WEIGHTS.pth": "HRNetV2-W48-OCR with published weights",
    "MODEL.onnx": "an ONNX file",
    "MODEL.xml": "an OpenVINO file, with MODEL.bin beside it",
    "MODEL.tflite": "a TFLite file",
    "hf:FOLDER": "a Hugging Face folder",
    "hf:ORG/NAME[@REVISION]": "a model of the Hugging Face Hub, which is fetched once",
    "torch:package.module:factory": "a torch module, callable or cs.Segmenter that the factory returns",
    "MODEL.pt, MODEL.ts or MODEL.pt2": "a TorchScript or torch.export file, only if trusted",
    "synthetic": "a scene whose class shares under noise are known in advance",
}
OTHERS = ("weights", "output")
"""What a spec may say beside settings: weights to load into the network, and the output of a file with several."""


def split_spec(text: str) -> tuple[str, dict[str, Any]]:
    """The model that a spec names, and what it says about it; an existing file may have any name."""
    name, mark, query = text.rpartition("?")
    if not mark or Path(text).exists() or not re.fullmatch(r"\w+=[^&=]+(&\w+=[^&=]+)*", query):
        return text, {}
    said: dict[str, Any] = {}
    for entry in query.split("&"):
        key, _, value = entry.partition("=")
        if key not in (*NAMES, *OTHERS):
            raise InputError(f"{text}: must say {', '.join(sorted((*NAMES, *OTHERS)))} behind the ?, got {key!r}")
        said[key] = value if key in OTHERS else read_setting(key, value)
    return name, said


def read_setting(name: str, text: str) -> Any:
    """The value of a setting, written as on a command line."""
    kind = get_type_hints(ModelSettings)[name]
    parts = get_args(kind) or (kind,)
    metavar = next(each.metadata["metavar"] for each in fields(ModelSettings) if each.name == name)
    try:
        if bool in parts:
            return {"true": True, "false": False}[text.lower()]
        if metavar == "HxW":
            sides = tuple(int(side) for side in text.split("x"))
            return sides[0] if len(sides) == 1 and int in parts else sides
        if tuple[float, ...] in parts:
            return tuple(float(part) for part in text.split(","))
        if tuple[str, ...] in parts:
            return tuple(text.split(","))
        return int(text) if int in parts else text
    except (KeyError, ValueError):
        shown = "true or false" if bool in parts else metavar or "a number"
        raise InputError(f"{name} behind the ? of a model must be {shown}, got {text!r}") from None


def respecified(spec: str, weights: str, said: Mapping[str, Any]) -> str:
    """The spec of the same network with the weights of a file, and all that is said about it; `said` goes first."""
    name, in_spec = split_spec(spec)
    settings = {**in_spec, **{key: value for key, value in said.items() if value is not None}}
    settings.pop("weights", None)
    kind, _, _ = name.partition(":")
    if kind in ("torch", "hf"):
        settings["weights"] = weights
    else:
        name = f"{kind}:{weights}"
    query = "&".join(f"{key}={_written(key, value)}" for key, value in settings.items())
    found = f"{name}?{query}" if query else name
    if split_spec(found) != (name, settings):
        raise InputError(f"weights must be a file whose name has no ?, & or = in it, got {weights!r}; rename it")
    return found


def _written(name: str, value: Any) -> str:
    """A setting as `read_setting` reads it."""
    if name in OTHERS or isinstance(value, bool):
        return str(value) if name in OTHERS else str(value).lower()
    each = next(each for each in fields(ModelSettings) if each.name == name)
    return typed_field(each, value)[-1]
