"""Settings of a loaded model: what its file says, overridden by what the caller says."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from certiseg.archive import parse_json
from certiseg.errors import InputError

SETTINGS = frozenset(
    (
        *("num_classes", "class_names", "hierarchy", "scores", "align_corners"),
        *("mean", "std", "bgr", "divisible_by", "input_size", "resize", "window"),
    )
)
"""Arguments of Segmenter that a caller may set for any loaded model."""


def split_settings(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the segmenter, and the other options; None stands for not given."""
    given = {name: value for name, value in options.items() if value is not None}
    return ({n: v for n, v in given.items() if n in SETTINGS}, {n: v for n, v in given.items() if n not in SETTINGS})


def refuse_unknown(spec: str, options: Mapping[str, Any], known: Sequence[str] = ()) -> None:
    """Refuse options that nobody would read."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(f"options of {spec} must be {', '.join([*known, *sorted(SETTINGS)])}, got {unknown[0]!r}")


def merge_settings(of_file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of Segmenter. Class names that are those of a preset choose it; labels take its class count."""
    merged = {**of_file, **given}
    if "class_names" in given and "num_classes" not in given and merged.get("num_classes") is None:
        merged.pop("num_classes", None)
    if merged.get("hierarchy") is None and merged.get("class_names") is not None:
        merged["hierarchy"] = preset_of(merged["class_names"])
    unknown = merged.get("class_names") is None and merged.get("num_classes") is None
    if merged.get("scores") == "labels" and unknown and merged.get("hierarchy") is not None:
        from certiseg.hierarchy import load_hierarchy

        merged["num_classes"] = load_hierarchy(merged["hierarchy"]).num_classes
    return merged


def preset_of(names: Sequence[str]) -> str | None:
    """The preset that has exactly these classes in this order, if one has."""
    from certiseg.hierarchy import load_hierarchy

    for preset in ("cityscapes", "camvid", "pascal_context", "coco_stuff"):
        try:
            load_hierarchy(preset).require_classes(list(names))
        except InputError:
            continue
        return preset
    return None


def parse_names(text: str, source: str) -> tuple[str, ...]:
    """Class names from a note in a model file: a JSON or Python list, an id-to-name mapping, or one name per line."""
    names: Any
    try:
        names = parse_json(text)
    except ValueError:
        try:
            names = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            separator = "\n" if "\n" in text.strip() else ","
            names = [part.strip() for part in text.strip().split(separator)]
    if isinstance(names, Mapping):
        names = names_of_ids(names, source)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"{source}: class names must be a list or a mapping from 0, 1, ..., got {text[:80]!r}")
    return tuple(names)


def names_of_ids(names: Mapping[Any, Any], source: str) -> list[Any]:
    """The names of a mapping 0 -> name, 1 -> name, ... in order; gaps are refused."""
    try:
        by_id = {int(key): name for key, name in names.items()}
    except (TypeError, ValueError):
        by_id = {}
    if not by_id or sorted(by_id) != list(range(len(names))):
        raise InputError(f"{source}: class ids must be 0, 1, ... without gaps, got {list(names)[:5]}")
    return [by_id[index] for index in range(len(by_id))]


def require_library(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"{purpose} needs the library {module}, which cannot be imported ({error}); "
            f'install it with: pip install "certiseg[{extra}]"'
        ) from None
