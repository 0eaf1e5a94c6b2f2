"""`load_model(spec)`: from what a user types to a Segmenter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.models import trusted
from certiseg.models.compact import WEIGHTS, compact
from certiseg.models.device import move
from certiseg.models.hrnet import load_hrnet, num_classes_of
from certiseg.models.huggingface import load_huggingface
from certiseg.models.onnx import load_onnx
from certiseg.models.openvino import load_openvino
from certiseg.models.segmenter import IMAGENET_MEAN, IMAGENET_STD, Segmenter
from certiseg.models.settings import merge_settings, parse_names, parse_size, refuse_unknown, split_settings
from certiseg.models.specs import SPECS, split_spec
from certiseg.models.synthetic import synthetic_scene
from certiseg.models.tflite import load_tflite
from certiseg.models.weight_files import MAX_CLASSES, load_weights, read_notes, read_weights

HRNET_FACTS: dict[int, dict[str, Any]] = {
    19: {"hierarchy": "cityscapes", "trained_size": (1024, 2048)},
    59: {"hierarchy": "pascal_context"},
    171: {"hierarchy": "coco_stuff"},
}
"""The published weights carry no class names; by their number they are taken to be these, in this order."""
COMPACT_SIZE = (360, 480)
"""Of the images that the shipped weights were trained on."""
RUNTIMES = {".onnx": load_onnx, ".xml": load_openvino, ".tflite": load_tflite}

_LONGEST_REASON = 400
"""Characters of an error in somebody else's code: enough for the names of missing weights."""


def load_model(spec: str | Path, *, trust: bool = False, device: str = "cpu", **options: Any) -> Segmenter:
    """The model that a spec names, as a Segmenter; docs/models.md lists the forms.

    trust: whether files that can run code (TorchScript, torch.export) may be loaded.
    device: where a torch model runs: cpu, cuda, cuda:1, ...
    options: fields of ModelSettings that override what the model's file says (mean, std, scores, window, class_names,
        hierarchy, ...) and what the spec says behind a `?`; `output` names the output of a file with several;
        `weights` is loaded into the network of a factory; others go to a factory.
    """
    spec = str(spec) if isinstance(spec, Path) else spec
    if not isinstance(spec, str) or not spec:
        raise InputError(f"model must be given as text, got {spec!r}; forms: {', '.join(SPECS)}")
    name, said = split_spec(spec)
    settings, others = split_settings(said | {key: value for key, value in options.items() if value is not None})
    return move(_load(name, settings, others, trust=trust), device)


def _load(spec: str, settings: Mapping[str, Any], others: Mapping[str, Any], *, trust: bool) -> Segmenter:
    kind, _, place = spec.partition(":")
    if kind == "torch":
        return _from_factory(spec, settings, others)
    if spec == "synthetic":
        scene = synthetic_scene(**others)
        return scene.adjusted(**settings) if settings else scene
    if kind == "hf" and place:
        refuse_unknown(spec, others, ["weights"])
        return _reweighted(load_huggingface(place, settings), others.get("weights"))
    if spec == "compact" or (kind == "compact" and place):
        refuse_unknown(spec, others)
        return _compact(place, settings)
    if kind in ("hrnet-w48", "hrnet-w48-ocr") and place:
        refuse_unknown(spec, others)
        return _hrnet(kind, place, settings)
    return _from_file(Path(spec), settings, others, trust=trust)


def _from_file(path: Path, settings: Mapping[str, Any], others: Mapping[str, Any], *, trust: bool) -> Segmenter:
    """The model of a file, by the ending of its name."""
    suffix = path.suffix.lower()
    if suffix in trusted.SUFFIXES:
        refuse_unknown(str(path), others)
        return trusted.load_trusted(path, settings, trust=trust)
    if suffix in RUNTIMES:
        refuse_unknown(str(path), others, ["output"])
        return RUNTIMES[suffix](path, settings, **others)
    hint = ""
    if path.is_dir():
        hint = f"; for a Hugging Face folder write hf:{path}"
    elif suffix in (".pth", ".safetensors", ".bin", ".ckpt"):
        hint = (
            "; weights alone are no model: write hrnet-w48:FILE, or torch:package.module:factory for your own network"
        )
    raise InputError(f"model must have one of the forms {', '.join(SPECS)}, got {str(path)!r}{hint}")


def _compact(place: str, settings: Mapping[str, Any]) -> Segmenter:
    """The shipped weights, or those that `certiseg train` or `certiseg adapt` wrote."""
    weights = place or WEIGHTS
    state = read_weights(weights)
    head = state.get("head.weight")
    good = head is not None and head.ndim == 4 and head.numel() > 0 and len(head) <= MAX_CLASSES
    count = len(head) if head is not None and good else 2  # where it is malformed any count fails below
    network = compact(count)
    load_weights(network, weights, state=state)
    facts = {"num_classes": count, "channels": 3, **_noted(weights)}
    if not place:
        shipped = {"class_names": load_hierarchy("camvid").classes, "hierarchy": "camvid"}
        facts = {**facts, "trained_size": COMPACT_SIZE, **shipped}
    name = f"compact:{Path(place).name}" if place else "compact"
    return Segmenter(network, **merge_settings(facts, settings), name=name)


def _hrnet(kind: str, weights: str, settings: Mapping[str, Any]) -> Segmenter:
    """Up-sampling inside the network and of its scores is done in the same way, as in the published code."""
    ocr = kind.endswith("ocr")
    aligned = settings.get("align_corners", ocr)
    network = load_hrnet(weights, ocr=ocr, num_classes=settings.get("num_classes"), align_corners=aligned)
    count = num_classes_of(network.state_dict())
    facts = {"num_classes": count, "channels": 3, "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "align_corners": aligned}
    facts |= HRNET_FACTS.get(count or 0, {}) | _noted(weights)
    name = f"{kind}:{weights}?align_corners={str(aligned).lower()}"
    return Segmenter(network, **merge_settings(facts, settings), name=name)


def _noted(weights: str | Path) -> dict[str, Any]:
    """What `certiseg train` notes in its weight files: class names and the size of the images."""
    notes = read_notes(weights)
    facts: dict[str, Any] = {}
    if "classes" in notes:
        facts["class_names"] = parse_names(notes["classes"], f"{weights}: metadata `classes`") or None
    if "trained_size" in notes:
        facts["trained_size"] = parse_size(notes["trained_size"], f"{weights}: metadata `trained_size`")
    return facts


def _from_factory(spec: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> Segmenter:
    factory = find_factory(spec)
    options = dict(options)
    weights = options.pop("weights", None)
    try:
        made = factory(**options)
    except InputError:
        raise
    except Exception as error:  # somebody else's code: what went wrong there stays chained to the sentence
        what = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
        raise InputError(f"{spec}: factory must return the model when it is called, got {what}") from error
    facts = {} if weights is None else _noted(weights)
    segmenter = made if isinstance(made, Segmenter) else Segmenter(made, **merge_settings(facts, settings))
    if segmenter is made and settings:
        segmenter = segmenter.adjusted(**settings)
    segmenter.name = spec
    return _reweighted(segmenter, weights)


def find_factory(spec: str) -> Callable[..., Any]:
    """The function that `torch:package.module:factory` names."""
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
    found: Callable[..., Any] = factory
    return found


def _reweighted(segmenter: Segmenter, weights: str | None) -> Segmenter:
    """The segmenter with the weights of a file, if one is named."""
    if weights is not None:
        if not isinstance(segmenter.model, nn.Module):
            raise InputError(f"weights must be for a torch network, got {segmenter.name}, which is none")
        load_weights(segmenter.model, weights)
        segmenter.name = f"{segmenter.name}?weights={weights}"
    return segmenter
