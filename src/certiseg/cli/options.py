"""Options that several commands share: the model, the hierarchy, the settings of votes and certificates."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from certiseg.errors import InputError
from certiseg.images.values import Values, parse_values
from certiseg.models.device import move
from certiseg.models.settings import ModelChoice, ModelSettings
from certiseg.runs.settings import RunSettings
from certiseg.settings import CertificateSettings, SamplingSettings, flag_of

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy
    from certiseg.models.segmenter import Segmenter

Parser: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_LEAST_MEMORY = 100_000_000
"""Less than the libraries alone take."""
SettingsClass = TypeVar("SettingsClass", bound=Any)


def add_model_options(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    """Which model, in which backend, and what its file does not say about itself; named: by --model."""
    group = parser.add_argument_group("model")
    add_settings(group, ModelSettings, ("hierarchy",))
    add_settings(group, ModelChoice, (*(("model",) if named else ()), "backend", "denoiser"))
    add_preparation_options(group)


def add_preparation_options(parser: Parser) -> None:
    """What a model file does not say about itself; `verify --model` needs the same values as `certify`."""
    elsewhere = ("hierarchy", "class_names", "integer_input")
    names = [each.name for each in fields(ModelSettings) if each.name not in elsewhere]
    add_settings(parser, ModelSettings, names, **dict.fromkeys(names))
    add_settings(parser, ModelChoice, ("model_output", "trust_model"))


def model_choice(args: argparse.Namespace) -> ModelChoice:
    """The model that the options name."""
    said = {each.name: getattr(args, each.name, None) for each in fields(ModelSettings)}
    return settings_of(args, ModelChoice, said=said)


def add_settings(parser: Parser, cls: type[Any], names: Sequence[str] = (), **defaults: Any) -> None:
    """An option for each field of a settings class, or for the named ones; defaults: where a command has its own."""
    kinds = get_type_hints(cls)
    for each in fields(cls):
        if names and each.name not in names:
            continue
        default = defaults.get(each.name, each.default)
        text = each.metadata["help"] + _told(default)
        how = {"required": True} if default is MISSING else {"default": default or None if default == () else default}
        how |= _how(kinds[each.name], each.metadata["metavar"], words=each.metadata.get("words", False))
        parser.add_argument(flag_of(each), dest=each.name, help=text.replace("%", "%%"), **how)


def _told(default: object) -> str:
    """A default in words; nothing where the help text tells it."""
    if default in (None, (), "", MISSING) or isinstance(default, bool):
        return ""
    return f" (default: {' '.join(map(_typed, default)) if isinstance(default, tuple) else default})"


def _typed(value: object) -> str:
    """A value as one would type it."""
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _how(kind: Any, metavar: str | tuple[str, ...] | None, *, words: bool) -> dict[str, Any]:
    """How argparse reads a value of a type: words for any number of them, a tuple of metavars for as many."""
    parts = get_args(kind)
    kind = next(part for part in parts if part is not NoneType) if NoneType in parts else kind
    shown = {} if metavar is None else {"metavar": metavar}
    if words:
        return {
            "type": float if get_args(kind)[0] is float else str,
            "nargs": "*" if NoneType in parts else "+",
            **shown,
        }
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(kind) is Literal:
        return {"choices": get_args(kind), **shown}
    if metavar == "LOW:HIGH":
        return {"type": image_values, **shown}
    if metavar == "HxW":
        return {"type": _size_or_side if int in parts else image_size, **shown}
    if get_origin(kind) is tuple and get_args(kind)[0] is str:
        return {"action": "append", **shown}
    if isinstance(metavar, tuple):
        return {"type": get_args(kind)[0], "nargs": len(metavar), **shown}
    if get_origin(kind) is tuple:
        return {"type": _whole_numbers if get_args(kind)[0] is int else _numbers, **shown}
    return {"type": {int: int, float: float, str: str}[kind], **shown}


def settings_of(args: argparse.Namespace, cls: type[SettingsClass], **fixed: Any) -> SettingsClass:
    """The settings that the options stand for; fixed: fields that do not come from options."""
    names = {each.name for each in fields(cls)}
    given = {name: value for name, value in vars(args).items() if name in names and value is not None}
    settings: SettingsClass = cls(**{**given, **fixed})
    return settings


def add_sigma(parser: Parser) -> None:
    """The noise, whose default depends on the threat: see cli/threat.py."""
    parser.add_argument(
        "--sigma", type=float, help="pixel noise, in [0, 1] pixel units (default: 0.25, or 0 with a threat)"
    )


def add_votes_options(parser: argparse.ArgumentParser) -> None:
    """How an image is drawn."""
    group = parser.add_argument_group("votes")
    add_sigma(group)
    add_settings(group, SamplingSettings, ("n0", "n", "temperature", "noise"))
    group.add_argument("--seed", type=int, help="seed of the noise (default: 0)")
    group.add_argument(
        "--stop-undecided",
        type=float,
        metavar="SHARE",
        help="stop as soon as at most this share of the pixels, say 0.01, is neither certified nor hopeless; -n is "
        "not used then, and the test is anytime",
    )
    group.add_argument("--n-max", type=int, metavar="N", help="most draws with --stop-undecided (default: 1000)")
    add_batch_options(group)


def add_batch_options(parser: Parser) -> None:
    """How many draws a call of the model takes."""
    alone = "what a short measurement says"
    parser.add_argument("--batch-size", type=int, metavar="B", help=f"draws per model call (default: {alone})")
    add_memory_option(parser, "4GiB")


def add_memory_option(parser: Parser, default: str | None = None) -> None:
    """default: within which the batch size is measured if nothing is said; None: then it is not measured."""
    text = "what the process may take when the batch size is measured"
    text += f" (default: {default})" if default else ", for example 4GiB"
    parser.add_argument("--memory", type=_bytes, default=default, metavar="SIZE", help=text)


def settled_batch_size(args: argparse.Namespace, model: Segmenter, shape: tuple[int, ...]) -> int:
    """Draws per model call: as asked, or as measured for images of this height, width and number of channels."""
    from certiseg.drawing import lanes_of
    from certiseg.models.batching import measured_batch_size

    if args.batch_size is not None:
        return int(args.batch_size)
    size, lanes = (shape[0], shape[1]), lanes_of(model, 4 * math.prod(shape))
    return measured_batch_size(model, size, memory=args.memory, channels=shape[2], at_once=lanes)


def settle_stopping(args: argparse.Namespace) -> None:
    """Make -n and --test what --stop-undecided and --n-max ask for."""
    if args.stop_undecided is None:
        if args.n_max is not None:
            raise InputError("--n-max must come with --stop-undecided, got it alone; use -n for a fixed number")
        args.test = args.test or "fixed"
        return
    if not 0 <= args.stop_undecided < 1:
        raise InputError(f"--stop-undecided must lie in [0, 1), got {args.stop_undecided}")
    if args.test == "fixed":
        raise InputError("--test must be anytime with --stop-undecided, got fixed: it allows no looking at the votes")
    args.test, args.n = "anytime", 1000 if args.n_max is None else args.n_max


def add_certificate_options(parser: argparse.ArgumentParser) -> None:
    """How a certificate follows from the votes."""
    add_settings(parser.add_argument_group("certificate"), CertificateSettings, test=None)


def certificate_settings(args: argparse.Namespace) -> CertificateSettings:
    """The settings of `cs.certify` that the options stand for; an option without effect is refused."""
    settings = settings_of(args, CertificateSettings)
    settings.refuse_idle()
    return settings


def sampling_settings(args: argparse.Namespace) -> SamplingSettings:
    """The settings of `cs.sample` that the options stand for."""
    return settings_of(args, SamplingSettings, batch_size=args.batch_size or 1, max_set=max(5, args.max_set or 0))


def model_and_hierarchy(
    args: argparse.Namespace, size: tuple[int, int] | None = None
) -> tuple[Segmenter, Hierarchy | None]:
    """The model of the options, and the hierarchy: as asked, or the model's own. What should be known is printed.

    size: height and width of the image; `--backend auto` measures there.
    """
    from certiseg.models.choice import choose_model

    sigmas = tuple(args.sigma) if isinstance(args.sigma, list) else (args.sigma,)
    chosen = choose_model(model_choice(args), size=size, sigmas=sigmas)
    for note in chosen.notes:
        print(f"note: {note}", file=sys.stderr)
    return move(chosen.segmenter, getattr(args, "device", "cpu")), chosen.hierarchy


def check_output_folder(path: str | Path) -> Path:
    """The folder to write into, refused if a file has its name; not made yet."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out must be a folder, got the file {str(folder)!r}")
    return folder


def output_folder(path: str | Path) -> Path:
    """The folder to write into, made if it is not there."""
    folder = check_output_folder(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _bytes(text: str) -> int:
    """A size like 4GiB, 500MB or a plain number of bytes."""
    number = text.rstrip("KMGTiB ")
    unit = text[len(number) :].strip()
    powers = {"": 1, "B": 1, **{f"{p}B": 1000**i for i, p in enumerate("KMGT", 1)}}
    powers |= {f"{p}iB": 1024**i for i, p in enumerate("KMGT", 1)}
    try:
        size = int(float(number) * powers[unit])
    except (ValueError, KeyError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a size like 4GiB or 500MB, got {text!r}") from None
    if size < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"must be at least 100MB, got {text!r}; a unit like GiB may be missing")
    return size


def image_values(text: str) -> Values:
    """LOW:HIGH, or one per channel, separated by commas."""
    try:
        return parse_values(text)
    except InputError:
        raise argparse.ArgumentTypeError(f"must be LOW:HIGH such as 0:4095, or several, got {text!r}") from None


def add_image_options(parser: Parser) -> None:
    """How the numbers of image files are read, and where the model runs."""
    add_settings(parser, RunSettings, ("values",))
    parser.add_argument("--device", default="cpu", help="where a torch model runs: cpu, cuda, cuda:1 (default: cpu)")


def channel_numbers(text: str) -> tuple[int, ...]:
    """Channels by number, from 1, separated by commas."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers of channels such as 4,3,2, got {text!r}") from None


def image_size(text: str) -> tuple[int, int]:
    """Height and width from HEIGHTxWIDTH."""
    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be HEIGHTxWIDTH, got {text!r}") from None
    if height < 1 or width < 1:
        raise argparse.ArgumentTypeError(f"must be positive, got {text!r}")
    return height, width


def _size_or_side(text: str) -> tuple[int, int] | int:
    """HEIGHTxWIDTH, or one number for the shorter side."""
    return int(text) if text.isdecimal() and int(text) else image_size(text)


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _numbers(text))


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.replace("(", "").replace(")", "").split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers separated by commas, got {text!r}") from None
