"""`load_model(spec)`: from what a user types to a Segmenter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certiseg.errors import InputError
from certiseg.models.runtime import reason, require_file
from certiseg.models.segmenter import IMAGENET_MEAN, IMAGENET_STD, Segmenter
from certiseg.models.settings import merge_settings, parse_names, refuse_unknown, split_settings

SPECS = {
    "compact": "the network that ships with the package (CamVid classes)",
    "compact:WEIGHTS.safetensors": "the same network with weights of `certiseg train`",
    "hrnet-w48:WEIGHTS.pth": "HRNetV2-W48 with published weights",
    "hrnet-w48-ocr:WEIGHTS.pth": "HRNetV2-W48-OCR with published weights",
    "MODEL.onnx": "an ONNX file",
    "MODEL.xml": "an OpenVINO file, with MODEL.bin beside it",
    "MODEL.tflite": "a TFLite file",
    "hf:FOLDER": "a Hugging Face folder",
    "torch:package.module:factory": "a torch module, callable or cs.Segmenter that the factory returns",
    "MODEL.pt, MODEL.ts or MODEL.pt2": "a TorchScript or torch.export file, only if trusted",
    "synthetic": "a scene whose class shares under noise are known in advance",
}
HRNET_HIERARCHIES = {19: "cityscapes", 59: "pascal_context", 171: "coco_stuff"}
"""The published weights carry no class names; by their number they are taken to be these, in this order."""


def load_model(spec: str | Path, *, trust: bool = False, **options: Any) -> Segmenter:
    """The model that a spec names, as a Segmenter; docs/models.md lists the forms.

    trust: whether files that can run code (TorchScript, torch.export) may be loaded.
    options: arguments of Segmenter that override what the model's file says (mean, std, scores, window, class_names,
        hierarchy, ...); `output` names the output of a file with several; others go to a factory.
    """
    spec = str(spec) if isinstance(spec, Path) else spec
    if not isinstance(spec, str) or not spec:
        raise InputError(f"model must be given as text, got {spec!r}; forms: {', '.join(SPECS)}")
    settings, others = split_settings(options)
    if spec.startswith("torch:"):
        return _from_factory(spec, settings, others)
    if spec == "synthetic":
        from certiseg.models.synthetic import synthetic_scene

        scene = synthetic_scene(**others)
        return scene.adjusted(**settings) if settings else scene
    kind, _, place = spec.partition(":")
    if spec == "compact" or (kind == "compact" and place):
        refuse_unknown(spec, others)
        return _trained_compact(place, settings) if place else _compact(settings)
    if kind in ("hrnet-w48", "hrnet-w48-ocr") and place:
        refuse_unknown(spec, others)
        return _hrnet(spec, place, settings, ocr=kind.endswith("ocr"))
    if kind == "hf" and place:
        from certiseg.models.huggingface import load_huggingface

        refuse_unknown(spec, others)
        return load_huggingface(place, settings)
    return _from_file(Path(spec), settings, others, trust=trust)


def _from_file(path: Path, settings: Mapping[str, Any], others: Mapping[str, Any], *, trust: bool) -> Segmenter:
    """The model of a file, by the ending of its name."""
    from certiseg.models import trusted

    suffix = path.suffix.lower()
    if suffix in trusted.SUFFIXES:
        refuse_unknown(str(path), others)
        return trusted.load_trusted(path, settings, trust=trust)
    if suffix in (".onnx", ".xml", ".tflite"):
        refuse_unknown(str(path), others, ["output"])
    if suffix == ".onnx":
        from certiseg.models.onnx import load_onnx

        return load_onnx(path, settings, **others)
    if suffix == ".xml":
        from certiseg.models.openvino import load_openvino

        return load_openvino(path, settings, **others)
    if suffix == ".tflite":
        from certiseg.models.tflite import load_tflite

        return load_tflite(path, settings, **others)
    hint = ""
    if path.is_dir():
        hint = f"; for a Hugging Face folder write hf:{path}"
    elif suffix in (".pth", ".safetensors", ".bin", ".ckpt"):
        hint = (
            "; weights alone are no model: write hrnet-w48:FILE, or torch:package.module:factory for your own network"
        )
    raise InputError(f"model must have one of the forms {', '.join(SPECS)}, got {str(path)!r}{hint}")


def _compact(settings: Mapping[str, Any]) -> Segmenter:
    from certiseg.hierarchy import load_hierarchy
    from certiseg.models.compact import load_compact

    facts = {"class_names": load_hierarchy("camvid").classes, "hierarchy": "camvid"}
    return Segmenter(load_compact(), **merge_settings(facts, settings), name="compact")


def _trained_compact(weights: str, settings: Mapping[str, Any]) -> Segmenter:
    """Weights that `certiseg train` wrote; their notes name the classes."""
    from safetensors import safe_open

    from certiseg.models.compact import compact

    path = require_file(weights, "weights")
    try:
        with safe_open(path, "pt") as file:
            notes = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except Exception as error:
        raise InputError(f"{path}: must be weights of `certiseg train` (safetensors), got: {reason(error)}") from None
    head = state.get("head.weight")  # where it is malformed any count fails below
    count = len(head) if head is not None and head.ndim == 4 and head.numel() else 2
    network = compact(count)
    try:
        network.load_state_dict({name: v.float() if v.is_floating_point() else v for name, v in state.items()})
    except RuntimeError as error:
        raise InputError(f"{path}: must hold the weights of compact, got: {reason(error)}") from None
    facts: dict[str, Any] = {"num_classes": count}
    if "classes" in notes:
        facts["class_names"] = parse_names(notes["classes"], f"{path}: metadata `classes`")
    return Segmenter(network, **merge_settings(facts, settings), name=f"compact:{path.name}")


def _hrnet(spec: str, weights: str, settings: Mapping[str, Any], *, ocr: bool) -> Segmenter:
    from certiseg.models.hrnet import load_hrnet, num_classes_of

    network = load_hrnet(weights, ocr=ocr, num_classes=settings.get("num_classes"))
    count = num_classes_of(network.state_dict())
    facts = {
        "num_classes": count,
        "hierarchy": HRNET_HIERARCHIES.get(count or 0),
        "mean": IMAGENET_MEAN,
        "std": IMAGENET_STD,
        "align_corners": True,
    }
    return Segmenter(network, **merge_settings(facts, settings), name=spec)


def _from_factory(spec: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> Segmenter:
    module_name, _, factory_name = spec.removeprefix("torch:").partition(":")
    if not module_name or not factory_name:
        raise InputError(f"model must be torch:package.module:factory, got {spec!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except ModuleNotFoundError as error:
        raise InputError(f"{spec}: module must be importable from here or installed, got: {error}") from None
    except AttributeError:
        raise InputError(f"{spec}: {module_name} must have {factory_name!r}, but it has not") from None
    if not callable(factory):
        raise InputError(f"{spec}: factory must be a function that returns the model, got {type(factory).__name__}")
    try:
        made = factory(**options)
    except InputError:
        raise
    except Exception as error:  # somebody else's code: what went wrong there stays chained to the sentence
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InputError(f"{spec}: factory must return the model when it is called, got {what}") from error
    segmenter = made if isinstance(made, Segmenter) else Segmenter(made, **merge_settings({}, settings))
    if segmenter is made and settings:
        segmenter = segmenter.adjusted(**settings)
    segmenter.name = spec
    return segmenter
