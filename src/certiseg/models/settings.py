"""Settings of a model: what its file says, overridden by what the caller says."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from certiseg.archive import parse_json
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.images.values import MAX_CHANNELS
from certiseg.settings import INSIST, MOST_SIGMA, make_plain, require, require_one_of, setting

ScoreKind = Literal["logits", "probabilities", "labels"]
Resize = Literal["bilinear", "antialiased", "bicubic"]
Backend = Literal["torch", "torch-bfloat16", "onnxruntime", "openvino"]
BackendChoice = Literal["torch", "torch-bfloat16", "onnxruntime", "openvino", "auto"]
Size = tuple[int, int]
OVERLAP = 32
"""Pixels that neighbouring windows share by default: enough to hide most seams, cheap to repeat."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What is said about a model, and what happens between the pixels in [0, 1] and its own input.

    All of it is part of the certified function.
    """

    scores: ScoreKind = setting("logits", help="what the model returns (default: as its file says, else logits)")
    num_classes: int | None = setting(None, help="number of classes, where neither the model nor a hierarchy says it")
    class_names: tuple[str, ...] | None = setting(None, help="names of the classes in their order", metavar="NAME")
    hierarchy: str | None = setting(
        None,
        help="cityscapes, acdc, pascal_context, coco_stuff, camvid or a YAML file (default: the model's own)",
        metavar="NAME|FILE",
    )
    align_corners: bool = setting(False, help="up-sample the scores with the corners of both grids aligned")
    channels: int | None = setting(
        None, help="channels of its images (default: as its file or the mean says; unknown for other models)"
    )
    mean: tuple[float, ...] | None = setting(
        None, help="subtracted from the [0, 1] image, a number per channel", metavar="R,G,B"
    )
    std: tuple[float, ...] | None = setting(
        None, help="divides the image afterwards, a number per channel", metavar="R,G,B"
    )
    bgr: bool = setting(False, help="the model wants blue first; mean and std are still given red first")
    divisible_by: int = setting(1, help="pad the sides with zeros to a multiple, crop the scores", metavar="N")
    input_size: Size | int | None = setting(
        None, help="resize the image for the model (one number: its shorter side), the scores back", metavar="HxW"
    )
    resize: Resize = setting(
        "bilinear", help="how: bilinear as OpenCV does; antialiased or bicubic as Pillow does (default: bilinear)"
    )
    integer_input: bool = setting(False, help="the model takes bytes: values are rounded and clamped to 0..255")
    window: Size | None = setting(None, help="cut larger images into windows of this size", metavar="HxW")
    overlap: int | None = setting(
        None,
        help="pixels that neighbouring windows share at least (default: 32, half of small ones)",
        metavar="N",
    )

    trained_size: Size | None = setting(
        None, help="image size the model was trained for; images far from it are pointed out", metavar="HxW"
    )
    insist: bool = setting(False, help=INSIST)

    def __post_init__(self) -> None:
        make_plain(self)
        require_one_of("scores", self.scores, get_args(ScoreKind))
        require_one_of("resize", self.resize, get_args(Resize))
        self._settle_classes()
        for name in ("mean", "std"):
            object.__setattr__(self, name, _per_channel(name, getattr(self, name)))
        require(self.std is None or min(self.std) > 0, "std", "be positive", self.std)
        self._settle_channels()
        for name in ("mean", "std"):
            values = getattr(self, name)
            if values is not None and max(map(abs, values)) > MOST_SIGMA and not self.insist:
                meant = ", ".join(f"{value / 255:.4g}" for value in values)
                raise InputError(
                    f"{name} must be of the [0, 1] image, got {', '.join(map(str, values))}, probably meant for grey "
                    f"levels: {meant}; insist=True (--insist) takes it as it is"
                )
        if self.integer_input and (self.mean is not None or self.std is not None):
            raise InputError("mean and std must not be given for a model that takes whole numbers 0..255")
        require(_is_side(self.divisible_by), "divisible_by", "be a whole number >= 1", self.divisible_by)
        for name in ("input_size", "window", "trained_size"):
            if not (name == "input_size" and _is_side(self.input_size)):
                object.__setattr__(self, name, _size(name, getattr(self, name)))

        if self.window is not None:
            smaller = min(self.window)
            overlap = min(OVERLAP, smaller // 2) if self.overlap is None else self.overlap
            require(0 <= overlap < smaller, "overlap", f"be in 0..{smaller - 1}, below the window", overlap)
            object.__setattr__(self, "overlap", overlap)

    def _settle_channels(self) -> None:
        """The channels of the images, as stated or as mean and std say; all must say the same."""
        said = {name: len(getattr(self, name)) for name in ("mean", "std") if getattr(self, name) is not None}
        if self.channels is None:
            object.__setattr__(self, "channels", next(iter(said.values()), None))
        good = self.channels is None or (_is_side(self.channels) and self.channels <= MAX_CHANNELS)
        require(good, "channels", f"be a whole number in 1..{MAX_CHANNELS}", self.channels)
        for name, count in said.items():
            require(count == self.channels, name, f"be {self.channels} numbers, one per channel", getattr(self, name))
        if self.bgr and self.channels not in (None, 3):
            raise InputError(f"bgr must be left out for images of {self.channels} channels; it is about red and blue")

    def _settle_classes(self) -> None:
        """Check names and number of the classes, as far as they are known."""
        names, count = self.class_names, self.num_classes
        if names is not None:
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):
                raise InputError(f"class_names must be a sequence of names, got {names!r}")
            if count is not None and len(names) != count:
                raise InputError(f"class_names must name the {count} classes, got {len(names)} names")
            object.__setattr__(self, "num_classes", count := len(names))
        require(count is None or count >= 2, "num_classes", "be at least 2", count)
        if self.scores == "labels" and count is None:
            raise InputError("num_classes must be given for a model that returns labels; a hierarchy gives it, too")


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """Which model, in which backend, with what in front of it: all that another process needs to make the same one."""

    model: str = setting(
        "compact",
        metavar="SPEC",
        help="a network of the package, a model file, hf:FOLDER, hf:ORG/NAME[@REVISION] of the Hugging Face Hub, "
        "torch:package.module:factory; all forms: docs/models.md",
    )
    backend: BackendChoice | None = setting(
        None,
        help="export a torch model and certify the exported function; auto: the fastest that keeps 32 bits; "
        "torch-bfloat16: autocast (default: the model's own)",
    )
    denoiser: bool = setting(
        False, help="put the denoiser of the package in front of the model; both together are certified"
    )
    model_output: str | None = setting(None, metavar="NAME", help="which output of the file holds the scores")
    trust_model: bool = setting(False, help="load TorchScript and torch.export files, which can run code")
    said: Mapping[str, Any] = field(default_factory=dict)
    """What is said about the model: fields of ModelSettings; None stands for not said."""


NAMES = frozenset(each.name for each in fields(ModelSettings)) - {"integer_input"}
"""Settings that a caller may give for any model; whether it takes bytes is a fact of its file."""


def _per_channel(what: str, values: Sequence[float] | None) -> tuple[float, ...] | None:
    if values is None:
        return None
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if not 1 <= len(numbers) <= MAX_CHANNELS or not all(np.isfinite(numbers)):
        raise InputError(f"{what} must be numbers, one per channel, got {values!r}")
    return numbers


def _size(what: str, value: object) -> Size | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or len(value) != 2 or not all(_is_side(side) for side in value):
        raise InputError(f"{what} must be (height, width) in pixels, got {value!r}")
    return int(value[0]), int(value[1])


def _is_side(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def split_settings(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the model, and the other options; None stands for not given."""
    given = {name: value for name, value in options.items() if value is not None}
    return ({n: v for n, v in given.items() if n in NAMES}, {n: v for n, v in given.items() if n not in NAMES})


def refuse_unknown(spec: str, options: Mapping[str, Any], known: Sequence[str] = ()) -> None:
    """Refuse options that nobody would read."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(f"options of {spec} must be {', '.join([*known, *sorted(NAMES)])}, got {unknown[0]!r}")


def merge_settings(of_file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of file and caller together. Class names of a preset choose it; labels take its number of classes."""
    merged = {**of_file, **given}
    if "class_names" in given and "num_classes" not in given and merged.get("num_classes") is None:
        merged.pop("num_classes", None)
    if merged.get("hierarchy") is None and merged.get("class_names") is not None:
        merged["hierarchy"] = preset_of(merged["class_names"])
    unknown = merged.get("class_names") is None and merged.get("num_classes") is None
    if merged.get("scores") == "labels" and unknown and merged.get("hierarchy") is not None:
        merged["num_classes"] = load_hierarchy(merged["hierarchy"]).num_classes
    return merged


def preset_of(names: Sequence[str]) -> str | None:
    """The preset that has exactly these classes in this order, if one has."""
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


def parse_size(text: str, source: str) -> Size | None:
    """Height and width from a note in a model file."""
    try:
        return _size("size", parse_json(text))
    except ValueError:
        raise InputError(f"{source} must be [height, width], got {text[:80]!r}") from None


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
