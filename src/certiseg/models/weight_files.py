"""Weight files: tensors by name from PyTorch and safetensors files, read without running anything in them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from certiseg.errors import InputError

ClassCount = Callable[[Mapping[str, Tensor]], int | None]
"""Reads the class count off weights, so that a mismatch can be told in those terms."""


def load_weights(module: nn.Module, path: str | Path, num_classes_of: ClassCount = lambda _: None) -> None:
    """Load a checkpoint file into `module`: every name and shape fits, or nothing is changed."""
    state = read_weights(path)
    check_fit(module.state_dict(), state, path, num_classes_of)
    module.load_state_dict(state)


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint file by name; code in the file never runs.

    Reads a bare state dict or one under `state_dict`, `model_state` or `model`; the prefixes `module.` and `model.` are
    removed where every name has them, and entries of the training loss (`loss.`) are left out.
    """
    content = _read_file(Path(path))
    for key in ("state_dict", "model_state", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise InputError(f"{path} must hold a state dict (tensors by name), got {type(content).__name__}")
    for prefix in ("module.", "model.", "module."):
        content = {name: value for name, value in content.items() if not name.startswith("loss.")}
        if all(name.startswith(prefix) for name in content):
            content = {name.removeprefix(prefix): value for name, value in content.items()}
    strange = [name for name, value in content.items() if not isinstance(value, Tensor)]
    if strange or not content:
        got = f"other values under {shown(strange)}" if strange else "no tensor at all"
        raise InputError(f"{path} must hold a state dict (tensors by name), got {got}")
    return content


def _read_file(path: Path) -> object:
    if not path.is_file():
        raise InputError(f"weights must be a file, got {path}, which is {'a folder' if path.is_dir() else 'missing'}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings():  # remarks on the file's age or kind say nothing a user can act on
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can raise anything while being parsed
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        got = f"one that asks for {named[1]}, which was not run" if named else "one that is damaged or of another kind"
        got = "an empty file" if path.stat().st_size == 0 else got
        rule = "must be an intact, readable PyTorch or safetensors file with nothing but tensors"
        raise InputError(f"{path} {rule}, got {got}; save the state dict alone") from error


def check_fit(
    wanted: Mapping[str, Tensor],
    state: dict[str, Tensor],
    path: str | Path,
    num_classes_of: ClassCount = lambda _: None,
) -> None:
    """Raise unless `state` has the names, shapes and kinds of `wanted`; absent BN counters become 0."""
    for name in wanted:
        if name.endswith(".num_batches_tracked"):  # unknown to PyTorch before 0.4.1, and unused at a fixed momentum
            state.setdefault(name, torch.tensor(0))
    missing = [name for name in wanted if name not in state]
    unexpected = [name for name in state if name not in wanted]
    shapes = {name: (list(state[name].shape), list(wanted[name].shape)) for name in wanted if name in state}
    wrong = [f"{name} {got} instead of {want}" for name, (got, want) in shapes.items() if got != want]
    built, found = num_classes_of(wanted), num_classes_of(state)
    problems = [f"built for {built} classes, file has {found}"] if built and found and built != found else []
    listed = {"missing": missing, "unexpected": unexpected, "of wrong shape": wrong}
    problems += [f"{len(names)} {what} ({shown(names)})" for what, names in listed.items() if names]
    if problems:
        raise InputError(f"{path} must hold this network's weights, got a mismatch: {', '.join(problems)}")
    broken = [name for name in wanted if not _usable(state[name], wanted[name])]
    if broken:
        raise InputError(f"{path} must hold finite numbers, got others in {len(broken)} tensors ({shown(broken)})")


def _usable(value: Tensor, like: Tensor) -> bool:
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_complex():
        return False
    return value.is_floating_point() == like.is_floating_point() and bool(torch.isfinite(value.float()).all())


def shown(names: Sequence[str]) -> str:
    """The first few names; the file wrote them, so anything that could upset a terminal is escaped."""
    shown = [name if name.isprintable() else repr(name) for name in (name[:100] for name in names[:3])]
    return ", ".join(shown) + (", ..." if len(names) > 3 else "")
