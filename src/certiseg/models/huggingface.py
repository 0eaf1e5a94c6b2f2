"""Hugging Face models: those of a folder, or of the Hub, with the preparation that their processor describes.

Only the numbers of the processor are used (size, rescaling, mean, deviation, channel order); they are applied to the
noisy floats, without the rounding to bytes that the processor's own resizing does.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from certiseg.archive import parse_json
from certiseg.errors import InputError
from certiseg.models.hub import fetch, is_hub_name
from certiseg.models.runtime import reason
from certiseg.models.segmenter import Segmenter
from certiseg.models.settings import merge_settings, names_of_ids, require_library

_RESAMPLE = {2: "antialiased", 3: "bicubic"}
"""Pillow's numbers of the ways to resize that are supported: bilinear and bicubic."""


class _Logits(torch.nn.Module):
    """The scores alone, whatever else the network returns."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(pixel_values=images).logits
        return logits


def load_huggingface(place: str, settings: Mapping[str, Any]) -> Segmenter:
    """The model of a folder, or of a repository of the Hub: config.json, safetensors and preprocessor_config.json."""
    if is_hub_name(place):
        folder, name = fetch(place)
    else:
        folder, name = Path(place), f"hf:{Path(place).name}"
    _require_weights(folder, f"hf:{place}")
    network: Any = _network(folder)
    facts = read_processor(folder, getattr(network.config, "num_channels", 3))
    facts["num_classes"] = int(network.config.num_labels)
    names = names_of_ids(network.config.id2label, f"{folder}/config.json: `id2label`")
    if not all(name == f"LABEL_{index}" for index, name in enumerate(names)):
        facts["class_names"] = tuple(str(name) for name in names)
    return Segmenter(_Logits(network), **merge_settings(facts, settings), name=name)


def _require_weights(folder: Path, what: str) -> None:
    """Refuse what is no model, and weights in a format that can run code when it is loaded."""
    if not (folder / "config.json").is_file():
        found = "one without config.json" if folder.is_dir() else "no folder; the Hub's have the form hf:ORG/NAME"
        raise InputError(f"{what}: must be a folder or repository with config.json and model.safetensors, got {found}")
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            f"{what}: must hold its weights as safetensors, got none; other formats can run code when they are "
            "loaded: save the model again with save_pretrained(FOLDER, safe_serialization=True)"
        )


def _network(folder: Path) -> torch.nn.Module:
    library = require_library("transformers", "huggingface", "a Hugging Face folder")
    config = _read_json(folder / "config.json")
    if "auto_map" in config:
        raise InputError(f"{folder}/config.json: `auto_map` must be absent: it would run code from the folder")
    logging = library.utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            network, loading = library.AutoModelForSemanticSegmentation.from_pretrained(
                str(folder),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except Exception as error:  # transformers raises many types on damaged folders
        raise InputError(f"hf:{folder}: must hold a semantic segmentation model, got: {reason(error)}") from None
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
    missing = sorted(str(name) for name in loading["missing_keys"])
    if missing:
        raise InputError(f"hf:{folder}: must hold all weights, got none for {len(missing)} names ({missing[0]}, ...)")
    network.float()
    found: torch.nn.Module = network
    return found


def read_processor(folder: Path, channels: int = 3) -> dict[str, Any]:
    """The processor's settings in terms of images in [0, 1]; what cannot be certified everywhere is refused."""
    path = folder / "preprocessor_config.json"
    processor = _read_json(path) if path.is_file() else {}
    if not path.is_file() and (folder / "processor_config.json").is_file():
        path = folder / "processor_config.json"
        processor = _read_json(path).get("image_processor", {})
    if not processor:
        raise InputError(
            f"hf:{folder}: must have a preprocessor_config.json that says how images are prepared, got none"
        )
    _refuse_crops(processor, path)
    facts: dict[str, Any] = {"bgr": bool(processor.get("do_flip_channel_order", False)), **_sizes(processor, path)}
    scale = 255 * float(processor.get("rescale_factor", 1 / 255)) if processor.get("do_rescale", True) else 255.0
    normal = processor.get("do_normalize", True)
    mean = _numbers(processor, "image_mean", path) if normal else (0.0,) * channels
    std = _numbers(processor, "image_std", path) if normal else (1.0,) * channels
    facts["mean"], facts["std"] = tuple(m / scale for m in mean), tuple(s / scale for s in std)
    return facts


def _refuse_crops(processor: Mapping[str, Any], path: Path) -> None:
    """Pixels that the network never sees have no prediction to certify; edit the file to certify without the crop."""
    if processor.get("do_center_crop"):
        raise InputError(
            f"{path}: `do_center_crop` must be false, got a processor that crops: pixels outside the crop would have "
            "no prediction; set it to false to certify the network on the whole resized image"
        )
    if processor.get("do_pad") and (processor.get("pad_size") or processor.get("size_divisor")):
        raise InputError(
            f"{path}: `do_pad` must be false, got a processor that letterboxes; set it to false to certify the network "
            "on the image resized to `size` without bars"
        )


def _sizes(processor: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if "do_resize" not in processor:
        raise InputError(
            f"{path}: `do_resize` must be true or false, got neither; each kind of processor has its own default"
        )
    if not processor["do_resize"]:
        return {}
    resample = processor.get("resample", 2)
    if resample not in _RESAMPLE:
        raise InputError(f"{path}: `resample` must be 2 (bilinear) or 3 (bicubic), got {resample!r}")
    size = processor.get("size")
    sides = size if isinstance(size, Mapping) else {"height": size, "width": size}
    sides = {key: value for key, value in sides.items() if value is not None}
    if processor.get("keep_aspect_ratio") or set(sides) not in ({"height", "width"}, {"shortest_edge"}):
        raise InputError(f"{path}: `size` must be height and width, or shortest_edge alone, got {size!r}")
    if "shortest_edge" in sides:
        return {"input_size": sides["shortest_edge"], "resize": _RESAMPLE[resample]}
    return {"input_size": (sides["height"], sides["width"]), "resize": _RESAMPLE[resample]}


def _numbers(processor: Mapping[str, Any], key: str, path: Path) -> tuple[float, ...]:
    values = processor.get(key)
    if not isinstance(values, list) or not values or not all(isinstance(v, int | float) for v in values):
        raise InputError(f"{path}: `{key}` must be numbers, one per channel, got {values!r}")
    return tuple(float(value) for value in values)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = parse_json(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: must be readable JSON, got: {reason(error)}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: must be a JSON object, got {type(document).__name__}")
    return document
