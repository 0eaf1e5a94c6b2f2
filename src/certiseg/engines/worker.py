"""A worker: a model that is checked once against the manifest, and a scratch folder in which tasks are done."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from certiseg.archive import write_atomically
from certiseg.engines.work import Answer, Task, perform
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest

BuildModel = Callable[[int], Any]
"""Makes the segmenter of worker number i; it must be possible to send it to another process."""
_MEMORY = Path("/dev/shm")


class Worker:
    """Does tasks one by one; what they write is given back as bytes."""

    def __init__(self, build: BuildModel, manifest: Manifest, *, number: int, place: str) -> None:
        import torch

        torch.set_num_threads(manifest.threads)
        self.place, self.segmenter = place, build(number)
        check(manifest, self.segmenter, place)
        where = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self.scratch = tempfile.mkdtemp(prefix="certiseg-", dir=where)
        self.folder = RunFolder(self.scratch, manifest)
        self.folder.create()

    def work(self, task: Task) -> Answer:
        """Do one task."""
        try:
            for relative, content in task.files.items():
                path = self.folder.path / relative
                path.parent.mkdir(exist_ok=True)
                with write_atomically(path) as file:
                    file.write(content)
            answer = perform(task, self.segmenter, self.folder, place=self.place)
            return answer if answer.refused is not None else replace(answer, files=self._new_files(task))
        finally:
            self._clear(task.name)

    def close(self) -> None:
        """Remove the scratch folder."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _new_files(self, task: Task) -> dict[str, bytes]:
        """What the task has written, the rows last, without what it was given and parts that have become votes."""
        folder, manifest = self.folder, self.folder.manifest
        written = [path for path in folder.files_of(task.name) if path.is_file()]
        undecided = [sigma for sigma in manifest.sigmas if not folder.votes_path(task.name, sigma).is_file()]
        written = [path for sigma in undecided for path in folder.parts(task.name, sigma)] + written
        named = {str(path.relative_to(folder.path)): path for path in written}
        return {name: path.read_bytes() for name, path in named.items() if name not in task.files}

    def _clear(self, name: str) -> None:
        self.folder.remove_parts(name)
        for path in self.folder.files_of(name):
            path.unlink(missing_ok=True)


def check(manifest: Manifest, segmenter: Any, place: str) -> None:
    """Refuse a worker whose draws would not be those of the run."""
    import numpy as np
    import torch

    from certiseg import __version__

    here = {"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__}
    for library, version in manifest.versions.items():
        if here.get(library) != version:
            raise InputError(wrong_version(place, library, version, here.get(library)))
    found = {
        "model_sha256": segmenter.fingerprint(),
        "backend": segmenter.backend,
        "device": segmenter.device.type,
        "threads": torch.get_num_threads(),
    }
    names = {"model_sha256": "weights and preparation of the model (SHA-256)", "threads": "threads per model"}
    for key, value in found.items():
        if value != (wanted := getattr(manifest, key)):
            raise InputError(
                f"{place}: {names.get(key, key)} must be {_short(wanted)} as in the manifest, got {_short(value)}; "
                "give every worker the same"
            )


def wrong_version(place: str, library: str, wanted: str, found: str | None) -> str:
    """The sentence about a worker with another version of a library, or without it."""
    got = "none" if found is None else found
    return f"{place}: {library} must be {wanted} as in the manifest, got {got}; install {library}=={wanted} there"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 16 else f"{text[:12]}..."
