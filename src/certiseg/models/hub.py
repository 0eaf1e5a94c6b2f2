"""Models of the Hugging Face Hub: weights as safetensors, and JSON; never code, never pickles.

Only `hf:ORG/NAME[@REVISION]` leads here, and only where no folder has that name. What was fetched stays in the cache of
huggingface_hub, and its commit is part of the model's name, so that a certificate tells which weights it is about.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tqdm import tqdm

from certiseg.errors import InputError
from certiseg.models.runtime import reason
from certiseg.models.settings import require_library

FETCHED, LEFT_OUT = ["*.safetensors", "*.json"], ["*/*"]
"""Files of the repository's top folder alone."""
_PLACE = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>.+))?")


class _Bar(tqdm):  # type: ignore[misc,type-arg]
    """Progress on a terminal alone, gone when it is done, and none for what is in the cache."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disable": None, "leave": False, "delay": 1})


def is_hub_name(place: str) -> bool:
    """Whether a place names a repository: ORG/NAME or ORG/NAME@REVISION, where no folder is called so."""
    return not Path(place).is_dir() and _PLACE.fullmatch(place) is not None


def fetch(place: str) -> tuple[Path, str]:
    """The folder of the cache that holds a repository, and the spec that names its commit: hf:ORG/NAME@COMMIT."""
    library = require_library("huggingface_hub", "huggingface", "a model of the Hugging Face Hub")
    found = _PLACE.fullmatch(place)
    assert found is not None, "asked for by is_hub_name"
    name, revision = found["name"], found["revision"]
    try:
        folder = library.snapshot_download(
            name, revision=revision, allow_patterns=FETCHED, ignore_patterns=LEFT_OUT, tqdm_class=_Bar
        )
    except Exception as error:  # of the Hub, of the way there, or of the disk
        raise InputError(f"hf:{place}: {_sentence(library, error, name)}") from None
    return Path(folder), f"hf:{name}@{Path(folder).name}"


def _sentence(library: Any, error: Exception, name: str) -> str:
    """What must be, what is, and what to do."""
    errors = library.errors
    if isinstance(error, errors.GatedRepoError):
        return "must be open to you, got a gated repository; ask for access on its page, then run: hf auth login"
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        return "must be a folder here or a repository of the Hub, got neither, or a private one; check the spelling"
    if isinstance(error, errors.RevisionNotFoundError):
        return "must name a branch, tag or commit of the repository, got a revision that it has not; check the spelling"
    got = reason(error)
    if isinstance(error, errors.LocalEntryNotFoundError):
        got = f"no answer from {library.constants.ENDPOINT} and nothing complete in the cache"
    return (
        f"must be in the cache or within reach, got: {got}; where there is a network run "
        f"huggingface_hub.snapshot_download({name!r}, local_dir=FOLDER), then write hf:FOLDER here"
    )
