"""`load_model(spec)`: from what a user types to a Segmenter."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from certiseg.errors import InputError
from certiseg.models.segmenter import Segmenter, as_segmenter

SPECS = """\
synthetic                      a scene whose class shares under noise are known in advance
torch:package.module:factory   a torch module, callable or cs.Segmenter that the factory returns"""


def load_model(spec: str, **options: Any) -> Segmenter:
    """The model that a spec names, as a Segmenter:

    {specs}
    """
    if not isinstance(spec, str) or not spec:
        raise InputError(f"model must be given as text, got {spec!r}; known forms:\n{SPECS}")
    if spec == "synthetic":
        from certiseg.models.synthetic import synthetic_scene

        return synthetic_scene(**options)
    if spec.startswith("torch:"):
        return _from_factory(spec, options)
    raise InputError(f"model must have one of the known forms, got {spec!r}; they are:\n{SPECS}")


def _from_factory(spec: str, options: dict[str, Any]) -> Segmenter:
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
    segmenter = as_segmenter(factory(**options))
    segmenter.name = spec
    return segmenter
