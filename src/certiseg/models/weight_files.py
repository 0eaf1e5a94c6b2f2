"""Weight files: tensors by name from PyTorch and safetensors files, read without running anything in them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from certiseg.errors import InputError

MAX_CLASSES = 65_535
ClassCount = Callable[[Mapping[str, Tensor]], int | None]
"""Reads the class count off weights, so that a mismatch can be told in those terms."""


def load_weights(
    module: nn.Module,
    path: str | Path,
    num_classes_of: ClassCount = lambda _: None,
    state: dict[str, Tensor] | None = None,
) -> None:
    """Load a checkpoint file (or its tensors, if they were read before) into `module`, whole or not at all.

    A module on torch's meta device gets its memory here, once the file is known to fit.
    """
    state = read_weights(path) if state is None else state
    check_fit(module.state_dict(), state, path, num_classes_of)
    if any(value.is_meta for value in module.parameters()):
        module.to_empty(device="cpu")
    module.load_state_dict(state)


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint file by name; code in the file never runs.

    Reads a bare state dict or one under `average` (a checkpoint of `certiseg train`), `state_dict`, `model_state` or
    `model`; the prefixes `module.` and `model.` are removed where every name has them, and entries of the training loss
    (`loss.`) are left out.
    """
    content = read_file(path)
    for key in ("average", "state_dict", "model_state", "model"):
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


def read_notes(path: str | Path) -> dict[str, str]:
    """The notes in a safetensors file; other files have none."""
    if Path(path).suffix != ".safetensors":
        return {}
    with safe_open(path, "pt") as file:
        return dict(file.metadata() or {})


def read_file(path: str | Path) -> object:
    """What a PyTorch or safetensors file holds: tensors, plain values and NumPy's numbers, nothing that runs."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"weights must be a file, got {path}, which is {'a folder' if path.is_dir() else 'missing'}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        # Remarks on the file's age or kind say nothing a user can act on.
        with warnings.catch_warnings(), torch.serialization.safe_globals(_numbers_of_numpy()):
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can raise anything while being parsed
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        got = f"one that asks for {named[1]}, which was not run" if named else "one that is damaged or of another kind"
        got = "an empty file" if path.stat().st_size == 0 else got
        rule = "must be an intact, readable PyTorch or safetensors file with nothing but tensors"
        raise InputError(f"{path} {rule}, got {got}; save the state dict alone") from error


def _numbers_of_numpy() -> list[Callable[..., object] | tuple[Callable[..., object], str]]:
    """NumPy's scalars, which scripts like to store beside the weights, under their names of NumPy 1 and 2."""
    scalar: Any = np.float64(0).__reduce__()[0]
    places = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
    kinds = {type(np.dtype(kind)) for kind in "?bhilqBHILQefdg"}
    return [np.dtype, *kinds, *[(scalar, place) for place in places]]


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
